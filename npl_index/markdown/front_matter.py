"""Front matter: ``name: value`` lines between two ``---`` lines at the start of a file, parsed and edited.

Fields are parsed line by line, as in the programs that write them, because their values are not always YAML
(``phaseEpic: Phase 2: Import``). A line is split at its first colon. Quotes around a value and a comment
after it (``#`` between blanks) do not belong to the value. Lists and nested values are parsed as YAML. All
scalars stay text: YAML would turn the version 1.10 into the number 1.1. Unparsable values stay as written and
raise no error, because people write these files by hand.

Edits are splices: bytes outside the changed value stay, with any line ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from typing import Any, NamedTuple

from npl_index.errors import InvalidRequestError, UnreadableDocumentError

MAX_YAML = 16 * 1024
"""Maximum characters of front matter for :func:`front_matter`, and of all fields that are parsed as YAML."""

MAX_DEPTH = 16
"""Maximum levels of lists and mappings in a value."""

MAX_VALUES = 256
"""Maximum values of a document that filters compare."""

MAX_VALUE = 200
"""Maximum compared characters of a value."""

_MAX_FRONT_MATTER = 1 << 20
_OPENING = re.compile(r"(---|\+\+\+)[ \t]*(?:\n|\Z)")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)
_TOML_CLOSING = re.compile(r"^\+\+\+[ \t]*(?:\n|\Z)", re.MULTILINE)
_TOML_KEY = re.compile(r"^[ \t]*([\w.-]+|\"[^\"\n]*\")[ \t]*=[ \t]*", re.MULTILINE)
_TOML_TABLE = re.compile(r"^[ \t]*\[+[\w. \"-]+\]+[ \t]*(?:#.*)?$", re.MULTILINE)
# Lines of a YAML mapping at column 0: a key; an item, a comment, a bracket.
_KEY = re.compile(
    r"""(?:"[^"\n]*"[ \t]*|'[^'\n]*'[ \t]*|(?:[^\s\-?:#,\[\]{}&*!|>'"%@`]|[-?](?=\S))[^\n]*?):(?:\s|\Z)"""
)
_OTHER_LINE = re.compile(r"[ \t]|-(?:[ \t]|\Z)|#|\Z")
_BRACKETS = "[]{}"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_COMMENT = re.compile(r"(?:^|(?<![ \t])[ \t]+)#(?:[ \t]|$)")
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')[ \t]*(?:#.*)?$""")
# Values that YAML does not parse as text, in addition to those that begin with a digit or a sign.
_SPECIAL = re.compile(r"(?:true|false|null|yes|no|on|off|y|n)$|(?s:.*)(?::\Z|: | #|\t)", re.IGNORECASE)


class Field(NamedTuple):
    """A field, with offsets in the front matter.

    :param name: its key.
    :param value: text, or a list or mapping of texts.
    :param start: start of its line.
    :param stop: end of its last line, line end included.
    :param token: range of the value on the first line, with its quotes, without its comment.
    """

    name: str
    value: object
    start: int
    stop: int
    token: tuple[int, int]


def with_line_feeds(text: str) -> str:
    r"""Return a text with ``\n`` in place of each ``\r\n`` and ``\r``."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def decoded(data: bytes, name: str) -> str:
    r"""Return the text of a document with ``\n`` line ends and without a byte order mark.

    :param name: name of the document, for the message.
    :raises UnreadableDocumentError: it is not UTF-8, or binary (holds NUL).
    """
    nul = data.find(0)
    if nul >= 0:
        raise UnreadableDocumentError(f"{name} is binary, not Markdown: it holds NUL at byte {nul}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"{name} is not UTF-8 at byte {error.start}: {error.reason}"
        raise UnreadableDocumentError(problem, hint="save it as UTF-8") from error
    return with_line_feeds(text).removeprefix("\ufeff")


def find_front_matter(source: str) -> tuple[int, str]:
    """Find YAML front matter: ``---`` on the first line to the next ``---`` or ``...`` line.

    The text between them must be blank, look like a mapping (a ``key:`` line, and only lines of a mapping
    at column 0) or be one for PyYAML, and have at most a million characters. Otherwise the first line is a
    thematic break. TOML between two ``+++`` lines counts as well; its fields are written as YAML's.

    :returns: number of lines of the front matter, and the text between the two lines.
    """
    opening = _OPENING.match(source)
    toml = opening is not None and opening[1] == "+++"
    closing = (_TOML_CLOSING if toml else _CLOSING).search(source, opening.end()) if opening else None
    if opening is None or closing is None or closing.start() > _MAX_FRONT_MATTER:
        return 0, ""
    body = source[opening.end() : closing.start()]
    if toml:
        body, keys = _TOML_KEY.subn(r"\1: ", _TOML_TABLE.sub("", body))
        if not keys:
            return 0, ""
    elif body.strip() and not _is_mapping(body, _BRACKETS) and not _yaml_fields(body):
        return 0, ""
    return source.count("\n", 0, closing.end()) + (not closing[0].endswith("\n")), body


def _is_mapping(body: str, others: str = "") -> bool:
    """Return whether front matter has a key at column 0, and there only lines of a mapping.

    :param others: characters that begin further lines.
    """
    lines = body.split("\n")
    rest = [line for line in lines if not _KEY.match(line)]
    return len(rest) < len(lines) and all(_OTHER_LINE.match(line) or line[0] in others for line in rest)


def front_matter(text: str) -> dict[str, object]:
    """Return the fields of a text's front matter by name; empty without any, or if it is too long."""
    _, body = find_front_matter(with_line_feeds(text[: MAX_YAML + 8]).removeprefix("\ufeff"))
    return values(f"---\n{body}")


def divide(text: str) -> tuple[str, str]:
    """Divide a text into its front matter with the ``---`` lines, or ``""``, and the remaining text.

    :param text: with any line ends; a byte order mark belongs to the front matter.
    """
    count, _ = find_front_matter(with_line_feeds(text).removeprefix("\ufeff"))
    stop = 0
    for line in islice(_LINE.finditer(text), count):
        stop = line.end()
    return text[:stop], text[stop:]


def texts_of(front: str, names: Sequence[str]) -> list[str]:
    """Return the texts of fields, in the order of the names; a list counts as its texts.

    :param front: result of :func:`find_front_matter`; text after :data:`MAX_YAML` is ignored.
    """
    value_of = {field.name: field.value for field in fields(f"---\n{front[:MAX_YAML]}", names)}
    lists = (value if isinstance(value, list) else [value] for value in map(value_of.get, names))
    texts = (text for text in chain.from_iterable(lists) if isinstance(text, str))
    return [shown for text in texts if (shown := " ".join(text.split()))]


_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ][0-9]{2}:")
"""A day before a time; a filter may name the day alone."""


def field_values(front: str) -> list[tuple[str, str]]:
    """Return the names and values of fields, folded for comparisons.

    A list counts as each of its values; tags may be a list between commas.

    :param front: result of :func:`find_front_matter`; text after :data:`MAX_YAML` is ignored.
    """
    pairs: dict[tuple[str, str], None] = {}
    for field in fields(f"---\n{front[:MAX_YAML]}"):
        value = field.value
        if isinstance(value, str) and folded_value(field.name) == "tags":
            value = value.split(",")
        listed = value if isinstance(value, list) else [value]
        for part in listed[:MAX_VALUES] or [""]:
            text = part if isinstance(part, str) else ""
            pairs[folded_value(field.name), folded_value(text)] = None
            if day := _DAY.match(text):
                pairs[folded_value(field.name), day[1]] = None
    return list(pairs)[:MAX_VALUES]


def folded_value(text: str) -> str:
    """Return a name or a value of a field for comparisons; a tag may begin with ``#``."""
    return " ".join(text[:MAX_VALUE].split()).casefold().removeprefix("#")


def fields(front: str, names: Collection[str] | None = None) -> tuple[Field, ...]:
    """Return the fields of front matter, in its order.

    :param front: result of :func:`divide`.
    :param names: names of the fields to parse; ``None`` for all.
    """
    opening = _LINE.match(front)
    first = opening.end() if opening else 0
    closing = _CLOSING.search(front, first)
    body = front[first : closing.start() if closing else len(front)]
    if body.strip() and not _is_mapping(with_line_feeds(body)) and (read := _yaml_fields(body, first)):
        return tuple(field for field in read if names is None or field.name in names)
    allowance = MAX_YAML
    result = []
    for start, first, stop in _bounds(front):
        name, value, token = _field_line(front, start, first)
        if names is not None and name not in names:
            continue
        nested = front[first:stop].strip() or front.startswith(("[", "{"), token[0])
        if nested and stop - start <= allowance:
            allowance -= stop - start
            value = next((field.value for field in _yaml_fields(front[start:stop])), value)
        result.append(Field(name, value, start, stop, token))
    return tuple(result)


def values(front: str) -> dict[str, object]:
    """Return values by name; the last value of a repeated name counts.

    :param front: result of :func:`divide`.
    """
    return {field.name: field.value for field in fields(front)}


def with_values(
    front: str, changes: Mapping[str, str], *, add: bool = True, bare: Collection[str] = ()
) -> str:
    """Set values: on their lines, or on new ones before the closing ``---``; all other characters stay.

    :param front: result of :func:`divide`, not empty.
    :param changes: values as text, by name; an empty text removes the value.
    :param add: add lines for absent names.
    :param bare: names whose values need no quotes, such as dates.
    :raises InvalidRequestError: the front matter is TOML.
    """
    if front.startswith("+++"):
        raise InvalidRequestError("the front matter is TOML", hint="change it in an editor, or write YAML")
    for name, value in changes.items():
        written = _encode(value, name in bare)
        present = [field for field in fields(front) if field.name == name]
        for field in reversed(present):
            front = _with_value(front, field, value, written)
        if not present and value and add:
            lines = _LINE.findall(front)
            closing = len(front) - len(lines[-1])
            end = lines[0][len(lines[0].rstrip("\r\n")) :]
            front = f"{front[:closing]}{name}: {written}{end}{front[closing:]}"
    return front


def new_front_matter(values: Mapping[str, str], *, bare: Collection[str] = ()) -> str:
    """Write front matter for a new file; names without a value are omitted.

    :param bare: as in :func:`with_values`.
    """
    lines = [f"{name}: {_encode(value, name in bare)}" for name, value in values.items() if value]
    return "\n".join(["---", *lines, "---", ""])


def _bounds(front: str) -> Iterator[Sequence[int]]:
    """Return each field's start, the end of its first line, and the end of its last line."""
    bounds: list[list[int]] = []  # also of other lines
    for line in islice(_LINE.finditer(front), 1, None):
        text = line[0].strip(" \t\r\n")
        if text and not text.startswith("#"):
            if line[0][0] not in " \t" and text != "-" and not text.startswith("- "):
                bounds.append([line.start(), line.end(), 0])
            for last in bounds[-1:]:
                last[2] = line.end()
    return (each for each in bounds if ":" in front[each[0] : each[1]])


def _field_line(front: str, start: int, first: int) -> tuple[str, object, tuple[int, int]]:
    """Return the name, the value and the value's range in a field's first line."""
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
            return _whole(str(json.loads(raw)))
        except ValueError:
            return raw[1:-1]
    if len(raw) >= 2 and raw[0] == raw[-1] == "'":
        return raw[1:-1].replace("''", "'")
    return raw


def _whole(text: str) -> str:
    """Return a text with its surrogate pairs joined, and U+FFFD for a half; escapes can write both."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _yaml_fields(body: str, offset: int = 0) -> list[Field]:
    """Return the fields of a mapping as PyYAML reads it; empty for other text, and for a mapping that is too
    long, too deep, or uses anchors or aliases.

    :param offset: of the text in the front matter.
    """
    if len(body) > MAX_YAML or ":" not in body:
        return []
    import yaml  # only values of several lines need it, and importing it costs as much as many loads

    try:
        loader = _strict_loader()(body)  # it refuses control characters
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode) or node.flow_style:
            return []
        starts = [body.rfind("\n", 0, key.start_mark.index) + 1 for key, _ in node.value]
        fields = []
        for (key, value), start, stop in zip(node.value, starts, [*starts[1:], len(body)], strict=True):
            if not isinstance(key, yaml.ScalarNode) or body[start : key.start_mark.index].strip():
                return []
            token = offset + value.start_mark.index, offset + value.end_mark.index
            content = loader.construct_object(value, deep=True)
            fields.append(Field(key.value, content, offset + start, offset + stop, token))
    except (yaml.YAMLError, ValueError):
        return []
    return fields


@cache
def _strict_loader() -> Any:
    """Return the YAML loader: in Python, without anchors; every value is a text."""
    import yaml

    class StrictLoader(yaml.BaseLoader):
        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]
            self.depth += 1
            # With anchors and aliases a few bytes can stand for gigabytes.
            if self.depth > MAX_DEPTH or getattr(event, "anchor", None) is not None:
                raise yaml.YAMLError
            node = super().compose_node(parent, index)
            self.depth -= 1
            if isinstance(node, yaml.ScalarNode):
                node.value = _whole(node.value)
            return node

    return StrictLoader


def _encode(value: str, bare: bool) -> str:
    """Write a value that this module, YAML and programs that only drop quotes parse alike."""
    if not value or bare or ((value[0].isalpha() or value[0] in "(/_") and not _SPECIAL.match(value)):
        return value
    if '"' not in value and "\\" not in value:
        return f'"{value}"'
    if "'" not in value:
        return f"'{value}'"
    return json.dumps(value, ensure_ascii=False)


def _with_value(front: str, field: Field, value: str, written: str) -> str:
    """Replace a field's value on all its lines."""
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
