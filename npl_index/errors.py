"""Every error the library raises, in one tree.

::

    NPLError
    ├── InvalidRequestError            an argument cannot be used as given
    │   ├── MissingRequestError        a required argument is missing
    │   └── SelectorSyntaxError        a selector cannot be read; shows the position
    ├── NotFoundError                  the name does not exist; carries similar names
    │   ├── DocumentNotFoundError
    │   └── SectionNotFoundError
    └── DocumentError                  a document exists and cannot be used
        ├── OutsideRootError           its path leaves every search root
        ├── UnreadableDocumentError    not Markdown, not UTF-8, no permission, changed while read
        ├── DocumentTooLargeError      over a size limit
        └── DocumentTimeoutError       reading it took longer than the limit

Each message states the problem and its place, in one sentence without a final
full stop; ``hint`` is the remedy. No message contains an absolute
path that the caller did not give.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Control characters, line and paragraph separators, direction marks, fillers, tags, and other invisible
# characters. Joiners and variation selectors stay: some languages and many emoji need them.
_INVISIBLE = (
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


def escaped(text: str, *, lines: bool = False) -> str:
    """Return a text with its invisible characters escaped, so that it cannot pass for a different text.

    :param lines: the text may have several lines; line feeds and tabs stay.
    """
    if text.isascii() and text.isprintable():
        return text

    def escape(match: re.Match[str]) -> str:
        return match[0] if lines and match[0] in "\n\t" else match[0].encode("unicode_escape").decode()

    return re.sub(_INVISIBLE, escape, text)  # compiled at the first use: most processes never need it


class NPLError(Exception):
    """Base class of all expected failures; the caller can act on each of them.

    :param message: the problem and its place.
    :param hint: the remedy.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        whole = self.message if self.hint is None else f"{self.message}; {self.hint}"
        return escaped(whole, lines=True)


class InvalidRequestError(NPLError):
    """An argument cannot be used as given.

    :param parameter: name of the argument, as the caller wrote it.
    """

    def __init__(self, message: str, *, parameter: str | None = None, hint: str | None = None) -> None:
        self.parameter = parameter
        super().__init__(message, hint=hint)


class MissingRequestError(InvalidRequestError):
    """A required argument is missing."""


class SelectorSyntaxError(InvalidRequestError):
    """A selector cannot be read.

    The message shows the selector and a caret under the first
    unreadable character.

    :param problem: the problem, without the position.
    :param selector: the whole selector text.
    :param position: zero-based offset of the first unreadable character.
    """

    _WINDOW = 60

    def __init__(self, problem: str, selector: str, position: int, *, hint: str | None = None) -> None:
        self.problem, self.selector, self.position = problem, selector, position
        start = max(0, position - self._WINDOW)
        stop = min(len(selector), position + self._WINDOW)
        line = selector.replace("\n", " ").replace("\t", " ")
        before = ("…" if start else "") + escaped(line[start:position])
        after = escaped(line[position:stop]) + ("…" if stop < len(line) else "")
        caret = " " * len(before) + "^"
        message = f"{problem} at character {position + 1} of the selector\n  {before}{after}\n  {caret}"
        super().__init__(message, parameter="selectors", hint=hint)

    def __str__(self) -> str:
        return escaped(self.message if self.hint is None else f"{self.message}\n{self.hint}", lines=True)


class NotFoundError(NPLError):
    """The given name does not exist.

    :param near: similar names that exist, best first.
    """

    def __init__(self, message: str, *, near: Sequence[str] = (), hint: str | None = None) -> None:
        self.near = tuple(near)
        if hint is None and self.near:
            hint = "near: " + ", ".join(self.near)
        super().__init__(message, hint=hint)


class DocumentNotFoundError(NotFoundError):
    """No document has the given name or path."""


class SectionNotFoundError(NotFoundError):
    """A well-formed selector matches no section."""


class DocumentError(NPLError):
    """A document exists and cannot be used."""


class OutsideRootError(DocumentError):
    """A path leaves every search root, directly or through a link."""


class UnreadableDocumentError(DocumentError):
    """A file is not Markdown, not UTF-8, not regular or not readable, or it changed during reading."""


class DocumentTooLargeError(DocumentError):
    """A document has more bytes or sections than the limits allow."""


class DocumentTimeoutError(DocumentError):
    """Reading or indexing a document took longer than the time limit."""
