-- Todos that are claimed and that wait for others, handoffs, archives, comments on sections.
-- It only adds, and what it adds may be left out: a server of the version before keeps working beside this one.

ALTER TABLE todo ADD COLUMN lease_until TEXT;
ALTER TABLE room ADD COLUMN archived_at TEXT;
ALTER TABLE artifact ADD COLUMN archived_at TEXT;
-- The section that a comment is about; its location holds the lines the section had.
ALTER TABLE review_comment ADD COLUMN selector TEXT;

CREATE TABLE todo_blocker (
    todo_id INTEGER NOT NULL,
    blocker_id INTEGER NOT NULL,
    PRIMARY KEY (todo_id, blocker_id),
    CONSTRAINT todo_blocker_todo FOREIGN KEY (todo_id) REFERENCES todo (event_id),
    CONSTRAINT todo_blocker_blocker FOREIGN KEY (blocker_id) REFERENCES todo (event_id)
) STRICT;

CREATE TABLE handoff (
    event_id INTEGER NOT NULL,
    persona TEXT NOT NULL,
    ack_event_id INTEGER,
    PRIMARY KEY (event_id),
    CONSTRAINT handoff_event FOREIGN KEY (event_id) REFERENCES event (id),
    CONSTRAINT handoff_ack FOREIGN KEY (ack_event_id) REFERENCES event (id)
) STRICT;

CREATE INDEX event_todo ON event (room_id, id) WHERE event_type = 'todo_create';

CREATE INDEX todo_open ON todo (assigned_to, event_id) WHERE status IN ('pending', 'in_progress');

CREATE INDEX room_archived ON room (id) WHERE archived_at IS NOT NULL;

CREATE INDEX artifact_archived ON artifact (id) WHERE archived_at IS NOT NULL;

CREATE INDEX review_by_artifact ON review (artifact_id, id);
