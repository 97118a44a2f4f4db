-- Answers of calls with a request_id, which are kept for a day.

CREATE TABLE request (
    -- The name of the token; empty without tokens.
    caller TEXT NOT NULL,
    id TEXT NOT NULL,
    -- Digest of the tool and its arguments.
    digest TEXT NOT NULL,
    answer TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (caller, id)
) STRICT;

CREATE INDEX request_created ON request (created_at);
