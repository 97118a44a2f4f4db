"""TOML that comes with a clone or from another program, read within bounds of time and memory."""

import re
import sys
from typing import Any

MOST_PARTS = 32
"""Parts of a dotted key, which parsers pay for with time and memory in their square."""

LONGEST_WORD = 1_000
"""Characters of a bare key or of a number, which Python writes out in quadratic time."""

# A text without an end reaches to the end of its line or of the file, where the parser refuses it.
_TEXT_OR_COMMENT = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*(?:"{3,5}|\Z)'
    r"|'''(?:[^']|'(?!''))*(?:'{3,5}|\Z)|'[^'\n]*'?"
    r'|"(?:[^"\\\n]|\\[^\n])*"?|\#[^\n]*',
    re.DOTALL,
)
_BETWEEN_KEYS = re.compile(r"[^\w.+ \t-]+")
_BETWEEN_WORDS = re.compile(r"[. \t]+")


def read_toml(text: str) -> dict[str, Any]:
    """Return what a text in TOML says.

    :param text: the caller bounds its length.
    :raises ValueError: it is not TOML, or has a key of too many parts, too long a word, or too many levels.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]
    bare = _TEXT_OR_COMMENT.sub(lambda found: "\n" * found[0].count("\n") or "_", text)
    for number, line in enumerate(bare.split("\n"), 1):
        for key in _BETWEEN_KEYS.split(line):
            if key.count(".") >= MOST_PARTS:
                raise ValueError(f"a key has more than {MOST_PARTS} parts (at line {number}, column 1)")
            if max(map(len, _BETWEEN_WORDS.split(key))) > LONGEST_WORD:
                most = f"{LONGEST_WORD:,} characters"
                raise ValueError(f"a key or number has more than {most} (at line {number}, column 1)")
    try:
        return tomllib.loads(text)  # type: ignore[no-any-return, unused-ignore]
    except RecursionError:
        raise ValueError("its values are too deep") from None
