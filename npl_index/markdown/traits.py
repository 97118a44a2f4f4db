"""Traits of a section's text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_FIRST_WORD = re.compile(r"[^\s|:;,={}\[\]()]+")
# A word: a character of Han or kana, or four of Thai, Lao, Tibetan, Burmese or Khmer.
_UNSPACED = re.compile(
    "[\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
    "|[\u0e01-\u109f\u1780-\u17ff]{1,4}"
)
_WIDE_MARKS = re.compile("[\u3000-\u303f\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]")


def is_example(info: str) -> bool:
    """Return whether a fence's info string labels it as an example.

    The first word decides: one of its parts between hyphens or underscores is ``example`` or
    ``examples`` (``example``, ``input-example``, ``example-2|wide``), case ignored.

    :param info: the text after the fence's marker.
    """
    word = _FIRST_WORD.search(info)
    return word is not None and not {"example", "examples"}.isdisjoint(re.split("[-_]", word[0].lower()))


def count_words(text: str) -> int:
    """Count the words of a text: between white space, or in scripts without spaces by their length."""
    if text.isascii():
        return len(text.split())
    spaced, count = _UNSPACED.subn(" ", _WIDE_MARKS.sub(" ", text))
    return count + len(spaced.split())


class Traits(NamedTuple):
    """Content of a stretch of text.

    :param has_examples: holds a fence labelled as an example (``example``, ``examples``,
        ``input-example``, ``output-example``, and the like).
    :param has_tables: holds a pipe table.
    :param has_code: holds a fenced or an indented code block.
    :param has_definitions: holds a definition list.
    :param word_count: number of words, see :func:`count_words`, the heading line included.
    """

    has_examples: bool = False
    has_tables: bool = False
    has_code: bool = False
    has_definitions: bool = False
    word_count: int = 0


TRAIT_OF_BLOCK = {"code_block": "has_code", "table_open": "has_tables", "dl_open": "has_definitions"}
"""The trait that a section has because of a block, by the type of the block's token."""

FLAGS = Traits._fields[:-1]
"""The traits that a section has or lacks. A new one is stored at the end: documents keep a bit for each."""

LEVEL = 7
"""Bits of a section's kind for its heading level. The next bits are the traits of its own text."""


def bits_of(traits: Iterable[str]) -> int:
    """Return the bits of a section's kind for traits."""
    return sum((LEVEL + 1) << FLAGS.index(name) for name in set(traits))
