"""Fences and the marks of NPL in texts that are not parsed."""

from __future__ import annotations

import re

from npl_index.markdown.front_matter import values

_NPL_HEADER = re.compile(r"npl-instructions:[ \t]*\n((?:[ \t]+[^\s:#][^:\n]*:.*\n){1,64})---.*(?:\n|\Z)")
_INDENTATION = re.compile(r"^[ \t]+", re.MULTILINE)

SEPARATOR = "* * *"
BETWEEN = f"\n\n{SEPARATOR}\n\n"

_MARKER = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def match_npl_header(text: str, at: int = 0) -> re.Match[str] | None:
    """Match an ``npl-instructions`` header; group 1 holds its indented ``key: value`` lines."""
    return _NPL_HEADER.match(text, at)


def name_and_version(header: str) -> tuple[str | None, str | None]:
    """Return the name and the version in an ``npl-instructions`` header, as text.

    :param header: its indented ``key: value`` lines.
    """
    fields = values("---\n" + _INDENTATION.sub("", header))
    name, version = (
        value if isinstance(value, str) else "" for value in map(fields.get, ("name", "version"))
    )
    return name or None, version or None


def open_fence(fence: str, line: str) -> str:
    """Return the marks of the open fence after a line, ``""`` for none.

    :param fence: those before the line.
    """
    marker = _MARKER.match(line)
    if marker is None or (fence and not marker[1].startswith(fence)):
        return fence
    if fence:
        return fence if marker[2].strip() else ""
    return "" if marker[1][0] == "`" and "`" in marker[2] else marker[1]
