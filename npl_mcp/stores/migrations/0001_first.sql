-- First tables: sessions, artifacts, chat, reviews, worklog.

CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

INSERT INTO alembic_version VALUES ('0000');

-- Counting the rows of a table takes time in proportion to them.
CREATE TABLE total (
    name TEXT NOT NULL,
    value INTEGER DEFAULT 0 NOT NULL,
    PRIMARY KEY (name)
) STRICT;

CREATE TABLE session (
    number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    title TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    status TEXT DEFAULT 'active' NOT NULL,
    room_count INTEGER DEFAULT 0 NOT NULL,
    artifact_count INTEGER DEFAULT 0 NOT NULL,
    CONSTRAINT session_id UNIQUE (id),
    CONSTRAINT session_status CHECK (status IN ('active', 'completed', 'archived'))
) STRICT;

CREATE INDEX session_by_status ON session (status, number);

CREATE TABLE artifact (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    created_at TEXT NOT NULL,
    revision_count INTEGER DEFAULT 0 NOT NULL,
    CONSTRAINT artifact_name UNIQUE (name)
) STRICT;

CREATE TABLE revision (
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
    CONSTRAINT revision_artifact FOREIGN KEY (artifact_id) REFERENCES artifact (id)
) STRICT;

CREATE TABLE session_artifact (
    session_number INTEGER NOT NULL,
    artifact_id INTEGER NOT NULL,
    linked_at TEXT NOT NULL,
    PRIMARY KEY (session_number, artifact_id),
    CONSTRAINT session_artifact_session FOREIGN KEY (session_number) REFERENCES session (number),
    CONSTRAINT session_artifact_artifact FOREIGN KEY (artifact_id) REFERENCES artifact (id)
) STRICT;

CREATE INDEX session_artifact_by_artifact ON session_artifact (artifact_id);

CREATE TABLE room (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    created_at TEXT NOT NULL,
    description TEXT,
    session_number INTEGER,
    event_count INTEGER DEFAULT 0 NOT NULL,
    member_count INTEGER DEFAULT 0 NOT NULL,
    CONSTRAINT room_name UNIQUE (name),
    CONSTRAINT room_session FOREIGN KEY (session_number) REFERENCES session (number)
) STRICT;

CREATE INDEX room_by_session ON room (session_number);

CREATE TABLE member (
    room_id INTEGER NOT NULL,
    persona TEXT NOT NULL,
    position INTEGER NOT NULL,
    joined_at TEXT NOT NULL,
    PRIMARY KEY (room_id, persona),
    CONSTRAINT member_room FOREIGN KEY (room_id) REFERENCES room (id)
) STRICT;

CREATE INDEX member_by_persona ON member (persona, room_id);

CREATE TABLE event (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    room_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    event_type TEXT NOT NULL,
    persona TEXT NOT NULL,
    timestamp TEXT NOT NULL,
    data TEXT NOT NULL,
    reply_to_id INTEGER,
    CONSTRAINT event_position UNIQUE (room_id, position),
    CONSTRAINT event_of_room UNIQUE (room_id, id),
    -- An answer stands in the same room as what it answers.
    CONSTRAINT event_reply FOREIGN KEY (room_id, reply_to_id) REFERENCES event (room_id, id),
    CONSTRAINT event_room FOREIGN KEY (room_id) REFERENCES room (id)
) STRICT;

CREATE INDEX event_by_reply ON event (reply_to_id);

CREATE TABLE reaction (
    event_id INTEGER NOT NULL,
    emoji TEXT NOT NULL,
    persona TEXT NOT NULL,
    reaction_event_id INTEGER NOT NULL,
    PRIMARY KEY (event_id, emoji, persona),
    CONSTRAINT reaction_event FOREIGN KEY (event_id) REFERENCES event (id),
    CONSTRAINT reaction_own_event FOREIGN KEY (reaction_event_id) REFERENCES event (id)
) STRICT;

CREATE TABLE todo (
    event_id INTEGER NOT NULL,
    status TEXT DEFAULT 'pending' NOT NULL,
    assigned_to TEXT,
    changed_at TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    PRIMARY KEY (event_id),
    CONSTRAINT todo_status CHECK (status IN ('pending', 'in_progress', 'done', 'cancelled')),
    CONSTRAINT todo_event FOREIGN KEY (event_id) REFERENCES event (id)
) STRICT;

CREATE TABLE mailbox (
    persona TEXT NOT NULL,
    total INTEGER DEFAULT 0 NOT NULL,
    unread INTEGER DEFAULT 0 NOT NULL,
    PRIMARY KEY (persona)
) STRICT;

CREATE TABLE notification (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    persona TEXT NOT NULL,
    event_id INTEGER NOT NULL,
    notification_type TEXT NOT NULL,
    created_at TEXT NOT NULL,
    read_at TEXT,
    CONSTRAINT notification_mailbox FOREIGN KEY (persona) REFERENCES mailbox (persona),
    CONSTRAINT notification_event FOREIGN KEY (event_id) REFERENCES event (id)
) STRICT;

CREATE INDEX notification_by_persona ON notification (persona, id);

CREATE INDEX notification_unread ON notification (persona, id) WHERE read_at IS NULL;

CREATE TABLE review (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    artifact_id INTEGER NOT NULL,
    revision_id INTEGER NOT NULL,
    reviewer_persona TEXT NOT NULL,
    created_at TEXT NOT NULL,
    status TEXT DEFAULT 'in_progress' NOT NULL,
    completed_at TEXT,
    overall_comment TEXT,
    CONSTRAINT review_revision FOREIGN KEY (artifact_id, revision_id) REFERENCES revision (artifact_id, id),
    CONSTRAINT review_status CHECK (status IN ('in_progress', 'completed'))
) STRICT;

CREATE INDEX review_by_revision ON review (revision_id);

CREATE TABLE review_comment (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    review_id INTEGER NOT NULL,
    location TEXT NOT NULL,
    comment TEXT NOT NULL,
    persona TEXT NOT NULL,
    created_at TEXT NOT NULL,
    CONSTRAINT review_comment_review FOREIGN KEY (review_id) REFERENCES review (id)
) STRICT;

CREATE INDEX review_comment_by_review ON review_comment (review_id, id);

CREATE TABLE worklog_session (
    number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    created TEXT NOT NULL,
    closed TEXT,
    -- Where its folder went when it was archived, below the project's archive.
    archived_as TEXT,
    task TEXT,
    status TEXT DEFAULT 'active' NOT NULL,
    entry_count INTEGER DEFAULT 0 NOT NULL,
    last_entry TEXT,
    CONSTRAINT worklog_session_status CHECK (status IN ('active', 'closed'))
) STRICT;

CREATE UNIQUE INDEX worklog_session_id ON worklog_session (project, id) WHERE archived_as IS NULL;

CREATE INDEX worklog_session_by_project ON worklog_session (project, number);

CREATE UNIQUE INDEX worklog_session_archived ON worklog_session (project, archived_as);

CREATE TABLE worklog_project (
    project TEXT NOT NULL,
    current INTEGER,
    imported_at TEXT,
    PRIMARY KEY (project),
    CONSTRAINT worklog_project_current FOREIGN KEY (current) REFERENCES worklog_session (number)
) STRICT;

CREATE TABLE worklog_entry (
    session_number INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    ts TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    agent_type TEXT DEFAULT 'unknown' NOT NULL,
    action TEXT NOT NULL,
    summary TEXT NOT NULL,
    data TEXT,
    tags TEXT,
    refs TEXT,
    PRIMARY KEY (session_number, seq),
    CONSTRAINT worklog_entry_session FOREIGN KEY (session_number) REFERENCES worklog_session (number)
) STRICT;

CREATE TABLE worklog_agent (
    session_number INTEGER NOT NULL,
    agent_id TEXT NOT NULL,
    entry_count INTEGER DEFAULT 0 NOT NULL,
    last_seq INTEGER DEFAULT 0 NOT NULL,
    last_read TEXT,
    PRIMARY KEY (session_number, agent_id),
    CONSTRAINT worklog_agent_session FOREIGN KEY (session_number) REFERENCES worklog_session (number)
) STRICT;
