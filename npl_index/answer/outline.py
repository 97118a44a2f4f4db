"""The section tree of documents as callers browse it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from npl_index.markdown.digests import section_digest
from npl_index.markdown.sections import Section, SectionTree
from npl_index.markdown.traits import TraitFilter, Traits
from npl_index.tokens.sections import TokenCounts

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OwnTraits:
    """What a section's text up to the next heading holds, where that differs from the whole section.

    :param has_examples: it holds a fence labelled as an example; ``None`` if the whole section is alike, …
    :param has_tables: … a table.
    :param has_code: … a code block.
    :param has_definitions: … a definition list.
    :param word_count: its words.
    :param token_count: its tokens.
    """

    has_examples: bool | None
    has_tables: bool | None
    has_code: bool | None
    has_definitions: bool | None
    word_count: int | None
    token_count: int | None


@dataclass(frozen=True, slots=True)
class OutlineNode:
    """One section, with its subsections.

    :param name: the heading as a reader sees it; of a document, its path or name.
    :param selector: selects exactly this section.
    :param level: 1 to 6; 0 for a document and for a versioned section of one.
    :param heading_level: the same.
    :param heading: the heading's source without its marks; of a document, the title in its front matter.
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
    :param own: what differs from that without subsections, where there are any.
    :param version: of a versioned section or document.
    :param matches: false for a section shown only because a subsection matches the filter.
    :param more: subsections left out because of the depth or the budget asked for.
    :param digest: of the section with its subsections, for ``expect``; only where sections may be changed.
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
    digest: str | None = None


def outline(
    tree: SectionTree,
    counts: TokenCounts,
    conditions: TraitFilter,
    *,
    selector: Callable[[int], str],
    name: str | None = None,
    depth: int | None = None,
    digests: bool = False,
) -> tuple[OutlineNode, int | None]:
    """Show a document as one node of level 0.

    :param counts: of the document's sections.
    :param conditions: sections that do not match are left out, but for the ancestors of those that do.
    :param selector: returns that of a section.
    :param name: of the document's node, instead of the document's own.
    :param depth: levels of subsections to show below the document; ``None`` for all. A title counts as the
        document.
    :param digests: give the digest of each heading's section.
    :returns: the node, and the number of headings that match; ``None`` without conditions.
    """
    matching = shown = None
    if conditions != TraitFilter():
        matching = {
            section.index
            for section in tree.sections
            if section.level and conditions.matches(section.whole_traits, section.level)
        }
        shown = matching.union(*(tree.ancestors(index) for index in matching))

    def node(index: int, depth: int | None, name: str | None = None) -> OutlineNode:
        section, inside = tree.sections[index], tree.subtree(index)
        children = [child for child in section.children if shown is None or child in shown]
        if depth is not None and index == tree.title:
            depth += 1
        deeper = None if depth is None else depth - 1
        whole, tokens = section.whole_traits, counts.total(inside)
        return OutlineNode(
            name=name or section.name,
            selector=selector(index),
            level=section.level,
            heading_level=section.level,
            heading=section.heading,
            start_line=section.whole.start + 1,
            end_line=section.whole.stop + 1,
            start_byte=section.whole_bytes.start,
            end_byte=section.whole_bytes.stop,
            **whole._asdict(),
            token_count=tokens,
            children=() if depth == 0 else tuple(node(child, deeper) for child in children),
            own=_own(section, counts.last(index), tokens) if section.children else None,
            version=section.version,
            matches=False if matching is not None and section.level and index not in matching else None,
            more=len(inside) - 1 if depth == 0 and children else None,
            digest=section_digest(tree, index, whole=True) if digests and section.level else None,
        )

    return node(0, depth, name), None if matching is None else len(matching)


def _own(section: Section, tokens: int, whole_tokens: int) -> OwnTraits:
    own, whole = section.own_traits, section.whole_traits
    return OwnTraits(
        **{name: _unlike(getattr(own, name), getattr(whole, name)) for name in Traits._fields},
        token_count=_unlike(tokens, whole_tokens),
    )


def _unlike(own: T, whole: T) -> T | None:
    return None if own == whole else own
