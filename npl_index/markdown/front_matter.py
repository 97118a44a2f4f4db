"""Front matter: ``name: value`` lines between two ``---`` lines at the start of a file, read and edited.

Fields are read line by line, as the programs that write them do, since their values are not always YAML
(``phaseEpic: Phase 2: Import``): a line is cut at its first colon; quotes around a value and a comment after
it (``#`` between blanks) are no part of it. Lists and nested values are read as YAML. All scalars stay text:
YAML would make the version 1.10 the number 1.1. What cannot be read stays as it is written; it is no error,
because files are written by hand.

Edits are splices: bytes outside the changed value stay, with any line ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from typing import Any

from npl_index.markdown.newlines import with_line_feeds

MAX_YAML = 16 * 1024
"""Characters of front matter that :func:`front_matter` reads, and of all fields that are read as YAML."""

MAX_DEPTH = 16
"""Levels of lists and mappings in a value."""

_MAX_FRONT_MATTER = 1 << 20
_OPENING = re.compile(r"---[ \t]*(?:\n|\Z)")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
# Lines a YAML mapping may hold at column 0 besides indented ones: a key, an item, a comment, a bracket.
_KEY = re.compile(
    r"""(?:"[^"\n]*"[ \t]*|'[^'\n]*'[ \t]*|(?:[^\s\-?:#,\[\]{}&*!|>'"%@`]|[-?](?=\S))[^\n]*?):(?:\s|\Z)"""
)
_OTHER_LINE = re.compile(r"[ \t]|-(?:[ \t]|\Z)|#|[\[\]{}]|\Z")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_COMMENT = re.compile(r"(?:^|(?<![ \t])[ \t]+)#(?:[ \t]|$)")
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')[ \t]*(?:#.*)?$""")
# What YAML would read as something else than text, besides what begins with a digit or a sign.
_TYPED = re.compile(r"(?:true|false|null|yes|no|on|off|y|n)$", re.IGNORECASE)

_HEADER_FIELD = re.compile(r"^[ \t]+(name|version)[ \t]*:(.*)$", re.MULTILINE)
_HEADER_QUOTED = re.compile(r"""(["'])(.*?)\1""")
_HEADER_COMMENT = re.compile(r"(?:^|\s)#")


@dataclass(frozen=True, slots=True)
class Field:
    """One field, with offsets in the front matter.

    :param name: its key.
    :param value: text, or a list or mapping of such.
    :param start: of its line.
    :param stop: end of its last line, the line end included.
    :param token: range of the value on the first line, quotes included, comment left out.
    """

    name: str
    value: object
    start: int
    stop: int
    token: tuple[int, int]


def find_front_matter(source: str) -> tuple[int, str]:
    """Find YAML front matter: ``---`` on the first line to the next ``---`` or ``...`` line.

    What lies between must look like a mapping (a ``key:`` line, and at column 0 nothing a mapping cannot
    hold) or be blank, and have at most a million characters; otherwise the first line is a thematic break
    and what follows is the document's.

    :returns: number of lines to leave out, and the text between the two lines.
    """
    opening = _OPENING.match(source)
    closing = _CLOSING.search(source, opening.end()) if opening else None
    if opening is None or closing is None or closing.start() > _MAX_FRONT_MATTER:
        return 0, ""
    body = source[opening.end() : closing.start()]
    if body.strip():
        lines = body.split("\n")
        keys = [_KEY.match(line) is not None for line in lines]
        if not any(keys) or not all(
            key or _OTHER_LINE.match(line) for key, line in zip(keys, lines, strict=True)
        ):
            return 0, ""
    return source.count("\n", 0, closing.end()) + (not closing[0].endswith("\n")), body


def front_matter(text: str) -> dict[str, object]:
    """Return the fields of a text's front matter by name; empty if there is none or it is too long."""
    return values(divide(text[: MAX_YAML + 8])[0])


def divide(text: str) -> tuple[str, str]:
    """Divide a text into front matter, its ``---`` lines included, and the rest.

    :param text: with any line ends; a byte order mark belongs to the front matter.
    :returns: the front matter is empty if there is none.
    """
    count, _ = find_front_matter(with_line_feeds(text).removeprefix("\ufeff"))
    stop = 0
    for line in islice(_LINE.finditer(text), count):
        stop = line.end()
    return text[:stop], text[stop:]


def texts_of(front: str, names: Sequence[str]) -> list[str]:
    """Return the texts of some fields, in the order of their names; a list gives its texts.

    :param front: as :func:`find_front_matter` returns it; text behind :data:`MAX_YAML` is ignored.
    """
    found = {one.name: one.value for one in fields(f"---\n{front[:MAX_YAML]}", names)} if front else {}
    listed = (value if isinstance(value, list) else [value] for value in map(found.get, names))
    every = chain.from_iterable(listed)
    return [" ".join(one.split()) for one in every if isinstance(one, str) and one.strip()]


def fields(front: str, names: Collection[str] | None = None) -> tuple[Field, ...]:
    """Return the fields of front matter, in its order.

    :param front: as :func:`divide` returns it.
    :param names: of the fields that are read; ``None`` for all.
    """
    left = MAX_YAML
    found = []
    for start, first, stop in _bounds(front):
        name, value, token = _read(front, start, first)
        if names is not None and name not in names:
            continue
        nested = front[first:stop].strip() or front.startswith(("[", "{"), token[0])
        if nested and stop - start <= left:
            left -= stop - start
            value = _yaml(front[start:stop]).get(name, value)
        found.append(Field(name, value, start, stop, token))
    return tuple(found)


def values(front: str) -> dict[str, object]:
    """Return values by name; of a repeated name the last counts.

    :param front: as :func:`divide` returns it.
    """
    return {field.name: field.value for field in fields(front)}


def with_values(
    front: str, changes: Mapping[str, str], *, add: bool = True, bare: Collection[str] = ()
) -> str:
    """Set values: on their lines, or on new ones before the closing ``---``; all other characters stay.

    :param front: as :func:`divide` returns it, not empty.
    :param changes: values as text, by name; an empty one leaves the name without a value.
    :param add: make new lines for names that are absent.
    :param bare: names whose values are written without quotes, such as dates.
    """
    for name, value in changes.items():
        written = _written(value, name in bare)
        found = [field for field in fields(front) if field.name == name]
        for field in reversed(found):
            front = _changed(front, field, value, written)
        if not found and value and add:
            lines = _LINE.findall(front)
            closing = len(front) - len(lines[-1])
            end = lines[0][len(lines[0].rstrip("\r\n")) :]
            front = f"{front[:closing]}{name}: {written}{end}{front[closing:]}"
    return front


def new_front_matter(values: Mapping[str, str], *, bare: Collection[str] = ()) -> str:
    """Write front matter for a new file; names without a value are left out.

    :param bare: as in :func:`with_values`.
    """
    lines = [f"{name}: {_written(value, name in bare)}" for name, value in values.items() if value]
    return "\n".join(["---", *lines, "---", ""])


def _bounds(front: str) -> Iterator[tuple[int, int, int]]:
    """Return each field's start, the end of its first line, and the end of the last that belongs to it."""
    start = first = last = -1  # start < 0: the lines belong to no field
    for line in islice(_LINE.finditer(front), 1, None):
        text = line[0].strip(" \t\r\n")
        if not text or text.startswith("#"):
            continue
        if line[0][0] in " \t" or text == "-" or text.startswith("- "):
            last = line.end()
            continue
        if start >= 0:
            yield start, first, last
        start = line.start() if ":" in text else -1
        first = last = line.end()
    if start >= 0:
        yield start, first, last


def _read(front: str, start: int, first: int) -> tuple[str, object, tuple[int, int]]:
    """Return name, value and the value's range of a field's first line."""
    name, _, rest = front[start:first].rstrip("\r\n").partition(":")
    text = rest.strip(" \t")
    quoted = _QUOTED.match(text)
    raw = quoted[1] if quoted else _COMMENT.split(text, maxsplit=1)[0].rstrip()
    begin = start + len(name) + 1 + (len(rest) - len(rest.lstrip(" \t")) if raw else 0)
    return _scalar(name.strip()), _scalar(raw), (begin, begin + len(raw))


def _scalar(raw: str) -> str:
    """Return a value without its quotes."""
    if len(raw) >= 2 and raw[0] == raw[-1] == '"':
        try:
            return str(json.loads(raw))
        except ValueError:
            return raw[1:-1]
    if len(raw) >= 2 and raw[0] == raw[-1] == "'":
        return raw[1:-1].replace("''", "'")
    return raw


def _yaml(source: str) -> dict[str, object]:
    """Read one field as YAML; empty if it is none, too deep, or uses anchors or aliases."""
    # Only nested values need it, and importing it costs as much as many loads.
    import yaml

    source = with_line_feeds(source).rstrip() + "\n"
    try:
        found = yaml.load(source, Loader=_strict_loader())
    except yaml.YAMLError:
        return {}
    return {str(name): value for name, value in found.items()} if isinstance(found, dict) else {}


@cache
def _strict_loader() -> Any:
    """Make the YAML loader: plain Python, no types but text, and none of YAML's ways to grow."""
    import yaml

    class StrictLoader(yaml.BaseLoader):
        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            event = self.peek_event()  # type: ignore[no-untyped-call]
            self.depth += 1
            # With anchors and aliases a few bytes can stand for gigabytes.
            if self.depth > MAX_DEPTH or getattr(event, "anchor", None) is not None:
                raise yaml.YAMLError
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

    return StrictLoader


def _written(value: str, bare: bool) -> str:
    """Write a value so that this module, YAML and programs that only drop quotes read the same."""
    if not value or bare or _is_plain(value):
        return value
    if '"' not in value and "\\" not in value:
        return f'"{value}"'
    if "'" not in value:
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=False)


def _is_plain(value: str) -> bool:
    return (
        (value[0].isalpha() or value[0] in "(/_")
        and _TYPED.match(value) is None
        and not value.endswith(":")
        and not any(mark in value for mark in (": ", " #", "\t"))
    )


def _changed(front: str, field: Field, value: str, written: str) -> str:
    """Replace a field's value; lines below that belong to it go."""
    begin, end = field.token
    old = front[begin:end]
    quote = old[:1] if old[:1] in ('"', "'") else ""
    if old.startswith("[") or (isinstance(field.value, list) and not old):
        written = f"[{', '.join(part.strip() for part in value.split(','))}]" if value else ""
    elif quote and written == value and value and quote not in value:
        written = f"{quote}{value}{quote}"
    before = front[:begin] if written else front[:begin].rstrip(" \t")
    if written and before.endswith(":"):
        before += " "
    line = _LINE.match(front, end)
    rest = line[0] if line else ""
    return before + written + rest + front[field.stop :]


def name_and_version(fields: str) -> tuple[str | None, str | None]:
    """Read the two known keys of a header, as text: YAML would make the version 1.10 the number 1.1."""
    values = {key: _header_value(value.strip()) for key, value in _HEADER_FIELD.findall(fields)}
    return values.get("name"), values.get("version")


def _header_value(value: str) -> str | None:
    """Return a value without quotes or comment, ``None`` if nothing is left."""
    quoted = _HEADER_QUOTED.match(value)
    return (quoted[2] if quoted else _HEADER_COMMENT.split(value, maxsplit=1)[0].rstrip()) or None
