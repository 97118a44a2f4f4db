"""Front matter and version headers of a prompt.

Front matter is YAML between two ``---`` lines at the start of a file. A
versioned prompt starts with a header instead::

    npl-instructions:
       name: npl-conventions
       version: 1.5.0
    ---

Both are read as text: ``1.10`` stays ``1.10``. What cannot be read gives no
fields; it is no error, because prompts are written by hand.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

#: Longer front matter is not read, in characters.
MAX_FRONT_MATTER = 16 * 1024
#: Nor is front matter whose values nest deeper.
MAX_DEPTH = 16

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$", re.DOTALL | re.MULTILINE)
_HEADER = re.compile(r"\s*(?:\* \* \*[ \t]*\n\s*)?npl-instructions:[ \t]*\n((?:[ \t]+\S.*\n)+)---")
_VERSION = re.compile(r"^[ \t]+version:[ \t]*(.*?)[ \t]*(?:[ \t]#.*)?$", re.MULTILINE)


def front_matter(text: str) -> dict[str, object]:
    """Return the fields of a text's front matter, all scalars as text.

    :returns: fields by name; empty if there is none, or it is no mapping, too long, too deep or uses
        anchors or aliases (with which a few bytes can stand for gigabytes).
    """
    block = _FRONT_MATTER.match(text[: MAX_FRONT_MATTER + 8])
    if block is None:
        return {}
    # Only documents with front matter need it, and it takes as long to import as many loads.
    import yaml

    try:
        fields = yaml.load(block[1], Loader=_strict_loader())
    except yaml.YAMLError:
        return {}
    return {str(name): value for name, value in fields.items()} if isinstance(fields, dict) else {}


def version_of(text: str) -> str | None:
    """Return the version in a text's ``npl-instructions`` header, else in its front matter."""
    block = _FRONT_MATTER.match(text[: MAX_FRONT_MATTER + 8])
    header = _HEADER.match(text, block.end() if block is not None else 0)
    if header is not None:
        version = _VERSION.search(header[1])
        return version[1].strip("'\"") or None if version is not None else None
    value = front_matter(text).get("version") if block is not None else None
    return value if isinstance(value, str) and value else None


@cache
def _strict_loader() -> Any:
    """Make the YAML loader: plain Python, no types but text, and none of YAML's ways to grow."""
    import yaml

    class StrictLoader(yaml.BaseLoader):
        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            event = self.peek_event()  # type: ignore[no-untyped-call]
            self.depth += 1
            if self.depth > MAX_DEPTH or getattr(event, "anchor", None) is not None:
                raise yaml.YAMLError
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

    return StrictLoader
