"""Selectors written for given sections."""

from __future__ import annotations

from collections import Counter

from npl_index.markdown.sections import SectionTree, Span
from npl_index.selectors.grammar import spell
from npl_index.selectors.hierarchy import Hierarchy
from npl_index.selectors.labels import heading_label, label


def selectors_of(tree: SectionTree, document: str | None = None) -> tuple[str, ...]:
    """Return for each section the selector that selects it and no other in the document, in linear time.

    It names all headings above the section, so that readers see its place.

    :param document: name of the document to use instead of the tree's own.
    """
    name = tree.name if document is None else document
    return tuple(qualified(name, steps) for steps in steps_of(tree, short=False))


def steps_of(tree: SectionTree, *, short: bool = True) -> tuple[str, ...]:
    """Return the part of each section's selector after the document's name; ``""`` for the document.

    :param short: use the shortest unique path: a heading without an equal on its level needs no headings
        above it.
    """
    hierarchy = Hierarchy(tree)
    names = [heading_label(section.name) for section in tree.sections]
    equals = Counter(zip((section.level for section in tree.sections), names, strict=True))
    texts = [""]
    for section in tree.sections[1:]:
        level, name, above = section.level, spell(names[section.index]), hierarchy.parent(section.index) or 0
        if short and above and level and equals[level, names[section.index]] == 1:
            texts.append(f" {'#' * level} {name}")
            continue
        number, of = hierarchy.number(section.index)
        marks = f"{'#' * level} " if level else ""
        texts.append(f"{texts[above]} > {marks}{name}" + (f" [{number}]" if of > 1 else ""))
    return tuple(texts)


def qualified(document: str, steps: str) -> str:
    """Return a selector whose document has a given name."""
    return spell(label(document)) + steps


def narrowed(selector: str, *, own: bool = False, lines: Span | None = None) -> str:
    """Narrow the selector of a section.

    :param own: to the section's own text.
    :param lines: to a range of lines of its own text.
    """
    if lines is not None:
        return f"{selector} [lines={lines.start + 1}-{lines.stop}]"
    return f"{selector} [depth=0]" if own else selector
