"""From a section to the selector that finds it."""

from __future__ import annotations

from collections import Counter

from npl_index.markdown.sections import SectionTree, Span
from npl_index.selectors.grammar import spell
from npl_index.selectors.hierarchy import Hierarchy
from npl_index.selectors.labels import heading_label, label


def selector_for(tree: SectionTree, index: int, *, document: str | None = None, own: bool = False) -> str:
    """Return the selector of one section: it selects this section and no other of the tree.

    :param document: name of the document to use instead of the tree's own.
    :param own: the section's own text only.
    """
    hierarchy = Hierarchy(tree)
    path = [index]
    while (parent := hierarchy.parent(path[-1])) is not None:
        path.append(parent)
    text = ""
    for step in reversed(path):
        text = _extended(text, hierarchy, step, document)
    return narrowed(text, own=own)


def selectors_of(tree: SectionTree, document: str | None = None) -> tuple[str, ...]:
    """Return the selectors of all sections, as :func:`selector_for` does, in linear time."""
    hierarchy = Hierarchy(tree)
    texts: list[str] = []
    for index in range(len(tree.sections)):
        parent = hierarchy.parent(index)
        texts.append(_extended("" if parent is None else texts[parent], hierarchy, index, document))
    return tuple(texts)


def short_selectors_of(tree: SectionTree) -> tuple[str, ...]:
    """Return what selects each section behind a document's name, as briefly as may be, in linear time.

    A heading that no other of its level is called like needs no path.
    """
    hierarchy = Hierarchy(tree)
    labels = [heading_label(section.name) for section in tree.sections]
    equals = Counter((section.level, name) for section, name in zip(tree.sections, labels, strict=True))
    texts: list[str] = []
    for section, name in zip(tree.sections, labels, strict=True):
        parent = hierarchy.parent(section.index)
        if parent is None:
            texts.append("")
        elif parent and section.level and equals[section.level, name] == 1:
            texts.append(f" // {'#' * section.level} {spell(name)}")
        else:
            texts.append(_extended(texts[parent], hierarchy, section.index, ""))
    return tuple(texts)


def narrowed(selector: str, *, own: bool = False, lines: Span | None = None) -> str:
    """Return the selector of a section, narrowed.

    :param own: to the section's own text.
    :param lines: to these lines of its own text.
    """
    if lines is not None:
        return f"{selector} [lines={lines.start + 1}-{lines.stop}]"
    return f"{selector} [depth=0]" if own else selector


def _extended(path: str, hierarchy: Hierarchy, index: int, document: str | None) -> str:
    """Return the selector of a section, given its parent's."""
    if index == 0:
        return spell(label(hierarchy.tree.name if document is None else document))
    section = hierarchy.tree.sections[index]
    name = spell(heading_label(section.name))
    if document is None and hierarchy.is_found_by_name(index):
        return name
    number, equals = hierarchy.number(index)
    marks = f"{'#' * section.level} " if section.level else ""
    return f"{path} > {marks}{name}" + (f" [{number}]" if equals > 1 else "")
