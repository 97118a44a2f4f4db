"""The section tree of documents as callers browse it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npl_index.library.references import document_name
from npl_index.markdown.sections import Section, SectionTree
from npl_index.markdown.traits import TraitFilter, Traits
from npl_index.selectors.writing import qualified, steps_of
from npl_index.tokens.sections import TokenCounts


@dataclass(frozen=True, slots=True)
class OwnTraits:
    """What a section's text up to the next heading holds, subsections left out.

    :param has_examples: it holds a fence labelled as an example.
    :param has_tables: … a table.
    :param has_code: … a code block.
    :param has_definitions: … a definition list.
    :param word_count: its words.
    :param token_count: its tokens.
    """

    has_examples: bool
    has_tables: bool
    has_code: bool
    has_definitions: bool
    word_count: int
    token_count: int


@dataclass(frozen=True, slots=True)
class OutlineNode:
    """One section, with its subsections.

    :param name: the heading as a reader sees it; of a document, its path or name.
    :param selector: selects exactly this section.
    :param level: 1 to 6; 0 for a document and for a versioned section of one.
    :param heading_level: the same.
    :param heading: the heading's source without its marks.
    :param start_line: first line, from 1.
    :param end_line: line after the last one, subsections included.
    :param start_byte: offset of the first byte in the file.
    :param end_byte: offset after the last one.
    :param has_examples: the section or a subsection holds a fence labelled as an example.
    :param has_tables: … a table.
    :param has_code: … a code block.
    :param has_definitions: … a definition list.
    :param word_count: words, subsections included.
    :param token_count: tokens, subsections included.
    :param children: the subsections that are shown.
    :param own: without subsections, where there are any.
    :param version: of a versioned section or document.
    :param matches: false for a section shown only because a subsection matches the filter.
    :param more: subsections left out because of the depth asked for.
    """

    name: str
    selector: str
    level: int
    heading_level: int
    heading: str
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int
    has_examples: bool
    has_tables: bool
    has_code: bool
    has_definitions: bool
    word_count: int
    token_count: int
    children: tuple[OutlineNode, ...]
    own: OwnTraits | None = None
    version: str | None = None
    matches: bool | None = None
    more: int | None = None


@dataclass(frozen=True, slots=True)
class _View:
    """What is needed to make the nodes of one document."""

    tree: SectionTree
    counts: TokenCounts
    selectors: Sequence[str]
    matching: frozenset[int] | None
    shown: frozenset[int] | None


def outline(
    tree: SectionTree,
    counts: TokenCounts,
    conditions: TraitFilter,
    *,
    document: str | None = None,
    depth: int | None = None,
) -> tuple[OutlineNode, int]:
    """Show a document as one node of level 0.

    :param counts: of the document's sections.
    :param conditions: sections that do not match are left out, but for the ancestors of those that do.
    :param document: name of the document in selectors and in its node, instead of its own.
    :param depth: levels of subsections to show below the document; ``None`` for all.
    :returns: the node and the number of headings that match.
    """
    matching = shown = None
    total = sum(section.level > 0 for section in tree.sections)
    if conditions != TraitFilter():
        found = {
            section.index
            for section in tree.sections
            if section.level and conditions.matches(section.whole_traits, section.level)
        }
        matching = frozenset(found)
        shown = frozenset(found.union(*(tree.ancestors(index) for index in found)))
        total = len(matching)
    name = tree.name if document is None else document_name(document)
    selectors = [qualified(name, steps) for steps in steps_of(tree)]
    view = _View(tree, counts, selectors, matching, shown)
    return _node(view, tree.sections[0], depth, document), total


def _node(view: _View, section: Section, depth: int | None, name: str | None = None) -> OutlineNode:
    tree, index = view.tree, section.index
    inside = tree.subtree(index)
    children = [child for child in section.children if view.shown is None or child in view.shown]
    deeper = None if depth is None else depth - 1
    whole = section.whole_traits
    return OutlineNode(
        name=name or section.name,
        selector=view.selectors[index],
        level=section.level,
        heading_level=section.level,
        heading=section.heading,
        start_line=section.whole.start + 1,
        end_line=section.whole.stop + 1,
        start_byte=section.whole_bytes.start,
        end_byte=section.whole_bytes.stop,
        has_examples=whole.has_examples,
        has_tables=whole.has_tables,
        has_code=whole.has_code,
        has_definitions=whole.has_definitions,
        word_count=whole.word_count,
        token_count=view.counts.total(inside),
        children=() if depth == 0 else tuple(_node(view, tree.sections[child], deeper) for child in children),
        own=_own(section.own_traits, view.counts.last[index]) if section.children else None,
        version=section.version,
        matches=False if view.matching is not None and section.level and index not in view.matching else None,
        more=len(inside) - 1 if depth == 0 and children else None,
    )


def _own(traits: Traits, tokens: int) -> OwnTraits:
    return OwnTraits(
        traits.has_examples,
        traits.has_tables,
        traits.has_code,
        traits.has_definitions,
        traits.word_count,
        tokens,
    )
