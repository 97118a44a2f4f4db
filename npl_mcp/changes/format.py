"""Change requests as files: keys, slugs, and front matter that is read and edited as data.

A change request is ``<KEY>-<slug>.md``: flat front matter between ``---`` lines, a heading of level 1 with
the title, sections. Fields are read line by line, as the programs that write them do, since their values are
not always YAML (``phaseEpic: Phase 2: Import``): a line is cut at its first colon, quotes around a value and
a comment behind it (``#`` between blanks) are no part of it. Lists and nested values are read as YAML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone

from npl_index.errors import InvalidRequestError, UnreadableDocumentError
from npl_index.items.front_matter import front_matter
from npl_index.markdown.newlines import with_line_feeds
from npl_index.markdown.preambles import front_matter as find_front_matter
from npl_mcp.stores.base import checks

STATUSES = (
    "Proposed",
    "Approved",
    "In Progress",
    "Implemented",
    "Rejected",
    "On Hold",
    "Partially Implemented",
)
TYPES = ("Architecture", "Feature Enhancement", "Bug Fix", "Technical Debt", "Documentation", "Research")
PRIORITIES = ("Low", "Medium", "High", "Critical")
DEFAULTS: Mapping[str, str] = {"status": STATUSES[0], "type": TYPES[1], "priority": PRIORITIES[1]}
"""What a file without the field counts as."""

KEY_LISTS = ("relatedTickets", "dependsOn", "blocks")
DATES = ("implementationDate",)
LINES = ("phaseEpic", "assignee", "implementationNotes")

_CODE = re.compile(r"[A-Z][A-Z0-9]{1,4}")
_KEY = re.compile(r"(?:([A-Z][A-Z0-9]{1,4})-)?([0-9]{1,5})", re.IGNORECASE | re.ASCII)
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_SLUG_LENGTH = 50
_NO_KEYS = frozenset({"none", "n/a", "null", "undefined"})
_LONGEST_NOTE = 2_000

_LINE_END = re.compile(rb"\r\n|\r|\n")
_COMMENT = re.compile(r"(?:^|[ \t]+)#(?:[ \t]|$)")
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')[ \t]*(?:#.*)?$""")
# What YAML would read as something else than text, besides what begins with a digit or a sign.
_TYPED = re.compile(r"(?:true|false|null|yes|no|on|off|y|n)$", re.IGNORECASE)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Key:
    """What names a change request.

    :param code: the project's; ``None`` where only a number was given.
    :param number: of the change request.
    """

    code: str | None
    number: int

    @classmethod
    def parse(cls, text: str, parameter: str = "key") -> Key:
        """Read a key: ``TST-005``, ``tst-5`` or ``5``.

        :raises MissingRequestError: it is blank.
        :raises InvalidRequestError: it is none.
        """
        clean = checks.line(text, parameter)
        found = _KEY.fullmatch(clean)
        if found is None:
            raise InvalidRequestError(
                f"{parameter} is {clean[:64]!r}, which is no key",
                parameter=parameter,
                hint="e.g. TST-005 or 5",
            )
        return cls(found[1] and found[1].upper(), int(found[2]))

    def of(self, code: str) -> str:
        """Write the key as it stands in files of a project."""
        return f"{code}-{self.number:03d}"


def parse_code(text: str, parameter: str = "project") -> str:
    """Read a project's code, whatever its case.

    :raises MissingRequestError: it is blank.
    :raises InvalidRequestError: it is none.
    """
    code = checks.line(text, parameter).upper()
    if _CODE.fullmatch(code) is None:
        raise InvalidRequestError(
            f"{parameter} is {text[:64]!r}, which is invalid",
            parameter=parameter,
            hint="a project's code is a letter and 1 to 4 letters or digits, e.g. TST",
        )
    return code


def is_code(text: str) -> bool:
    """Return whether a text is a project's code as files write it."""
    return _CODE.fullmatch(text) is not None


def number_in(key: str) -> int | None:
    """Return the number of a key as files write it; ``None`` if it is none."""
    found = _KEY.fullmatch(key)
    return int(found[2]) if found is not None and found[1] and found[1].isupper() else None


def slug(title: str, kind: str) -> str:
    """Make the part of a file's name that says what it is about.

    :param title: letters outside a-z are dropped, as in files that exist.
    :param kind: type of the change request, for titles of which nothing stays.
    """
    kept = re.sub(r"[^a-z0-9 -]", "", title.lower())
    short = re.sub(r"[ -]+", "-", kept).strip("-")[:_SLUG_LENGTH].rstrip("-")
    return short or kind.lower().replace(" ", "-")


def check_slug(text: str) -> str:
    """Check a slug that was given.

    :raises InvalidRequestError: it is none, so that it might lead elsewhere.
    """
    if len(text) > _SLUG_LENGTH or _SLUG.fullmatch(text) is None:
        raise InvalidRequestError(
            f"slug is {text[:64]!r}",
            parameter="data",
            hint="use words of a-z and 0-9 with - between, e.g. first-bug",
        )
    return text


def now() -> str:
    """Return the present time as front matter holds it: UTC, ISO 8601, milliseconds."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def check_field(name: str, value: object, parameter: str) -> str:
    """Check an attribute's value, and give it as text; an empty text clears the attribute.

    :param name: of the attribute; one of those callers may set.
    :param value: text, or a list where the attribute holds several.
    :param parameter: what the caller named it by, for messages.
    :raises InvalidRequestError: it does not fit the attribute.
    """
    if name in KEY_LISTS or name == "impactAreas":
        parts = _words(value, parameter)
        wanted = (
            _keys(parts, parameter) if name in KEY_LISTS else [checks.line(part, parameter) for part in parts]
        )
        return ",".join(wanted) if name in KEY_LISTS else ", ".join(wanted)
    if not isinstance(value, str):
        raise InvalidRequestError(f"{parameter} is no text", parameter=parameter, hint="give a string")
    if name == "priority":
        return checks.choice(value, parameter, PRIORITIES)
    if not value.strip():
        return ""
    if name in DATES:
        return _date(value.strip(), parameter)
    return checks.line(value, parameter, _LONGEST_NOTE if name == "implementationNotes" else checks.LINE)


def _words(value: object, parameter: str) -> list[str]:
    """Return the parts of a list, or of a text with commas."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, Sequence) or not all(isinstance(part, str) for part in parts):
        raise InvalidRequestError(
            f"{parameter} is no list of texts", parameter=parameter, hint="separate entries by commas"
        )
    if any("," in part for part in parts):
        raise InvalidRequestError(f"{parameter} has an entry with a comma", parameter=parameter)
    return [part.strip() for part in parts if part.strip() and part.strip().lower() not in _NO_KEYS]


def _keys(parts: Sequence[str], parameter: str) -> list[str]:
    found = []
    for part in parts:
        key = Key.parse(part, parameter)
        if key.code is None:
            raise InvalidRequestError(
                f"{parameter} has {part!r} without a project", parameter=parameter, hint="e.g. TST-005"
            )
        found.append(key.of(key.code))
    return list(dict.fromkeys(found))


def _date(text: str, parameter: str) -> str:
    try:
        if _DAY.fullmatch(text):
            date.fromisoformat(text)
            return text
        if _MOMENT.fullmatch(text):
            datetime.fromisoformat(text[:16])
            return text
    except ValueError:
        pass
    raise InvalidRequestError(
        f"{parameter} is {text[:64]!r}, which is no date", parameter=parameter, hint="e.g. 2026-01-31"
    )


@dataclass(frozen=True, slots=True)
class Field:
    """One field of front matter, in bytes of the front matter.

    :param name: its key.
    :param value: as data.
    :param start: of its line.
    :param stop: behind its last line, the line end included.
    :param token: range of the value on the first line, quotes included, comment left out.
    """

    name: str
    value: object
    start: int
    stop: int
    token: tuple[int, int]


def divide(data: bytes) -> tuple[bytes, bytes]:
    """Divide a file into front matter, its ``---`` lines included, and the rest.

    :returns: the front matter is empty if there is none.
    :raises UnreadableDocumentError: the file is not UTF-8.
    """
    try:
        source = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableDocumentError(f"not UTF-8 at byte {error.start}", hint="save it as UTF-8") from None
    count, _ = find_front_matter(with_line_feeds(source).removeprefix("\ufeff"))
    stop = 0
    for _ in range(count):
        line_end = _LINE_END.search(data, stop)
        stop = line_end.end() if line_end else len(data)
    return data[:stop], data[stop:]


def fields(front: bytes) -> tuple[Field, ...]:
    """Read the fields of front matter.

    :param front: as :func:`divide` gives it.
    """
    return tuple(_read(group) for group in _groups(front))


def as_mapping(found: Sequence[Field]) -> dict[str, object]:
    """Return values by name; of a repeated name the last counts."""
    return {field.name: field.value for field in found}


def with_fields(front: bytes, changes: Mapping[str, str], *, add: bool = True) -> bytes:
    """Set fields: on their lines, or on new ones before the closing ``---``; all other bytes stay.

    :param front: as :func:`divide` gives it, not empty.
    :param changes: values as text, by name; an empty one leaves the name without a value.
    :param add: make new lines for fields that are absent.
    """
    for name, value in changes.items():
        found = [field for field in fields(front) if field.name == name]
        for field in reversed(found):
            front = _changed(front, field, value)
        if not found and value and add:
            lines = front.splitlines(keepends=True)
            closing = len(front) - len(lines[-1])
            end = b"\r\n" if lines[0].endswith(b"\r\n") else lines[0][-1:]
            front = front[:closing] + f"{name}: {_written(name, value)}".encode() + end + front[closing:]
    return front


def head(values: Mapping[str, str]) -> str:
    """Write the front matter of a new file; fields without a value are left out."""
    lines = [f"{name}: {_written(name, value)}" for name, value in values.items() if value]
    return "\n".join(["---", *lines, "---", ""])


def _written(name: str, value: str) -> str:
    """Write a value so that this module, YAML and programs that only drop quotes read the same."""
    kept = name in KEY_LISTS or name in DATES or name in ("dateCreated", "lastModified")
    if not value or kept or _is_plain(value):
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


def _changed(front: bytes, field: Field, value: str) -> bytes:
    """Put another value in the place of a field's; what goes on below its line goes."""
    begin, end = field.token
    old = front[begin:end]
    quote = old[:1].decode() if old[:1] in (b'"', b"'") else ""
    text = _written(field.name, value)
    if old.startswith(b"[") or (isinstance(field.value, list) and not old):
        text = f"[{', '.join(part.strip() for part in value.split(','))}]" if value else ""
    elif quote and text == value and text and quote not in value:
        text = f"{quote}{text}{quote}"
    line_end = _LINE_END.search(front, end)
    rest = front[end : line_end.end()] if line_end else front[end:]
    before = front[:begin]
    if text and before.endswith(b":"):
        before += b" "
    return (before if text else before.rstrip(b" \t")) + text.encode() + rest + front[field.stop :]


def _groups(front: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Return each field's offset, first line, and the lines below that belong to it."""
    at, current = 0, None
    for number, line in enumerate(front.splitlines(keepends=True)):
        begin, at = at, at + len(line)
        text = line.strip()
        if number == 0 or text.startswith(b"#") or not text:
            continue
        if line[:1] in (b" ", b"\t") or (text == b"-" or text.startswith(b"- ")):
            if current is not None:
                current = (current[0], current[1], front[current[0] + len(current[1]) : at])
            continue
        if current is not None:
            yield current
        current = (begin, line, b"") if b":" in line else None
    if current is not None:
        yield current


def _read(group: tuple[int, bytes, bytes]) -> Field:
    start, line, below = group
    name, _, rest = line.rstrip(b"\r\n").decode().partition(":")
    text = rest.strip(" \t")
    quoted = _QUOTED.match(text)
    if quoted is not None:
        raw = quoted[1]
    else:
        comment = _COMMENT.search(text)
        raw = text[: comment.start()].rstrip() if comment else text
    lead = len(rest) - len(rest.lstrip(" \t")) if raw else 0
    begin = start + len(f"{name}:{rest[:lead]}".encode())
    value: object = _scalar(raw)
    if below.strip() or raw[:1] in ("[", "{"):
        chunk = with_line_feeds((line + below).decode())
        value = front_matter(f"---\n{chunk.rstrip()}\n---").get(_scalar(name.strip()), value)
    return Field(
        _scalar(name.strip()),
        value,
        start,
        start + len(line) + len(below),
        (begin, begin + len(raw.encode())),
    )


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


_ESCAPED_MARKS = re.compile(r"\\(#+)$")


def heading_of(title: str) -> str:
    r"""Write a title as a heading of level 1; marks that would be taken for the heading's own are escaped."""
    return "# " + re.sub(r"(^|[ \t\\])(#+)$", r"\1\\\2", title)


def title_of(heading: str) -> str:
    """Return the title a heading's source stands for; reverses :func:`heading_of`."""
    return _ESCAPED_MARKS.sub(r"\1", heading)


def without_title(content: str) -> str:
    """Return a text without the heading of level 1 it begins with, if it does."""
    first, _, rest = content.lstrip("\n").partition("\n")
    return rest if re.match(r" {0,3}#(?:[ \t]|$)", first) else content
