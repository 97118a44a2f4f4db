-- Words of rows approximate the terms of documents: without accents, also as English stems, with parts of camel case,
-- each character of a script without spaces alone, and words without markup inside. Symbols are not words. An index calls
-- no function that calls others: a program that restores a database would not find them.

CREATE FUNCTION plain_words(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT regexp_replace(regexp_replace(regexp_replace(translate(
        replace(replace(replace(normalize($1, NFKD), 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'łŁđĐøØħĦŧŦıðÐ', 'lLdDoOhHtTidD'),
        '[\u0300-\u036f\u0610-\u061a\u064b-\u065f\u00ad\u200b-\u200f\u2060]', '', 'g'),
        '[\x01-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+', ' ', 'g'),
        '([\u0e00-\u0fff\u1000-\u11ff\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff])', ' \1 ', 'g')
$$;

CREATE OR REPLACE FUNCTION words_of(text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_tsvector('pg_catalog.simple', words) || to_tsvector('pg_catalog.english', words)
    FROM (SELECT regexp_replace(regexp_replace(regexp_replace(translate(
        replace(replace(replace(normalize(text, NFKD), 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'łŁđĐøØħĦŧŦıðÐ', 'lLdDoOhHtTidD'),
        '[\u0300-\u036f\u0610-\u061a\u064b-\u065f\u00ad\u200b-\u200f\u2060]', '', 'g'),
        '[\x01-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+', ' ', 'g'),
        '([\u0e00-\u0fff\u1000-\u11ff\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff])', ' \1 ', 'g') AS plain FROM (
            SELECT left($1, 100000) || ' ' || regexp_replace(left($1, 100000), '[*~`\\]+|</?[a-z]+>', '', 'g') AS text
        ) AS shown) AS one,
    LATERAL (SELECT plain || ' ' || regexp_replace(plain, '([a-z])([A-Z])', '\1 \2', 'g') AS words) AS other
$$;

-- All of several terms, each the beginning of a word: "one" * AND "two" *
CREATE OR REPLACE FUNCTION words_like(text) RETURNS tsquery LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(string_agg('(' || words::text || ':*)', ' & '), '')::tsquery
    FROM regexp_split_to_table($1, '" \* AND "') AS term,
        phraseto_tsquery('pg_catalog.simple', plain_words(term)) AS words
    WHERE numnode(words) > 0
$$;

REINDEX INDEX event_words;
REINDEX INDEX worklog_entry_words;
REINDEX INDEX artifact_words;
REINDEX INDEX revision_words;
