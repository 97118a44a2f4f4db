"""Find, parse, select, rank and pack sections of Markdown for agents.

``load_tailored`` and ``section_index`` cover the common cases; the other names are their building blocks.
Each name is imported from its module at its first use, so that a program loads only the modules it needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npl_index.answer.document_set import DocumentSet
    from npl_index.answer.outline import OutlineNode
    from npl_index.answer.suggestions import Companions
    from npl_index.answer.tailoring import TailorRequest, tailor
    from npl_index.answer.values import Tailored
    from npl_index.api import load_tailored, section_index
    from npl_index.choices import Weights
    from npl_index.errors import NPLError
    from npl_index.items.loading import Loaded, flag_header, load, load_agent
    from npl_index.library.cache import BuildingCache, MemoryIndexCache
    from npl_index.library.catalog import Catalog, Root, places
    from npl_index.library.documents import Document, Library
    from npl_index.library.fingerprints import Fingerprint
    from npl_index.library.references import DocumentRef
    from npl_index.library.roots import Limits
    from npl_index.markdown.sections import Section, SectionTree, Span, parse_sections
    from npl_index.markdown.traits import TraitFilter, Traits
    from npl_index.ranking.analysis import Keywords, extract_keywords
    from npl_index.ranking.indexing import Collection, IndexedDocument, index_document
    from npl_index.ranking.scoring import Hit, Query, Score, rank
    from npl_index.selectors.grammar import Selector, compile_selector
    from npl_index.selectors.selection import Selected, select
    from npl_index.selectors.writing import selector_for
    from npl_index.tokens.counting import TokenCounter
    from npl_index.tokens.estimated import estimator
    from npl_index.tokens.exact import load_vocabulary
    from npl_index.tokens.sections import TokenCounts, count_sections

__all__ = [
    "BuildingCache",
    "Catalog",
    "Collection",
    "Companions",
    "Document",
    "DocumentRef",
    "DocumentSet",
    "Fingerprint",
    "Hit",
    "IndexedDocument",
    "Keywords",
    "Library",
    "Limits",
    "Loaded",
    "MemoryIndexCache",
    "NPLError",
    "OutlineNode",
    "Query",
    "Root",
    "Score",
    "Section",
    "SectionTree",
    "Selected",
    "Selector",
    "Span",
    "TailorRequest",
    "Tailored",
    "TokenCounter",
    "TokenCounts",
    "TraitFilter",
    "Traits",
    "Weights",
    "compile_selector",
    "count_sections",
    "estimator",
    "extract_keywords",
    "flag_header",
    "index_document",
    "load",
    "load_agent",
    "load_tailored",
    "load_vocabulary",
    "parse_sections",
    "places",
    "rank",
    "section_index",
    "select",
    "selector_for",
    "tailor",
]

_MODULES = {
    "answer.document_set": "DocumentSet",
    "answer.outline": "OutlineNode",
    "answer.suggestions": "Companions",
    "answer.tailoring": "TailorRequest tailor",
    "answer.values": "Tailored",
    "api": "load_tailored section_index",
    "choices": "Weights",
    "errors": "NPLError",
    "items.loading": "Loaded flag_header load load_agent",
    "library.cache": "BuildingCache MemoryIndexCache",
    "library.catalog": "Catalog Root places",
    "library.documents": "Document Library",
    "library.fingerprints": "Fingerprint",
    "library.references": "DocumentRef",
    "library.roots": "Limits",
    "markdown.sections": "Section SectionTree Span parse_sections",
    "markdown.traits": "TraitFilter Traits",
    "ranking.analysis": "Keywords extract_keywords",
    "ranking.indexing": "Collection IndexedDocument index_document",
    "ranking.scoring": "Hit Query Score rank",
    "selectors.grammar": "Selector compile_selector",
    "selectors.selection": "Selected select",
    "selectors.writing": "selector_for",
    "tokens.counting": "TokenCounter",
    "tokens.estimated": "estimator",
    "tokens.exact": "load_vocabulary",
    "tokens.sections": "TokenCounts count_sections",
}


def __getattr__(name: str) -> object:
    """Import a public name from its module."""
    for module, names in _MODULES.items():
        if name in names.split():
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
