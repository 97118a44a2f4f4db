-- The current session of each agent. worklog_project has that of the command line, one for each project.

CREATE TABLE worklog_current (
    project TEXT NOT NULL,
    -- The name of a token or of an agent, or "process" and an id.
    agent TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (project, agent),
    CONSTRAINT worklog_current_session FOREIGN KEY (number) REFERENCES worklog_session (number)
) STRICT;
