"""The ``npl-instructions`` header of a prompt.

A separate module: loading an item needs it, but not the code that compares and updates prompts, which is slow
to import.
"""

from __future__ import annotations

import re

from npl_index.markdown.fences import match_npl_header
from npl_index.markdown.front_matter import MAX_YAML, divide, name_and_version, values

_BEFORE_HEADER = re.compile(r"\s*(?:\* \* \*[ \t]*\n\s*)?")


def version_of(text: str) -> str | None:
    """Return the version in a text's ``npl-instructions`` header, or else in its front matter, as written.

    :param text: with line feeds as line ends.
    """
    front, rest = divide(text[: MAX_YAML + 8])
    before = _BEFORE_HEADER.match(rest)
    header = match_npl_header(text, len(front) + (before.end() if before else 0))
    if header is not None:
        return name_and_version(header[1])[1]
    value = values(front).get("version")
    return value if isinstance(value, str) and value else None
