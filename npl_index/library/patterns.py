"""Path patterns: ``*``, ``?`` and ``[…]`` within a folder, ``**`` for any number of folders.

Matching is case-sensitive on every system, and no pattern takes more than a few steps per name: each segment
becomes a regular expression made by :mod:`fnmatch`, which does not backtrack, and ``**`` may occur once.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass

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
        found = _BRACES.search(first := waiting.pop(0))
        if found is None:
            done[first] = None
        else:
            waiting += [first[: found.start()] + one + first[found.end() :] for one in found[1].split(",")]
        if len(waiting) + len(done) > _MAX_ALTERNATIVES:
            problem = f"the braces expand to more than {_MAX_ALTERNATIVES} patterns"
            raise InvalidRequestError(problem, parameter="file")
    return tuple(done)


def has_magic(text: str) -> bool:
    """Return whether a text contains a wildcard: ``*``, ``?`` or ``[``."""
    return _MAGIC.search(text) is not None


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A pattern for the segments of a path below a folder.

    :param head: one expression per segment before ``**``, or for the whole path without ``**``.
    :param tail: expressions for the segments after ``**``.
    :param deep: the pattern has ``**`` between head and tail.
    """

    head: tuple[re.Pattern[str], ...]
    tail: tuple[re.Pattern[str], ...]
    deep: bool

    @classmethod
    def compile(cls, segments: Sequence[str], *, parameter: str) -> PathPattern:
        """Compile the segments of a pattern.

        :param segments: the pattern, already split; a last ``**`` means every file below.
        :param parameter: the argument the pattern came from, for error messages.
        :raises InvalidRequestError: more than one ``**``, or too many segments or wildcards.
        """
        wildcards = sum(len(_MAGIC.findall(segment)) for segment in segments)
        if len(segments) > _MAX_SEGMENTS or wildcards > _MAX_WILDCARDS:
            limit = f"{_MAX_SEGMENTS} segments and {_MAX_WILDCARDS} wildcards"
            raise InvalidRequestError(f"the pattern has more than {limit}", parameter=parameter)
        stars = [at for at, segment in enumerate(segments) if segment == "**"]
        if len(stars) > 1:
            raise InvalidRequestError("'**' may occur only once in a pattern", parameter=parameter)
        compiled = tuple(re.compile(fnmatch.translate(segment)) for segment in segments)
        if not stars:
            return cls(compiled, (), False)
        return cls(compiled[: stars[0]], compiled[stars[0] + 1 :] or compiled[stars[0] :], True)

    def matches(self, segments: Sequence[str]) -> bool:
        """Return whether a file's segments match from first to last."""
        head, tail = self.head, self.tail
        if len(segments) < len(head) + len(tail) or (not self.deep and len(segments) > len(head)):
            return False
        last = segments[len(segments) - len(tail) :]
        return _all_match(head, segments) and _all_match(tail, last)

    def may_hold(self, segments: Sequence[str]) -> bool:
        """Return whether a folder with these segments can contain a match at any depth."""
        return (self.deep or len(segments) < len(self.head)) and _all_match(self.head, segments)


def _all_match(expressions: Sequence[re.Pattern[str]], segments: Sequence[str]) -> bool:
    pairs = zip(expressions, segments, strict=False)
    return all(expression.match(segment) is not None for expression, segment in pairs)
