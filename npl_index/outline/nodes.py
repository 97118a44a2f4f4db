"""The section tree of a document as nodes, for browsing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from npl_index.markdown.sections import Section, SectionTree, section_digest
from npl_index.ranking.standing import standing_in
from npl_index.selectors.filters import TraitFilter
from npl_index.tokens.sections import TokenCounts


@dataclass(frozen=True, slots=True)
class OwnTraits:
    """Traits of a section's own text that differ from those of the whole section; ``None`` for equal ones.

    :param has_examples: whether it has a fence labelled as an example.
    :param has_tables: whether it has a table.
    :param has_code: whether it has a code block.
    :param has_definitions: whether it has a definition list.
    :param word_count: number of words.
    :param token_count: number of tokens.
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

    :param name: visible text of the heading; for a document, its path or name.
    :param selector: selector of exactly this section.
    :param level: 1 to 6; 0 for a document and for a versioned section of one.
    :param heading_level: same as ``level``.
    :param heading: source of the heading without its marks; for a document, the title in its front matter.
    :param start_line: first line, from 1.
    :param end_line: line after the last one, subsections included.
    :param start_byte: offset of the first byte in the file.
    :param end_byte: offset after the last byte, subsections included.
    :param has_examples: whether the section or a subsection has a fence labelled as an example.
    :param has_tables: whether it has a table, subsections included.
    :param has_code: whether it has a code block, subsections included.
    :param has_definitions: whether it has a definition list, subsections included.
    :param word_count: words, subsections included.
    :param token_count: tokens, subsections included.
    :param children: the shown subsections.
    :param own: differing traits of the section without its subsections, if it has any.
    :param version: version of a versioned section or document.
    :param matches: false for a section shown only because of a matching subsection.
    :param more: number of subsections hidden by the depth or the budget.
    :param digest: digest of the section with its subsections, for ``expect``; only if sections are editable.
    :param status: what front matter says of a document: retired, verified, generated.
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
    status: str | None = None


@dataclass(frozen=True, slots=True)
class FolderNode:
    """A folder, a pattern or a document that stands for its files.

    :param name: value of ``file`` that selects them.
    :param files: number of files.
    :param token_count: tokens of the files.
    :param more: number of headings; with a filter, of matching ones.
    """

    name: str
    files: int
    token_count: int
    more: int
    children: ClassVar[tuple[OutlineNode, ...]] = ()


def outline(
    tree: SectionTree,
    counts: TokenCounts,
    conditions: TraitFilter,
    *,
    selector: Callable[[int], str],
    name: str | None = None,
    depth: int | None = None,
    digests: bool = False,
) -> OutlineNode:
    """Return a document as one node of level 0.

    :param counts: token counts of the document's sections.
    :param conditions: conditions on the shown sections; ancestors of matching sections are shown, too.
    :param selector: returns the selector of a section.
    :param name: name of the document's node; by default the document's own.
    :param depth: shown levels of subsections below the document; ``None`` for all. A title counts as the
        document.
    :param digests: include the digest of each heading's section.
    """
    matching = shown = None
    if conditions != TraitFilter():
        headings = (section for section in tree.sections if section.level)
        matching = {node.index for node in headings if conditions.matches(node.whole_traits, node.level)}
        shown = matching.union(*(tree.ancestors(index) for index in matching))

    def node(index: int, depth: int | None, name: str | None = None) -> OutlineNode:
        section, inside = tree.sections[index], tree.subtree(index)
        children = [child for child in section.children if shown is None or child in shown]
        if depth is not None and index == tree.title:
            depth += 1
        deeper = None if depth is None else depth - 1
        hidden = inside[1:] if matching is None else matching.intersection(inside[1:])
        tokens = counts.total(inside)
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
            **section.whole_traits._asdict(),
            token_count=tokens,
            children=() if depth == 0 else tuple(node(child, deeper) for child in children),
            own=_own(section, counts.last(index), tokens) if section.children else None,
            version=section.version,
            matches=False if matching is not None and section.level and index not in matching else None,
            more=len(hidden) if depth == 0 and children else None,
            digest=section_digest(tree, index, whole=True) if digests and section.level else None,
            status=None if index else standing_in(tree.front_matter) or None,
        )

    return node(0, depth, name)


def _own(section: Section, tokens: int, whole_tokens: int) -> OwnTraits:
    pairs: Any = zip((*section.own_traits, tokens), (*section.whole_traits, whole_tokens), strict=True)
    return OwnTraits(*(None if own == whole else own for own, whole in pairs))


Node = OutlineNode | FolderNode
