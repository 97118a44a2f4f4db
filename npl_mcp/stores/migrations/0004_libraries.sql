-- Libraries: Markdown with revisions, and the index that is made of it once for all.

CREATE TABLE library (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    created_at TEXT NOT NULL,
    -- The number of the current one.
    revision INTEGER NOT NULL,
    CONSTRAINT library_name UNIQUE (name)
) STRICT;

CREATE TABLE library_revision (
    library_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    created_by TEXT,
    message TEXT,
    -- Of the paths and contents: the same means the same files, whatever the number.
    digest TEXT NOT NULL,
    files INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    added INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    PRIMARY KEY (library_id, number),
    CONSTRAINT library_revision_library FOREIGN KEY (library_id) REFERENCES library (id)
) STRICT;

CREATE TABLE library_content (
    digest TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (digest)
) STRICT;

CREATE TABLE library_file (
    library_id INTEGER NOT NULL,
    path TEXT NOT NULL,
    digest TEXT NOT NULL,
    size INTEGER NOT NULL,
    first_revision INTEGER NOT NULL,
    -- The largest number there is while it is still there: then one range finds the files of any revision.
    last_revision INTEGER NOT NULL,
    PRIMARY KEY (library_id, path, first_revision),
    CONSTRAINT library_file_library FOREIGN KEY (library_id) REFERENCES library (id),
    CONSTRAINT library_file_content FOREIGN KEY (digest) REFERENCES library_content (digest)
) STRICT;

CREATE INDEX library_file_by_revision ON library_file (library_id, last_revision, first_revision);

CREATE TABLE library_index (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    library_id INTEGER NOT NULL,
    format TEXT NOT NULL,
    created_at TEXT NOT NULL,
    digest TEXT NOT NULL,
    members BLOB NOT NULL,
    CONSTRAINT library_index_format UNIQUE (library_id, format),
    CONSTRAINT library_index_library FOREIGN KEY (library_id) REFERENCES library (id)
) STRICT;

CREATE TABLE library_index_part (
    index_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (index_id, number),
    CONSTRAINT library_index_part_index FOREIGN KEY (index_id) REFERENCES library_index (id)
) STRICT;

-- Who makes an index now; a beat that stands still is that of a process that is gone.
CREATE TABLE library_build (
    library_id INTEGER NOT NULL,
    format TEXT NOT NULL,
    holder TEXT NOT NULL,
    beat INTEGER NOT NULL,
    PRIMARY KEY (library_id, format),
    CONSTRAINT library_build_library FOREIGN KEY (library_id) REFERENCES library (id)
) STRICT;
