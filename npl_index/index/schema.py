"""The tables of the index.

``file`` and ``name`` have small rows, for scans of many documents; ``document`` has large rows, for a few
documents. A row of ``document`` never changes, but its tokens are counted later: each content has its own
number. Numbers, and the versions of roots, begin at random, so that they differ after a rebuild.

``word`` has one row per document, not per section: it gives the candidates of a question, whose sections are
then ranked exactly. It has each term of a column once. The table is plain ``content=''``, because
``contentless_delete`` needs SQLite 3.43.

Columns called ``checksum`` and the bytes of ``document`` show damage that SQLite does not see.
"""

from __future__ import annotations

VERSION = 30
"""Version of the tables, of their binary data, and of the parsing and analysis behind these."""

APPLICATION_ID = 0x4E504C49  # "NPLI"

SCHEMA = """
CREATE TABLE root (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL, npl INTEGER NOT NULL,
    version INTEGER NOT NULL DEFAULT (abs(random()) >> 23), sections INTEGER NOT NULL DEFAULT 0,
    used_at INTEGER NOT NULL DEFAULT 0, checksum INTEGER NOT NULL DEFAULT 0, UNIQUE (path, npl)
);
CREATE TABLE file (
    root INTEGER NOT NULL, path TEXT NOT NULL, mtime INTEGER NOT NULL, size INTEGER NOT NULL,
    ctime INTEGER NOT NULL, settled INTEGER NOT NULL, digest TEXT NOT NULL, document INTEGER NOT NULL,
    title TEXT NOT NULL, heading TEXT NOT NULL, sections INTEGER NOT NULL, pages INTEGER NOT NULL,
    words INTEGER NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (root, path)
) WITHOUT ROWID;
CREATE TABLE document (
    id INTEGER PRIMARY KEY AUTOINCREMENT, digest TEXT NOT NULL, terms BLOB NOT NULL, record BLOB NOT NULL,
    tokens BLOB NOT NULL, language TEXT NOT NULL
);
INSERT INTO sqlite_sequence (name, seq) VALUES ('document', abs(random()) >> 23);
CREATE TABLE term (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, checksum INTEGER NOT NULL);
CREATE TABLE total (
    root INTEGER NOT NULL, term INTEGER NOT NULL, own INTEGER NOT NULL, "any" INTEGER NOT NULL,
    path INTEGER NOT NULL, pages INTEGER NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (term, root)
) WITHOUT ROWID;
CREATE TABLE name (
    root INTEGER NOT NULL, spelt TEXT NOT NULL, document INTEGER NOT NULL, section INTEGER NOT NULL,
    kind INTEGER NOT NULL, label TEXT NOT NULL, fold TEXT NOT NULL, written TEXT NOT NULL,
    copy INTEGER NOT NULL, PRIMARY KEY (root, spelt, document, section)
) WITHOUT ROWID;
CREATE INDEX name_document ON name (document, section, copy);
CREATE INDEX name_fold ON name (fold, kind);
CREATE INDEX name_copy ON name (copy) WHERE copy != 0;
CREATE INDEX name_written ON name (written) WHERE written > '';
CREATE TABLE field (
    name TEXT NOT NULL, value TEXT NOT NULL, document INTEGER NOT NULL, PRIMARY KEY (name, value, document)
) WITHOUT ROWID;
CREATE INDEX field_document ON field (document);
CREATE VIRTUAL TABLE word USING fts5 (
    name, body, content='', detail=column,
    tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
);
CREATE VIEW file_index AS SELECT
    root.path || '/' || file.path AS file_path,
    mtime, size, digest,
    (SELECT json_group_array(json_object('section', section, 'level', kind & 7, 'name', label))
        FROM (SELECT * FROM name WHERE name.document = file.document ORDER BY section)) AS index_json,
    (SELECT json_group_array(spelt)
        FROM (SELECT DISTINCT spelt FROM name WHERE name.document = file.document AND spelt > ''))
        AS keywords_json
FROM file JOIN root ON root.id = file.root;
"""
