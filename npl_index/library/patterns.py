"""Path patterns: ``*``, ``?`` and ``[…]`` within a folder, ``**`` for any number of folders.

Matching is case-sensitive on every system, and no pattern takes more than a few steps per name: each segment
becomes a regular expression made by :mod:`fnmatch`, which does not backtrack, and all readings of ``**`` are
followed together.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from npl_index.errors import InvalidRequestError

_MAGIC = re.compile(r"[*?\[]")
_BRACES = re.compile(r"\{([^{},]*,[^{}]*)\}")  # the innermost
_MAX_SEGMENTS = 64
_MAX_WILDCARDS = 64


_MAX_ALTERNATIVES = 64


def alternatives(text: str) -> tuple[str, ...]:
    """Expand the braces of a pattern: ``{a,b}.md`` becomes ``a.md`` and ``b.md``.

    :raises InvalidRequestError: there are more than 64 alternatives.
    """
    waiting, done = [text], dict[str, None]()
    while waiting:
        braces = _BRACES.search(first := waiting.pop(0))
        if braces is None:
            done[first] = None
        else:
            before, after = first[: braces.start()], first[braces.end() :]
            waiting += [f"{before}{part}{after}" for part in braces[1].split(",")]
        if len(waiting) + len(done) > _MAX_ALTERNATIVES:
            problem = f"the braces expand to more than {_MAX_ALTERNATIVES} patterns"
            raise InvalidRequestError(problem, parameter="file")
    return tuple(done)


def has_magic(text: str) -> bool:
    """Return whether a text contains a wildcard: ``*``, ``?`` or ``[``."""
    return _MAGIC.search(text) is not None


class PathPattern(NamedTuple):
    """A pattern for the segments of a path below a folder.

    :param parts: an expression for each segment; ``None`` for any number of segments.
    """

    parts: tuple[re.Pattern[str] | None, ...]

    @classmethod
    def compile(cls, segments: Sequence[str], *, parameter: str) -> PathPattern:
        """Compile the segments of a pattern.

        :param segments: the pattern, already split; a last ``**`` means every file below.
        :param parameter: the argument the pattern came from, for error messages.
        :raises InvalidRequestError: too many segments or wildcards.
        """
        wildcards = sum(len(_MAGIC.findall(segment)) for segment in segments)
        if len(segments) > _MAX_SEGMENTS or wildcards > _MAX_WILDCARDS:
            limit = f"{_MAX_SEGMENTS} segments and {_MAX_WILDCARDS} wildcards"
            raise InvalidRequestError(f"the pattern has more than {limit}", parameter=parameter)
        padded = [*segments, "*"] if segments[-1] == "**" else segments
        parts = (part for at, part in enumerate(padded) if part != "**" or padded[at + 1] != "**")
        return cls(tuple(None if part == "**" else re.compile(fnmatch.translate(part)) for part in parts))

    def matches(self, segments: Sequence[str]) -> bool:
        """Return whether a file's segments match from first to last."""
        return bool(reduce(self.after, segments, self.start) >> len(self.parts))

    def may_hold(self, segments: Sequence[str]) -> bool:
        """Return whether a folder with these segments can contain a match at any depth."""
        return reduce(self.after, segments, self.start) not in (0, 1 << len(self.parts))

    @property
    def start(self) -> int:
        """The parts that may come first; each bit is the number of a part."""
        return self._with_next(1)

    def after(self, numbers: int, segment: str) -> int:
        """Return the parts that may come after a segment.

        :param numbers: the parts that may come before it.
        """
        then = 0
        for number, part in enumerate(self.parts):
            if numbers >> number & 1 and (part is None or part.match(segment)):
                then |= 1 << number + (part is not None)
        return self._with_next(then)

    def ends(self, numbers: int, name: str) -> bool:
        """Return whether a name matches the last part, and this may come next."""
        last = self.parts[-1]
        return bool(numbers >> len(self.parts) - 1 & 1 and last and last.match(name))

    def _with_next(self, numbers: int) -> int:
        """Return parts with the part after each ``**``, which may stand for no folder."""
        any_folders = sum(1 << number for number, part in enumerate(self.parts) if part is None)
        return numbers | (numbers & any_folders) << 1


def fits(pattern: PathPattern | None, path: str) -> bool:
    """Return whether a file's path matches a pattern, with its suffix or without."""
    if pattern is None:
        return True
    segments = path.split("/")
    return pattern.matches(segments) or pattern.matches([*segments[:-1], segments[-1].rpartition(".")[0]])
