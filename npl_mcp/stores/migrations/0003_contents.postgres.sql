-- The contents of artifacts, each once, under its digest; with SQLite they were files until 0007.

CREATE TABLE content (
    digest TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (digest)
);

ALTER TABLE revision ADD CONSTRAINT revision_content
    FOREIGN KEY (digest) REFERENCES content (digest) DEFERRABLE INITIALLY DEFERRED;
