-- The contents of artifacts, each once, under its digest, as PostgreSQL has had them since 0003. They were files.
-- kept_file gives what is in the file of a revision, or NULL if that is not what was stored. Then the row stays
-- empty: whoever reads or checks it is told, and all other contents are taken over.

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

-- A program of a version before, which knows no contents, can add no revision any more.
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

-- How often files of unfinished writes were removed.
DELETE FROM total WHERE name = 'recoveries';
