"""Edits of one section of a file that other programs may write to at the same time.

This module finds the section and compares it with the state that the caller has read;
:mod:`npl_index.markdown.editing` splices the bytes.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from cachetools import LRUCache, cached

from npl_index.errors import InvalidRequestError
from npl_index.markdown.editing import edit_section
from npl_index.markdown.sections import DIGEST_LENGTH, SectionTree, digest_of, parse_sections
from npl_index.selectors.labels import is_visible
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.errors import ConflictError

Edit = Literal["replace", "append", "prepend"]
DELETE = "delete"

MAX_SECTION_TEXT = 500_000
"""Characters of a section's new text."""

_DIGEST = re.compile(rf"[0-9a-f]{{{DIGEST_LENGTH}}}")
_MAX_BYTES = 4 * 1024 * 1024
"""Bytes of the texts of cached trees; a tree takes about twelve times as much memory."""

_MAX_NAMED = 10


@cached(
    LRUCache(_MAX_BYTES, lambda tree: 1_000 + len(tree.source)), lambda *text, **_: text[:2], threading.Lock()
)
def read_sections(data: bytes, name: str, deadline: float | None = None) -> SectionTree:
    """Parse a Markdown file, or return its sections from a cache that all callers share.

    :raises DocumentError: the file is not UTF-8, or parsing exceeds a limit.
    """
    return parse_sections(data, name, deadline=deadline)


def parse_digest(expect: str | None) -> str | None:
    """Return the digest of the state that a caller has read; ``None`` stands for any state.

    :raises InvalidRequestError: the text is not a digest.
    """
    if expect is None:
        return None
    digest = checks.line(expect, "expect").lower()
    if _DIGEST.fullmatch(digest) is None:
        problem = f"is {digest[:64]!r}, which is not a digest"
        raise checks.invalid("expect", problem, "give the digest from the answer that you read")
    return digest


def check_state(label: str, digest: str | None, *states: bytes) -> None:
    """Check that a file, or the section to edit, is in the state that a caller has read.

    :param label: name of the file, for messages.
    :param digest: digest of that state; ``None`` stands for any state.
    :param states: content of the file, and of the section.
    :raises ConflictError: all differ.
    """
    if digest is not None and digest not in map(digest_of, states):
        hint = "read it again, and send the digest with the selector from the same answer"
        raise ConflictError(f"{label} has changed since you read it", hint=hint)


@dataclass
class SectionEdit:
    """An edit of one section of a text.

    It may be called again after another program wrote to the text: it then requires that the section is
    unchanged. A call sets the attributes: ``data`` is the text before the edit, ``edited`` the edited
    section, ``index`` the section to report, which is ``edited`` or, if that was deleted, its parent.
    ``before`` and ``after`` are the sections, ``written`` is the new content of section ``index``.

    :param label: name of the file, for messages.
    :param read: function from a content to its sections.
    :param find: function from the sections to the index of the one to edit.
    :param operation: one of :data:`Edit`, or :data:`DELETE`.
    :param text: new text, at most :data:`MAX_SECTION_TEXT` characters.
    :param digest: digest of the file or the section that the caller has read; ``None`` for any.
    :param whole: whether the edit includes the subsections; otherwise it ends before the first of them.
    """

    label: str
    read: Callable[[bytes], SectionTree]
    find: Callable[[SectionTree], int]
    operation: str
    text: str
    digest: str | None
    whole: bool = field(default=True, kw_only=True)
    data: bytes = field(init=False)
    edited: int = field(init=False)
    index: int = field(init=False)
    before: SectionTree = field(init=False)
    after: SectionTree = field(init=False)
    written: bytes = field(init=False)

    def __call__(self, data: bytes) -> bytes:
        """Return the edited text.

        :param data: text before the edit.
        :raises InvalidRequestError: the new text is invalid at this place.
        :raises ConflictError: the section is not in the expected state, or changed since the first call.
        """
        self.data, self.before = data, (tree := self.read(data))
        self.index = self.edited = index = self.find(tree)
        section = bytes_of(tree, index, data, whole=self.whole)
        check_state(self.label, self.digest, data, section)
        self.digest = digest_of(section)
        edited, self.after = edit_section(
            data, tree, index, self.operation, self.text, self.read, whole=self.whole
        )
        if self.operation == DELETE:
            self.index = index = tree.sections[index].parent or 0
        if is_visible(tree.sections[index].name) and not is_visible(self.after.sections[index].name):
            problem = "the content begins with a heading without text"
            raise InvalidRequestError(problem, parameter="content", hint="name the heading")
        self.written = bytes_of(self.after, index, edited, whole=self.whole)
        return edited

    @property
    def removed(self) -> tuple[str, ...] | None:
        """Headings of removed sections below ``index``; after the first ten, ``…``."""
        now = Counter(_headings(self.after, self.index))
        gone = list((Counter(_headings(self.before, self.index)) - now).elements())
        return tuple(gone[:_MAX_NAMED] + ["…"] * (len(gone) > _MAX_NAMED)) or None


def bytes_of(tree: SectionTree, index: int, data: bytes, *, whole: bool = True) -> bytes:
    """Return a section's content with its heading.

    :param whole: whether to include the subsections.
    """
    section = tree.sections[index]
    span = section.whole_bytes if whole else section.own_bytes
    return data[span.start : span.stop]


def _headings(tree: SectionTree, index: int) -> Iterator[str]:
    """Yield the headings below a section."""
    for below in tree.subtree(index)[1:]:
        section = tree.sections[below]
        yield f"{'#' * section.level} {section.name}"
