-- Words of the searched rows. Rows are never changed, so one trigger on inserts suffices.

CREATE VIRTUAL TABLE event_words USING fts5 (words, content='', tokenize='unicode61 remove_diacritics 0');

CREATE TRIGGER event_is_searched AFTER INSERT ON event
WHEN NEW.event_type IN ('message', 'handoff', 'todo_create') AND json_valid(NEW.data) BEGIN
    INSERT INTO event_words (rowid, words)
    VALUES (NEW.id, concat_ws(' ', NEW.data ->> '$.message', NEW.data ->> '$.description'));
END;

INSERT INTO event_words (rowid, words)
SELECT id, concat_ws(' ', data ->> '$.message', data ->> '$.description') FROM event
WHERE event_type IN ('message', 'handoff', 'todo_create') AND json_valid(data);

CREATE VIRTUAL TABLE worklog_entry_words USING fts5 (words, content='', tokenize='unicode61 remove_diacritics 0');

CREATE TRIGGER worklog_entry_is_searched AFTER INSERT ON worklog_entry BEGIN
    INSERT INTO worklog_entry_words (rowid, words)
    VALUES (NEW.session_number * 1000000000 + NEW.seq, concat_ws(' ', NEW.action, NEW.summary, NEW.tags));
END;

INSERT INTO worklog_entry_words (rowid, words)
SELECT session_number * 1000000000 + seq, concat_ws(' ', action, summary, tags) FROM worklog_entry;

CREATE VIRTUAL TABLE revision_words USING fts5 (words, content='', tokenize='unicode61 remove_diacritics 0');

CREATE TRIGGER revision_is_searched AFTER INSERT ON revision BEGIN
    INSERT INTO revision_words (rowid, words)
    SELECT NEW.id, concat_ws(' ', name, NEW.filename, NEW.purpose, NEW.notes) FROM artifact
    WHERE artifact.id = NEW.artifact_id;
END;

INSERT INTO revision_words (rowid, words)
SELECT revision.id, concat_ws(' ', name, filename, purpose, notes)
FROM revision JOIN artifact ON artifact.id = artifact_id;
