"""Values that no tool should trip over, and an onlooker that detects any change."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests import engines

MEGABYTES = "x" * (10 * 1024 * 1024)

MARKUP = '<script>alert("1")</script> & <img src=x onerror=y> ]]> {{x}} ${x} %s'
QUERY = "Robert'); DROP TABLE session; -- \" ` \\"
SIGNS = "a\u202eb\u2066c\u200dd e\u0301 \u00e9 \ufeff \ufffe 👍🏽"
CONTROL = "a\x1b[31mb\x07c\x7fd\x85e\u2028f"

TEXTS: Mapping[str, Any] = {
    "empty": "",
    "blank": " \t\n ",
    "10 MB": MEGABYTES,
    "NUL": "a\0b",
    "markup": MARKUP,
    "query": QUERY,
    "bidirectional marks": SIGNS,
    "control characters": CONTROL,
    "line breaks": "one\r\ntwo\rthree\n",
    "folders": "../../../etc/passwd",
    "absolute": "/etc/passwd",
    "option": "--output=/tmp/x",
    "no choice": "nonsense",
    "a number": 7,
    "a list": ["a"],
    "an object": {"a": "b"},
    "a boolean": True,
}

NUMBERS: Mapping[str, Any] = {
    "negative": -1,
    "zero": 0,
    "of another domain": 7,
    "nobody's": 999_999,
    "53 bits": 2**53,
    "63 bits": 2**63,
    "most negative": -(2**63),
    "64 bits": 2**64,
    "400 digits": 10**400,
    "fraction": 1.5,
    "huge fraction": 1e300,
    "a boolean": True,
    "a word": "many",
    "empty text": "",
    "a list": [1],
    "an object": {"id": 1},
}

LISTS: Mapping[str, Any] = {
    "empty": [],
    "repeats": ["a"] * 10,
    "ten thousand": [f"name {number}" for number in range(10_000)],
    "ten thousand equal": ["a"] * 10_000,
    "blank entries": ["a", " "],
    "NUL inside": ["a\0b"],
    "10 MB inside": [MEGABYTES],
    "numbers": [1, 2],
    "nothing": [None],
    "lists": [["a"]],
    "objects": [{"a": 1}],
    "a text": "a,b",
    "an object": {"a": "b"},
    "a number": 3,
}


def nested(depth: int, with_keys: bool) -> Any:
    """Return JSON with the given number of levels."""
    value: Any = 1
    for _ in range(depth):
        value = {"a": value} if with_keys else [value]
    return value


OBJECTS: Mapping[str, Any] = {
    "empty": {},
    "deep": nested(200, True),
    "deep lists": {"a": nested(200, False)},
    "huge key": {"k" * 1_000_000: 1},
    "empty key": {"": 1},
    "NUL in a key": {"a\0": 1},
    "NUL in a value": {"a": ["b\0"]},
    "ten thousand keys": {f"k{number}": number for number in range(10_000)},
    "400 digits": {"a": 10**400},
    "10 MB": {"a": MEGABYTES},
    "a list": [1, 2],
    "a text": "a",
    "a number": 1,
}

FLAGS: Mapping[str, Any] = {"a word": "maybe", "two": 2, "a list": [True], "an object": {}, "empty": ""}

BY_TYPE: Mapping[str, Mapping[str, Any]] = {
    "string": TEXTS,
    "integer": NUMBERS,
    "number": NUMBERS,
    "boolean": FLAGS,
    "array": LISTS,
    "object": OBJECTS,
}

UNSENDABLE: Mapping[str, Mapping[str, Any]] = {
    "string": {"half a surrogate pair": "a\ud800b", "the other half": "\udfff"},
    "integer": {"5,000 digits": 10**5_000},
    "array": {"half a surrogate pair": ["a\ud800"]},
    "object": {
        "half a surrogate pair": {"a\ud800": 1},
        "in a value": {"a": "\udc00"},
        "not a number": {"a": float("nan")},
        "infinite": {"a": [float("-inf")]},
        "a thousand deep": nested(1_000, True),
        "a hundred thousand deep": {"a": nested(100_000, False)},
    },
}
"""Values that JSON in UTF-8 cannot carry or parsers refuse; only callers in this process can send them."""


def types_of(schema: Mapping[str, Any]) -> list[str]:
    """Return the JSON types a listed parameter takes; one without a type takes any JSON."""
    parts = schema.get("anyOf", [schema])
    types: list[str] = []
    for part in parts:
        kind = part.get("type", ["object", "array", "string"])
        types += [kind] if isinstance(kind, str) else kind
    return types


def hostile(schema: Mapping[str, Any], values: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Return values for a parameter, each with a name.

    :param schema: of the parameter, as listed.
    :param values: by JSON type.
    """
    for kind in types_of(schema):
        inner = schema.get("items", {}).get("type", "string")
        if kind == "array" and inner != "string" and values is UNSENDABLE:
            # Another type is refused before a function sees it.
            for name, value in values[inner].items():
                yield f"{kind} of {inner}, {name}", [value]
            continue
        for name, value in values.get(kind, {}).items():
            yield f"{kind}, {name}", value


class Onlooker:
    """A view of all stored data: every row of every table, and the files next to the database.

    :param data: the data folder.
    :param project: another folder with files that belong to it.
    """

    def __init__(self, data: Path, project: Path) -> None:
        self._folders = (data, project)
        self._connection, self._version = engines.watched(data)

    def state(self) -> tuple[int, list[tuple[str, int, int]]]:
        """Return a value that differs after any commit and any change of a file."""
        (version,) = self._connection.execute(self._version).fetchone()
        return version, sorted(file for folder in self._folders for file in _files(folder))

    def close(self) -> None:
        self._connection.close()


def _files(top: Path) -> Iterator[tuple[str, int, int]]:
    folders = [str(top)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif not entry.name.startswith(("npl.db", "index-")):
                    state = entry.stat(follow_symlinks=False)
                    yield entry.path, state.st_size, state.st_mtime_ns
