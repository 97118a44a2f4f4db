-- Tokens of callers.

CREATE TABLE access_token (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    -- What is kept of the token itself: its SHA-256.
    digest TEXT NOT NULL,
    -- JSON lists; NULL means all.
    domains TEXT,
    roots TEXT,
    libraries TEXT,
    read_only INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    revoked_at TEXT,
    CONSTRAINT access_token_name UNIQUE (name),
    CONSTRAINT access_token_digest UNIQUE (digest)
) STRICT;
