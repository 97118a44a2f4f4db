-- Words of the searched rows. The functions have the names of SQLite's tables.

-- Signs of ASCII separate words, as in SQLite's index; the parser would see paths, hosts and numbers in them.
-- Only the beginning of a text is indexed: a vector has at most a megabyte. An index calls no function that calls others:
-- a program that restores a database would not find them.
CREATE FUNCTION words_of(text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_tsvector('pg_catalog.simple', regexp_replace(
        left($1, 200000), '[\x01-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+', ' ', 'g'))
$$;

-- Any of several phrases, each of which ends with the beginning of a word: "one tw" * OR "thr" *
CREATE FUNCTION words_like(text) RETURNS tsquery LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(string_agg('(' || words::text || ':*)', ' | '), '')::tsquery
    FROM regexp_split_to_table($1, '" \* OR "') AS phrase, phraseto_tsquery('pg_catalog.simple', regexp_replace(
        phrase, '[\x01-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+', ' ', 'g')) AS words
    WHERE numnode(words) > 0
$$;

CREATE FUNCTION said(data text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT concat_ws(' ', data::jsonb ->> 'message', data::jsonb ->> 'description')
$$;

CREATE INDEX event_words ON event USING gin (words_of(said(data)))
WHERE event_type IN ('message', 'handoff', 'todo_create');

CREATE FUNCTION event_words(query text) RETURNS TABLE (rowid bigint) LANGUAGE sql STABLE AS $$
    SELECT id FROM event WHERE words_of(said(data)) @@ words_like(query)
    AND event_type IN ('message', 'handoff', 'todo_create')
$$;

CREATE INDEX worklog_entry_words ON worklog_entry
USING gin (words_of(action || ' ' || summary || ' ' || coalesce(tags, '')));

CREATE FUNCTION worklog_entry_words(query text) RETURNS TABLE (rowid bigint) LANGUAGE sql STABLE AS $$
    SELECT session_number * 1000000000 + seq FROM worklog_entry
    WHERE words_of(action || ' ' || summary || ' ' || coalesce(tags, '')) @@ words_like(query)
$$;

CREATE INDEX artifact_words ON artifact USING gin (words_of(name));

CREATE INDEX revision_words ON revision
USING gin (words_of(filename || ' ' || purpose || ' ' || coalesce(notes, '')));

CREATE FUNCTION revision_words(query text) RETURNS TABLE (rowid bigint) LANGUAGE sql STABLE AS $$
    SELECT id FROM revision
    WHERE words_of(filename || ' ' || purpose || ' ' || coalesce(notes, '')) @@ words_like(query)
    UNION
    SELECT revision.id FROM revision JOIN artifact ON artifact.id = artifact_id
    WHERE words_of(name) @@ words_like(query)
$$;
