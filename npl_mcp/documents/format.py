"""The file format of change requests: keys, slugs, values of fields, titles, and new files.

A change request is a file ``<KEY>-<slug>.md``: flat front matter between ``---`` lines, a heading of level 1
with the title, sections.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from npl_index.errors import InvalidRequestError, UnreadableDocumentError
from npl_index.markdown.blocks import read_blocks
from npl_index.markdown.editing import check_closed
from npl_index.markdown.front_matter import divide as divide_text
from npl_index.markdown.front_matter import new_front_matter, with_line_feeds
from npl_index.selectors.labels import is_visible
from npl_mcp.stores.base import checks

Type = Literal[
    "Architecture", "Feature Enhancement", "Bug Fix", "Technical Debt", "Documentation", "Research"
]
Status = Literal[
    "Proposed", "Approved", "In Progress", "Implemented", "Rejected", "On Hold", "Partially Implemented"
]
TYPES: tuple[str, ...] = get_args(Type)
STATUSES: tuple[str, ...] = get_args(Status)
PRIORITIES = ("Low", "Medium", "High", "Critical")
DEFAULTS: Mapping[str, str] = {"status": STATUSES[0], "type": TYPES[1], "priority": PRIORITIES[1]}
"""Values of absent fields."""

SUFFIX = ".md"
KEY_LISTS = ("relatedTickets", "dependsOn", "blocks")
DATES = ("dateCreated", "lastModified", "implementationDate")

MAX_NUMBER = 99_999
"""Highest number of a change request. Longer numbers are dates and the like, and would use up all numbers."""

_CODE = re.compile(r"[A-Z][A-Z0-9]{1,4}")
_KEY = re.compile(r"(?:([A-Z][A-Z0-9]{1,4})-)?([0-9]+)", re.IGNORECASE | re.ASCII)
_MAX_DIGITS = 18
_MAX_SLUG = 50
_MAX_NOTE = 2_000

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class ChangeKey:
    """The key of a change request.

    :param code: code of its project; ``None`` if the caller gave only a number.
    :param number: number of the change request.
    """

    code: str | None
    number: int

    @classmethod
    def parse(cls, text: str, parameter: str = "key") -> ChangeKey:
        """Read a key: ``TST-005``, ``tst-5`` or ``5``.

        :param parameter: name of the tool's parameter, for messages.
        :raises InvalidRequestError: the text is not a key.
        """
        clean = checks.line(text, parameter)
        match = _KEY.fullmatch(clean)
        if match is None or len(match[2]) > len(str(MAX_NUMBER)):
            raise checks.invalid(parameter, f"is {clean[:64]!r}, which is not a key", "e.g. TST-005 or 5")
        return cls(match[1] and match[1].upper(), int(match[2]))

    def of(self, code: str) -> str:
        """Return the key in the form of files, e.g. ``TST-005``.

        :param code: code of the project.
        """
        return f"{code}-{self.number:03d}"


def parse_code(text: str) -> str:
    """Return a project's code in capitals.

    :raises InvalidRequestError: the text is not a code.
    """
    code = checks.line(text, "project").upper()
    if _CODE.fullmatch(code) is None:
        hint = "a project's code is a letter and 1 to 4 letters or digits, e.g. TST"
        raise checks.invalid("project", f"is {text[:64]!r}, which is not a code", hint)
    return code


def is_code(text: str) -> bool:
    """Return whether a text is a project's code in the form of files, in capitals."""
    return _CODE.fullmatch(text) is not None


def number_in(key: str) -> int | None:
    """Return the number of a key in the form of files; ``None`` for other texts."""
    match = _KEY.fullmatch(key)
    if match is None or match[1] is None or len(match[2]) > _MAX_DIGITS or not key.isupper():
        return None
    return int(match[2])


def key_in(name: str) -> str:
    """Return the key at the beginning of a file's name, unchanged; empty without one."""
    match = _KEY.match(name)
    return match[0] if match and match[1] else ""


def slug(title: str, kind: str) -> str:
    """Return the part of a file's name after the key, made of the title.

    :param title: title of the change request; all characters but a-z, digits, blanks and hyphens are dropped.
    :param kind: type of the change request; used if no character of the title remains.
    """
    kept = re.sub(r"[^a-z0-9 -]", "", unicodedata.normalize("NFC", title).lower())
    short = re.sub(r"[ -]+", "-", kept).strip("-")[:_MAX_SLUG].rstrip("-")
    return short or kind.lower().replace(" ", "-")


def now() -> str:
    """Return the present time in the form of front matter: UTC, ISO 8601, milliseconds."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def choose(name: str, parameter: str, options: Sequence[str]) -> str:
    """Check a field's name in an argument that is an object.

    :param parameter: name of the tool's parameter, for messages.
    :param options: names of the object's fields.
    :raises InvalidRequestError: the object has no such field.
    """
    if name not in options:
        raise checks.invalid(parameter, f"has no field {name[:64]!r}", f"its fields are {', '.join(options)}")
    return name


def check_field(name: str, value: object, parameter: str) -> str:
    """Check an attribute's value and return it as text; an empty text clears the attribute.

    :param name: name of an attribute that callers may set.
    :param value: a string; for attributes with several values also a list of strings.
    :param parameter: name of the tool's parameter, for messages.
    :raises InvalidRequestError: the value is invalid for the attribute.
    """
    if name in KEY_LISTS or name == "impactAreas":
        parts = _list_of(value, parameter)
        if name in KEY_LISTS:
            return ",".join(dict.fromkeys(_full_key(part, parameter) for part in parts))
        return ", ".join(checks.line(part, parameter) for part in parts)
    if not isinstance(value, str):
        raise checks.invalid(parameter, "is not a string", "give a string")
    if name == "priority":
        return checks.choice(value, parameter, PRIORITIES)
    if not value.strip():
        return ""
    if name in DATES:
        return _date(value.strip(), parameter)
    return checks.line(value, parameter, _MAX_NOTE if name == "implementationNotes" else checks.LINE)


def _list_of(value: object, parameter: str) -> list[str]:
    """Return the entries of a list, or of a string with commas."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, Sequence) or not all(isinstance(part, str) for part in parts):
        raise checks.invalid(parameter, "is not a list of strings", "separate entries by commas")
    if any("," in part for part in parts):
        raise checks.invalid(parameter, "has an entry with a comma")
    return [part.strip() for part in parts if part.strip()]


def _full_key(text: str, parameter: str) -> str:
    key = ChangeKey.parse(text, parameter)
    if key.code is None:
        raise checks.invalid(parameter, f"has {text!r} without a project", "e.g. TST-005")
    return key.of(key.code)


def _date(text: str, parameter: str) -> str:
    if _DAY.fullmatch(text) or _MOMENT.fullmatch(text):
        with suppress(ValueError):
            datetime.fromisoformat(text[:16])
            return text
    raise checks.invalid(parameter, f"is {text[:64]!r}, which is not a date", "e.g. 2026-01-31")


def divide(data: bytes) -> tuple[str, bytes]:
    """Divide a file into front matter with its ``---`` lines, which may be empty, and the bytes after it.

    :raises UnreadableDocumentError: the file is not UTF-8.
    """
    try:
        front, _ = divide_text(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise UnreadableDocumentError(f"not UTF-8 at byte {error.start}", hint="save it as UTF-8") from None
    return front, data[len(front.encode()) :]


_ESCAPED_MARKS = re.compile(r"\\(#+)$")


def heading_of(title: str) -> str:
    r"""Return a title as a heading of level 1; ``#`` marks that would belong to the heading are escaped."""
    return "# " + re.sub(r"(^|[ \t\\])(#+)$", r"\1\\\2", title)


def title_in_heading(heading: str) -> str:
    """Return the title of a heading's source; the inverse of :func:`heading_of`."""
    return _ESCAPED_MARKS.sub(r"\1", heading)


def without_title(content: str) -> str:
    """Return a text without a heading of level 1 in its first line."""
    first, _, rest = content.lstrip("\n").partition("\n")
    return rest if re.match(r" {0,3}#(?:[ \t]|$)", first) else content


NEW = ("priority", "phaseEpic", "relatedTickets", "dependsOn", "blocks", "assignee", "impactAreas")
"""Fields of a new change request besides its title, in the order of its front matter."""

MAX_CONTENT = 1_000_000
"""Characters of the Markdown of a new change request."""

_TEMPLATES = Path(__file__).resolve().parent.parent / "data" / "change_requests"


@dataclass(frozen=True, slots=True)
class Draft:
    """A checked change request without a number.

    :param kind: type of the change request.
    :param title: title, one line.
    :param values: other fields of the front matter.
    :param content: Markdown below the title; ``None`` stands for the type's template.
    :param made: present time, in the form of :func:`~npl_mcp.documents.format.now`.
    """

    kind: str
    title: str
    values: Mapping[str, str]
    content: str | None
    made: str

    @classmethod
    def parse(cls, kind: str, data: Mapping[str, object]) -> Draft:
        """Check a caller's input.

        :param kind: one of :data:`~npl_mcp.documents.format.TYPES`.
        :param data: ``title``, fields of :data:`NEW`, and ``content`` instead of the template.
        :raises InvalidRequestError: a field is unknown, or its value is invalid.
        :raises MissingRequestError: there is no title.
        """
        for name in data:
            choose(name, "data", ("title", *NEW, "content"))
        title = checks.line(_string_of(data, "title") or "", "data.title")
        if not is_visible(title):
            raise checks.invalid("data.title", "has no visible character")
        content = _string_of(data, "content")
        if content is not None and content.strip():
            checks.text(content, "data.content", MAX_CONTENT)
            content = without_title(with_line_feeds(content)).strip("\n")
            check_closed(read_blocks(content))
        values = {"priority": DEFAULTS["priority"]}
        for name in NEW:
            if data.get(name) is not None:
                values[name] = check_field(name, data[name], f"data.{name}")
        return cls(checks.choice(kind, "type", TYPES), title, values, content or None, now())

    def text(self, key: str) -> str:
        """Return the text of the file."""
        first = {"code": key, "status": DEFAULTS["status"], "dateCreated": self.made, "type": self.kind}
        body = self.content or template(self.kind).rstrip("\n")
        front = new_front_matter({**first, **self.values}, bare=DATES)
        return f"{front}\n{heading_of(self.title)}\n\n{body}\n"

    def headings(self) -> tuple[str, ...] | None:
        """Return the headings of the template; ``None`` if the caller gave content."""
        if self.content is not None:
            return None
        return tuple(line for line in template(self.kind).split("\n") if line.startswith("## "))


@cache
def template(kind: str) -> str:
    """Return a type's template: the Markdown below the title, with a question in each section.

    :param kind: one of :data:`~npl_mcp.documents.format.TYPES`.
    """
    return (_TEMPLATES / f"{kind.lower().replace(' ', '_')}.md").read_text(encoding="utf-8")


def _string_of(data: Mapping[str, object], name: str) -> str | None:
    """Return a field of the input; ``None`` if it is absent.

    :raises InvalidRequestError: the value is not a string.
    """
    value = data.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidRequestError(f"data.{name} is not a string", parameter="data", hint="give a string")
    return value
