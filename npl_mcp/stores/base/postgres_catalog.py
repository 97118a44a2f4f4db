"""Queries of the PostgreSQL catalog for the existing tables."""

from __future__ import annotations

_HERE = "relnamespace = current_schema()::regnamespace"

UNCHECKED = f"""
SELECT conname AS name FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
WHERE NOT convalidated AND {_HERE}"""

INVALID = f"""
SELECT relname AS name FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE NOT (indisvalid AND indisready) AND {_HERE}"""

_COLUMNS = """
ARRAY(SELECT attname::text FROM unnest({key}) WITH ORDINALITY AS part (number, place)
    JOIN pg_attribute ON attrelid = {table} AND attnum = part.number ORDER BY place)"""

REFERENCES = f"""
SELECT conrelid::regclass::text AS child, confrelid::regclass::text AS parent,
    {_COLUMNS.format(key="conkey", table="conrelid")} AS columns,
    {_COLUMNS.format(key="confkey", table="confrelid")} AS parent_columns
FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
WHERE contype = 'f' AND {_HERE} ORDER BY conname"""

TABLES = f"""
SELECT relname AS name,
    ARRAY(SELECT attname::text FROM pg_attribute
        WHERE attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped ORDER BY attnum) AS columns,
    {_COLUMNS.format(key="conkey", table="conrelid")} AS key,
    ARRAY(SELECT DISTINCT confrelid::regclass::text FROM pg_constraint AS reference
        WHERE reference.conrelid = pg_class.oid AND contype = 'f') AS parents,
    EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = pg_class.oid AND attnum = conkey[1]
        AND pg_get_serial_sequence(relname, attname) IS NOT NULL) AS numbered
FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
WHERE contype = 'p' AND {_HERE} ORDER BY relname"""

SEQUENCE = "SELECT pg_get_serial_sequence(:table, :key)"
