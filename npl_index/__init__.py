"""Markdown to sections, sections to answers: find, parse, select, rank and pack Markdown for agents.

The public names. They are imported from their modules when first used, so that a program pays only for
what it needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npl_index.answer.assembling import Desk
    from npl_index.answer.suggestions import Companions
    from npl_index.answer.tailoring import Tailored, TailorRequest, tailor
    from npl_index.choices import Weights
    from npl_index.errors import NPLError
    from npl_index.items.loading import Loaded, flag_header, load, load_agent
    from npl_index.library.cache import BuildingCache, IndexCache, MemoryIndexCache
    from npl_index.library.catalog import Catalog, Root, places
    from npl_index.library.documents import Document, Fingerprint, Library
    from npl_index.library.references import DocumentRef
    from npl_index.library.roots import Limits
    from npl_index.markdown.sections import Section, SectionTree, Span, parse_sections
    from npl_index.markdown.traits import TraitFilter, Traits
    from npl_index.ranking.analysis import Keywords, extract_keywords
    from npl_index.ranking.indexing import Collection, IndexedDocument, index_document
    from npl_index.ranking.scoring import Hit, Query, Score, rank
    from npl_index.selectors.grammar import Selector, compile_selector
    from npl_index.selectors.selection import Selected, select, selector_for
    from npl_index.tokens.counters import TokenCounter, estimator, load_vocabulary
    from npl_index.tokens.sections import TokenCounts, count_sections

_HOMES = {
    "answer.assembling": ("Desk",),
    "answer.suggestions": ("Companions",),
    "answer.tailoring": (
        "Tailored",
        "TailorRequest",
        "tailor",
    ),
    "choices": ("Weights",),
    "errors": ("NPLError",),
    "items.loading": (
        "Loaded",
        "flag_header",
        "load",
        "load_agent",
    ),
    "library.cache": (
        "BuildingCache",
        "IndexCache",
        "MemoryIndexCache",
    ),
    "library.catalog": (
        "Catalog",
        "Root",
        "places",
    ),
    "library.documents": (
        "Document",
        "Fingerprint",
        "Library",
    ),
    "library.references": ("DocumentRef",),
    "library.roots": ("Limits",),
    "markdown.sections": (
        "Section",
        "SectionTree",
        "Span",
        "parse_sections",
    ),
    "markdown.traits": (
        "TraitFilter",
        "Traits",
    ),
    "ranking.analysis": (
        "Keywords",
        "extract_keywords",
    ),
    "ranking.indexing": (
        "Collection",
        "IndexedDocument",
        "index_document",
    ),
    "ranking.scoring": (
        "Hit",
        "Query",
        "Score",
        "rank",
    ),
    "selectors.grammar": (
        "Selector",
        "compile_selector",
    ),
    "selectors.selection": (
        "Selected",
        "select",
        "selector_for",
    ),
    "tokens.counters": (
        "TokenCounter",
        "estimator",
        "load_vocabulary",
    ),
    "tokens.sections": (
        "TokenCounts",
        "count_sections",
    ),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    """Import a public name from its module."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
