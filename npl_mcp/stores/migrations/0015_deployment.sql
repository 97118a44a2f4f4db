-- The project of the worklogs of all servers that share the database.
CREATE TABLE deployment (
    project TEXT NOT NULL,
    PRIMARY KEY (project)
) STRICT;
