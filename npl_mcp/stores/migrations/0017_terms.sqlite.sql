-- The index of rows has the same terms as that of documents. Rows are never changed, so one trigger on inserts suffices.

DROP TRIGGER event_is_searched;
DROP TABLE event_words;

CREATE VIRTUAL TABLE event_words USING fts5 (
    terms, content='', tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
);

CREATE TRIGGER event_is_searched AFTER INSERT ON event
WHEN NEW.event_type IN ('message', 'handoff', 'todo_create') AND json_valid(NEW.data) BEGIN
    INSERT INTO event_words (rowid, terms)
    VALUES (NEW.id, terms_of(CAST(concat_ws(' ', NEW.data ->> '$.message', NEW.data ->> '$.description') AS BLOB)));
END;

INSERT INTO event_words (rowid, terms)
SELECT id, terms_of(CAST(concat_ws(' ', data ->> '$.message', data ->> '$.description') AS BLOB)) FROM event
WHERE event_type IN ('message', 'handoff', 'todo_create') AND json_valid(data);

DROP TRIGGER worklog_entry_is_searched;
DROP TABLE worklog_entry_words;

CREATE VIRTUAL TABLE worklog_entry_words USING fts5 (
    terms, content='', tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
);

CREATE TRIGGER worklog_entry_is_searched AFTER INSERT ON worklog_entry BEGIN
    INSERT INTO worklog_entry_words (rowid, terms)
    VALUES (NEW.session_number * 1000000000 + NEW.seq, terms_of(CAST(concat_ws(' ', NEW.action, NEW.summary, NEW.tags) AS BLOB)));
END;

INSERT INTO worklog_entry_words (rowid, terms)
SELECT session_number * 1000000000 + seq, terms_of(CAST(concat_ws(' ', action, summary, tags) AS BLOB)) FROM worklog_entry;

DROP TRIGGER revision_is_searched;
DROP TABLE revision_words;

CREATE VIRTUAL TABLE revision_words USING fts5 (
    terms, content='', tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
);

CREATE TRIGGER revision_is_searched AFTER INSERT ON revision BEGIN
    INSERT INTO revision_words (rowid, terms)
    SELECT NEW.id, terms_of(CAST(concat_ws(' ', name, NEW.filename, NEW.purpose, NEW.notes) AS BLOB)) FROM artifact
    WHERE artifact.id = NEW.artifact_id;
END;

INSERT INTO revision_words (rowid, terms)
SELECT revision.id, terms_of(CAST(concat_ws(' ', name, filename, purpose, notes) AS BLOB))
FROM revision JOIN artifact ON artifact.id = artifact_id;
