"""The Markdown form of an answer, made from its fields; it costs a model fewer tokens than JSON.

::

    total: 2
    cursor: 4

    items, each {room_id: 1}:
    id|persona|data
    3|planner|{message: Hello}
    4|coder|{message: "Yes, please"}

    content:
    ```
    # Plan
    ```

A field is a line. A list of records is a table: the first line has the fields that are equal in all records,
the second the names of the other fields; then each record is a line, up to an empty line. An empty cell is an
absent field. Texts of several lines come last, in fences. Ambiguous strings are quoted as in JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from npl_mcp.tools.contract.responses import sendable

_CELL = "|"
_FLOW = ",{}[]"
_STARTS = ('"', "[", "{", "`", "~")
_OTHER_VALUE = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?|true|false|null|none")
_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{3,6}Z")


def as_markdown(data: object) -> str:
    """Return the Markdown form of an answer; no text in it can be read as a field, a record or a fence.

    Times are rounded down to the second.

    :param data: JSON value.
    """
    lines: list[str] = []
    tables, blocks = [], []
    for name, value in _flat(data if isinstance(data, Mapping) else {"data": data}):
        if _is_block(value):
            fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", value)), 0)
            text = value.removesuffix("\n")
            blocks.append(f"{name}:\n{fence}\n{text}\n{fence}")
        elif _is_table(value):
            tables.append(_table(name, value))
        else:
            lines.append(f"{name}: {_inline(value)}")
    return sendable("\n\n".join(("\n".join(lines), *tables, *blocks)).lstrip("\n"))


def _flat(fields: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields; an object that needs several lines becomes fields with its name as a prefix."""
    for key, value in fields.items():
        name = above + _string(key, f"{_FLOW}:.")
        if isinstance(value, Mapping) and not _fits_line(value):
            yield from _flat(value, f"{name}.")
        else:
            yield name, value


def _fits_line(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(map(_fits_line, value.values()))
    return not (_is_block(value) or _is_table(value))


def _is_block(value: object) -> bool:
    return isinstance(value, str) and "\n" in value


def _is_table(value: object) -> bool:
    """Return whether a value is a list of records with several fields; one column would look like text."""
    return (
        isinstance(value, list)
        and all(isinstance(record, Mapping) for record in value)
        and len(set().union(*value)) > 1
    )


def _table(name: str, records: Sequence[Mapping[str, Any]]) -> str:
    keys = dict.fromkeys(key for record in records for key in record)
    columns = {key: [_inline(row[key], _CELL) if key in row else "" for row in records] for key in keys}
    varying = {key: cells for key, cells in columns.items() if len(set(cells)) > 1}
    if len(varying) < 2:
        varying = columns
    common = {key: records[0][key] for key in columns if key not in varying}
    shared = f", each {_inline(common)}" if common else ""
    rows = zip(*([_string(key, _CELL), *cells] for key, cells in varying.items()), strict=True)
    return "\n".join((f"{name}{shared}:", *map(_CELL.join, rows)))


def _inline(value: object, barred: str = "") -> str:
    """Return a value on one line.

    :param barred: characters that would end the value; strings with them are quoted.
    """
    inside = barred + _FLOW
    if isinstance(value, str):
        return _string(_TIME.sub(r"\1Z", value) if _TIME.fullmatch(value) else value, barred)
    if isinstance(value, Mapping):
        parts = (f"{_string(key, f'{inside}:')}: {_inline(part, inside)}" for key, part in value.items())
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, list):
        return f"[{', '.join(_inline(part, inside) for part in value)}]" if value else "none"
    return json.dumps(value)


def _string(text: str, barred: str = "") -> str:
    """Return a string, quoted as in JSON if it is ambiguous.

    :param barred: characters that require quotes.
    """
    bare = text and text == text.strip() and not text.startswith(_STARTS) and not _OTHER_VALUE.fullmatch(text)
    if bare and not (_BREAKS.search(text) or any(character in text for character in barred)):
        return text
    return _BREAKS.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))
