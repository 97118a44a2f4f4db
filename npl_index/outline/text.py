"""An outline as text: one line a heading, for models.

::

    lines tokens c code t table e example; selector guide > ## A > ### B
    1-60 905 cte # Garden Guide
    12-30 310 c+2 ## Watering
    31-60 410 ## Pruning

A line begins with our numbers and letters, never with the text of a heading, except for a heading that is
shown only for its subsections. Headings without room are folded into the heading above them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from posixpath import basename, commonprefix

from npl_index.answer.document_set import ORDINAL
from npl_index.answer.forms import in_brackets
from npl_index.cached import cached_property
from npl_index.outline.folding import File, Shown, folded_below
from npl_index.outline.nodes import FolderNode, Node, OutlineNode
from npl_index.selectors.grammar import quoted, spell
from npl_index.selectors.labels import fold_document, heading_label, label

_LETTERS = {
    "has_code": ("c", "code"),
    "has_tables": ("t", "table"),
    "has_examples": ("e", "example"),
    "has_definitions": ("d", "definitions"),
}
"""Letter and word of each trait."""
_PATH = re.compile(r"[\w./-]*\.\w+")  # its suffix distinguishes it from the letters before it


@dataclass(frozen=True)
class OutlineText:
    """The form of an outline as text.

    :param document: the only document; ``None`` for a set.
    :param titled: whether the first heading of the document is its title.
    :param files: the documents of a set.
    :param remarks: lines at the end of the text.
    :param numbered: the things that the numbers of a set's lines count.
    """

    document: OutlineNode | None = None
    titled: bool = False
    files: Sequence[File] = ()
    remarks: tuple[str, ...] = ()
    numbered: str = "headings"

    def answer(self, shown: Shown) -> str:
        """Return the whole text."""
        note, remarks = shown.note, self.remarks
        if remarks and not shown.has_remarks:
            note, remarks = f"{note}, with {len(remarks)} remarks", ()
        hidden = folded_below(shown.nodes) + (self.document.more or 0) if self.document else 0
        if hidden and not note:
            note = f"+{hidden}: headings not shown; a higher depth shows them"
        lines = list(self._lines(shown.nodes, 0))
        if lines or (self.document and not shown.note):
            lines.insert(0, self._first(shown.nodes))
        return "\n".join((*lines, *([note] if note else []), *remarks, ""))

    def _first(self, nodes: Sequence[Node]) -> str:
        """Return the legend of the lines, with the form of a selector."""
        if self.document:
            version = f"version {label(self.document.version)}; " if self.document.version else ""
            status = f"{label(self.document.status)}; " if self.document.status else ""
            title = "" if self.titled else _title(self.document, "title {}; ")
            rule = "{} > ## A" if self._is_flat else "{} > ## A > ### B"
            selector = rule.format(self.document.selector)
            legend = _legend((self.document, *self.document.children))
            return f"{title}{version}{status}lines tokens{legend}; selector {selector}"
        shared = f"path is {self._shared} + what is written; " if self._shared else ""
        files = [node for node in nodes if isinstance(node, OutlineNode)]
        named = 'path "title"' if any(map(_title, files)) else "path"
        lines = ", of headings lines tokens" if any(file.children for file in files) else ""
        return (
            f"{len(self.files)} files {sum(file.tokens for file in self.files)} tokens; "
            f"tokens{_legend(files)} +{self.numbered} {named}{lines}; "
            f"{shared}file=path shows headings; selector path > ## A > ### B"
        )

    @property
    def _is_flat(self) -> bool:
        """Whether no section except the title has subsections."""
        tops = self.document.children if self.document else ()
        below = (*tops[0].children, *tops[1:]) if self.titled and tops else tops
        return not any(node.children or node.more for node in below)

    @cached_property
    def _shared(self) -> str:
        """The common prefix of all paths, up to the end of a word."""
        paths = [file.name for file in self.files]
        shared = commonprefix(paths) if len(paths) > 1 and all(map(_is_plain, paths)) else ""
        return shared[: max(map(shared.rfind, "/-_"), default=-1) + 1]

    def line(self, node: Node, depth: int) -> str:
        """Return a node's line."""
        more = f"+{node.more}" if node.more else ""
        path = node.name.removeprefix(self._shared)
        if isinstance(node, FolderNode):
            name = path if _is_plain(path.removesuffix("/") + ".md") else quoted(label(path))
            return f"{node.token_count} {more} {name} {node.files} files"
        marks = f"{_letters(node)}{more} " if more or _letters(node) else ""
        marks += f"={node.digest} " if node.digest else ""
        if self.document is None and not depth:
            name = path if _is_plain(path) else quoted(label(path))
            return f"{node.token_count} {marks}{name}{_title(node, ' {}')}{in_brackets(node.status)}"
        if node.matches is False:
            return f"{more} {_step(node)}".lstrip()
        lines = f"{node.start_line}-{max(node.start_line, node.end_line - 1)}"
        return f"{lines} {node.token_count} {marks}{_step(node)}"

    def _lines(self, nodes: Sequence[Node], depth: int) -> Iterator[str]:
        for node in nodes:
            yield self.line(node, depth)
            yield from self._lines(node.children, depth + 1)


def _legend(nodes: Sequence[OutlineNode]) -> str:
    """Return the meaning of the letters that occur."""
    used = set("".join(map(_letters, nodes)))
    meanings = [f" {letter} {what}" for letter, what in _LETTERS.values() if letter in used]
    return "".join(meanings) + (" =digest" if any(node.digest for node in nodes) else "")


def _letters(node: OutlineNode) -> str:
    return "".join(letter for name, (letter, _) in _LETTERS.items() if getattr(node, name))


def _step(node: OutlineNode) -> str:
    """Return a node as a step of a selector."""
    name = heading_label(node.name)
    ordinal = ORDINAL.search(node.selector)
    step = f"{'#' * node.level} {spell(name)}" if node.level else quoted(name)
    return step + (ordinal[0] if ordinal else "")


def _title(document: OutlineNode, form: str = "{}") -> str:
    """Return a document's title if it differs from its name, else ``""``."""
    title = heading_label(document.heading)
    is_name = fold_document(title) == fold_document(basename(document.name))
    return "" if is_name or not title else form.format(quoted(title))


def _is_plain(path: str) -> bool:
    """Return whether a path needs no quotes in selectors and lines."""
    return bool(_PATH.fullmatch(path)) and spell(path) == path
