-- The log of calls.

CREATE TABLE tool_call (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    created_at TEXT NOT NULL,
    tool TEXT NOT NULL,
    -- Domains that a caller has to see to see the call, with spaces between.
    domains TEXT NOT NULL,
    who TEXT NOT NULL,
    -- The name of the token, where the server has some.
    owner TEXT,
    -- NULL if it was answered.
    error TEXT,
    micros INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    -- The rest is known of calls that load sections.
    file TEXT,
    asked INTEGER,
    used INTEGER,
    whole INTEGER,
    -- A JSON list of selectors.
    taken TEXT,
    context TEXT,
    -- Indices that were at hand and that were made since the row before.
    hits INTEGER NOT NULL,
    misses INTEGER NOT NULL
) STRICT;

CREATE INDEX tool_call_created ON tool_call (created_at);

CREATE TABLE tool_call_offer (
    call_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    -- Of caller, file and selector: the index of a long text would be refused.
    digest TEXT NOT NULL,
    selector TEXT NOT NULL,
    -- The call that asked for it; no reference, since the two are removed at different times.
    followed_by INTEGER,
    PRIMARY KEY (call_id, number),
    CONSTRAINT tool_call_offer_call FOREIGN KEY (call_id) REFERENCES tool_call (id)
) STRICT;

CREATE INDEX tool_call_offer_digest ON tool_call_offer (digest);
