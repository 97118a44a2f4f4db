"""Foreign TOML, from a clone or another program, read within limits of time and memory."""

import re
import sys
from typing import Any

MAX_PARTS = 32
"""Parts of a dotted key; parsers need quadratic time and memory for them."""

MAX_WORD = 1_000
"""Characters of a bare key or a number; Python converts long numbers in quadratic time."""

# An unclosed string extends to the end of its line or of the file; the parser refuses it there.
_TEXT_OR_COMMENT = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*(?:"{3,5}|\Z)'
    r"|'''(?:[^']|'(?!''))*(?:'{3,5}|\Z)|'[^'\n]*'?"
    r'|"(?:[^"\\\n]|\\[^\n])*"?|\#[^\n]*',
    re.DOTALL,
)
_BETWEEN_KEYS = re.compile(r"[^\w.+ \t-]+")
_BETWEEN_WORDS = re.compile(r"[. \t]+")


def read_toml(text: str) -> dict[str, Any]:
    """Read TOML.

    :param text: text of limited length; the caller checks that.
    :raises ValueError: it is not TOML, or a key has too many parts, a word is too long, a value is too deep.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]
    bare = _TEXT_OR_COMMENT.sub(lambda match: "\n" * match[0].count("\n") or "_", text)
    for number, line in enumerate(bare.split("\n"), 1):
        for key in _BETWEEN_KEYS.split(line):
            if key.count(".") >= MAX_PARTS:
                raise ValueError(f"a key has more than {MAX_PARTS} parts (at line {number}, column 1)")
            if max(map(len, _BETWEEN_WORDS.split(key))) > MAX_WORD:
                limit = f"{MAX_WORD:,} characters"
                raise ValueError(f"a key or number has more than {limit} (at line {number}, column 1)")
    try:
        return tomllib.loads(text)  # type: ignore[no-any-return, unused-ignore]
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None
