"""Order of version numbers."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import NamedTuple

VersionKey = tuple[tuple[int, ...], tuple[tuple[int, int, str], ...]]
"""Numbers without trailing zeros, and the parts of a pre-release; compares by precedence."""

OPERATORS: dict[str, Callable[[VersionKey, VersionKey], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}

NO_VERSION = "0.0.0"
"""The version of a versioned section without one."""

_VERSION = re.compile(r"v?([0-9.]+)(?:-([0-9a-z.-]+))?(?:\+[0-9a-z.-]+)?", re.IGNORECASE)
_RELEASE = ((2, 0, ""),)
_MAX_LENGTH = 100


class VersionTest(NamedTuple):
    """A comparison with a version; ``operator`` is a key of ``OPERATORS``."""

    operator: str
    version: VersionKey

    def holds(self, version: str | None) -> bool:
        """Return whether a version fulfils the comparison; text that is not a version fulfils none."""
        key = version_key(version or "")
        return key is not None and OPERATORS[self.operator](key, self.version)


def version_key(text: str) -> VersionKey | None:
    """Return a key that sorts versions by precedence; ``None`` for text that is not a version.

    The order is that of https://semver.org, item 11: numbers by value; a pre-release before its release;
    its parts one by one, numbers before words; build data ignored. Missing numbers count as 0, and a
    leading ``v`` is allowed.
    """
    match = _VERSION.fullmatch(text.strip()) if len(text) <= _MAX_LENGTH else None
    if match is None:
        return None
    numbers, parts = match[1].split("."), match[2].split(".") if match[2] else []
    if not all(numbers) or not all(parts):
        return None
    values = [int(number) for number in numbers]
    while values and values[-1] == 0:
        values.pop()
    keys = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)
    return tuple(values), keys or _RELEASE
