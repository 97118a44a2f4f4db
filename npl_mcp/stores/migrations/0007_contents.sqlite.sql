-- The contents of artifacts, each once, under its digest, as PostgreSQL has had them since 0003. They were files.
-- kept_file returns the bytes of a revision's file, or NULL if their digest differs. Then the row stays empty, which
-- readers and the check report; all other contents are taken over.

CREATE TABLE content (
    digest TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (digest)
) STRICT;

INSERT INTO content (digest, data)
SELECT
    digest,
    coalesce(kept_file(artifact_id, revision_num, CAST(filename AS BLOB), size, CAST(digest AS BLOB)), X'')
FROM revision WHERE true
ON CONFLICT (digest) DO UPDATE SET data = excluded.data WHERE length(content.data) = 0;

-- A program of an earlier version, which knows no contents, can no longer add a revision.
CREATE TABLE revision_new (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    artifact_id INTEGER NOT NULL,
    revision_num INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    created_by TEXT,
    filename TEXT NOT NULL,
    size INTEGER NOT NULL,
    digest TEXT NOT NULL,
    purpose TEXT NOT NULL,
    notes TEXT,
    CONSTRAINT revision_number UNIQUE (artifact_id, revision_num),
    CONSTRAINT revision_of_artifact UNIQUE (artifact_id, id),
    CONSTRAINT revision_artifact FOREIGN KEY (artifact_id) REFERENCES artifact (id),
    CONSTRAINT revision_content FOREIGN KEY (digest) REFERENCES content (digest) DEFERRABLE INITIALLY DEFERRED
) STRICT;

INSERT INTO revision_new (id, artifact_id, revision_num, created_at, created_by, filename, size, digest, purpose, notes)
SELECT id, artifact_id, revision_num, created_at, created_by, filename, size, digest, purpose, notes FROM revision;

DROP TABLE revision;

ALTER TABLE revision_new RENAME TO revision;

-- The number of removals of files of unfinished writes.
DELETE FROM total WHERE name = 'recoveries';
