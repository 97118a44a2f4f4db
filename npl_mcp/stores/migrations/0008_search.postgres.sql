-- Words of the rows that a search looks through. Expressions of the queries are those of the indexes.

-- Signs of ASCII separate words, as in SQLite's index; the parser would see paths, hosts and numbers in them.
CREATE FUNCTION plain_words(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT regexp_replace($1, '[\x01-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+', ' ', 'g')
$$;

-- The beginning of a text: a vector has at most a megabyte.
CREATE FUNCTION words_of(text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_tsvector('pg_catalog.simple', plain_words(left($1, 200000)))
$$;

-- Words in a row, of which the last is a beginning.
CREATE FUNCTION words_like(text) RETURNS tsquery LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN numnode(words) = 0 THEN words ELSE (words::text || ':*')::tsquery END
    FROM phraseto_tsquery('pg_catalog.simple', plain_words($1)) AS words
$$;

CREATE FUNCTION said(data text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT concat_ws(' ', data::jsonb ->> 'message', data::jsonb ->> 'description')
$$;

CREATE INDEX event_words ON event USING gin (words_of(said(data)))
WHERE event_type IN ('message', 'handoff', 'todo_create');

CREATE INDEX worklog_entry_words ON worklog_entry
USING gin (words_of(action || ' ' || summary || ' ' || coalesce(tags, '')));

CREATE INDEX artifact_words ON artifact USING gin (words_of(name));

CREATE INDEX revision_words ON revision
USING gin (words_of(filename || ' ' || purpose || ' ' || coalesce(notes, '')));
