"""Change one section in a file's bytes, also while other programs write to the file.

:mod:`npl_index.markdown.editing` splices the bytes; here the section is found, and found again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Generic, Literal, Protocol, TypeVar, get_args

from npl_index.errors import InvalidRequestError
from npl_index.markdown import editing
from npl_index.markdown.sections import SectionTree, parse_sections
from npl_index.selectors.labels import is_visible
from npl_mcp.stores.base.errors import ConflictError

Edit = Literal["replace", "append", "prepend"]
EDITS: tuple[str, ...] = get_args(Edit)
DELETE = "delete"

LONGEST_TEXT = 500_000
"""Characters of a text for a section."""

_FUNCTIONS: dict[str, Callable[..., bytes]] = {
    "replace": editing.replace_text,
    "append": editing.append_text,
    "prepend": editing.prepend_text,
    DELETE: lambda data, tree, index, _, **how: editing.delete_section(data, tree, index, **how),
}
_NAMED = 10


class Outlined(Protocol):
    """The sections of a text, and what they are called."""

    @property
    def tree(self) -> SectionTree:
        """Return the sections."""
        ...

    def address(self, index: int) -> str:
        """Return what no other section of the text is called."""
        ...

    def at(self, address: str) -> int | None:
        """Return the section of an address; ``None`` if there is none."""
        ...

    def shown(self, index: int) -> str:
        """Return what messages call a section."""
        ...


_Outline = TypeVar("_Outline", bound=Outlined)


class SectionEdit(Generic[_Outline]):
    """Changes one section of a text.

    It may be called again when another program wrote to the text: the section is then changed only if that
    program left it as it was. ``data`` is the text of the last call. After it ``edited`` is the section,
    ``index`` as well, unless it was deleted: then it is the section above. ``before`` and ``after`` are the
    outlines, and ``written`` are the new bytes of ``index``.

    :param read: returns the outline of a text.
    :param find: returns the section that is meant.
    :param operation: one of :data:`EDITS`, or :data:`DELETE`.
    :param text: for the section, at most :data:`LONGEST_TEXT` characters.
    :param label: what messages call the whole text.
    :param whole: the subsections belong to it; otherwise the text before them is changed.
    :param check: called with the section's bytes when it is found; raises if they may not be changed.
    """

    data: bytes
    edited: int
    index: int
    before: _Outline
    after: _Outline
    written: bytes

    def __init__(
        self,
        read: Callable[[bytes], _Outline],
        find: Callable[[_Outline], int],
        operation: str,
        text: str,
        label: str,
        *,
        whole: bool = True,
        check: Callable[[bytes], None],
    ) -> None:
        self._read, self._find, self._check = read, find, check
        self._operation, self._text = operation, text
        self._label, self._whole = label, whole
        self._expected: bytes | None = None

    def __call__(self, data: bytes) -> bytes:
        """Return the text's new bytes.

        :raises InvalidRequestError: the text cannot stand there; says why, and what can.
        :raises ConflictError: the section is not what it was at the first call.
        """
        self.data = data
        self.before = before = self._read(data)
        self.index = self.edited = index = self._found(before, data)
        try:
            edited = _FUNCTIONS[self._operation](
                data, before.tree, index, self._text, parse=self._parse, **self._extent(before.tree, index)
            )
        except InvalidRequestError as error:
            raise InvalidRequestError(error.message, parameter="content", hint=error.hint) from None
        self.after = after = self._read(edited)
        if self._operation == DELETE:
            self.index = index = before.tree.sections[index].parent or 0
        if _is_named(before.tree, index) and not _is_named(after.tree, index):
            raise InvalidRequestError(
                "the content begins with a heading without text", parameter="content", hint="give it a name"
            )
        self.written = self._bytes(after.tree, index, edited)
        return edited

    @property
    def removed(self) -> tuple[str, ...] | None:
        """Headings of the sections below ``index`` that are gone, of many the first ones and ``…``."""
        now = Counter(_headings(self.after.tree, self.index))
        gone = list((Counter(_headings(self.before.tree, self.index)) - now).elements())
        return tuple(gone[:_NAMED] + ["…"] * (len(gone) > _NAMED)) or None

    def _found(self, outline: _Outline, data: bytes) -> int:
        if self._expected is None:
            index = self._find(outline)
            expected = self._bytes(outline.tree, index, data)
            self._check(expected)
            self._expected, self._address, self._name = expected, outline.address(index), outline.shown(index)
            return index
        same = outline.at(self._address)
        if same is None or self._bytes(outline.tree, same, data) != self._expected:
            raise ConflictError(
                f"the section {self._name!r} of {self._label} was changed by another program just now",
                hint="read it again, then try again",
            )
        return same

    def _parse(self, data: bytes) -> SectionTree:
        return self._read(data).tree

    def _bytes(self, tree: SectionTree, index: int, data: bytes) -> bytes:
        return bytes_of(tree, index, data, whole=self._whole)

    def _extent(self, tree: SectionTree, index: int) -> dict[str, bool]:
        """Return which part is changed: a text without sections leaves those below a title."""
        if self._operation in ("prepend", DELETE):
            return {}
        keeps = self._operation == "replace" and index in (0, tree.title)
        return {"whole": self._whole and not (keeps and not self._has_sections(tree, index))}

    def _has_sections(self, tree: SectionTree, index: int) -> bool:
        level = tree.sections[index].level
        return any(section.level > level for section in parse_sections(self._text.encode(), "").sections)


def bytes_of(tree: SectionTree, index: int, data: bytes, *, whole: bool = True) -> bytes:
    """Return a section's bytes, its heading included.

    :param whole: the subsections as well.
    """
    section = tree.sections[index]
    span = section.whole_bytes if whole else section.own_bytes
    return data[span.start : span.stop]


def _headings(tree: SectionTree, index: int) -> Iterator[str]:
    """Yield the headings below a section."""
    for one in tree.subtree(index)[1:]:
        section = tree.sections[one]
        yield f"{'#' * section.level} {section.name}"


def _is_named(tree: SectionTree, index: int) -> bool:
    return is_visible(tree.sections[index].name)
