"""Markdown to sections, sections to answers: find, parse, select, rank and pack Markdown for agents.

The public names. They are imported from their modules when first used, so that a program pays only for
what it needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npl_index.analysis import Keywords, extract_keywords
    from npl_index.assembling import Desk
    from npl_index.cache import BuildingCache, IndexCache, MemoryIndexCache
    from npl_index.catalog import Catalog, Root, places
    from npl_index.choices import Weights
    from npl_index.counting import TokenCounts, count_sections
    from npl_index.documents import Document, Fingerprint, Library
    from npl_index.errors import NPLError
    from npl_index.finding import Limits
    from npl_index.indexing import Collection, IndexedDocument, index_document
    from npl_index.loading import Loaded, flag_header, load, load_agent
    from npl_index.references import DocumentRef
    from npl_index.scoring import Hit, Query, Score, rank
    from npl_index.sections import Section, SectionTree, Span, parse_sections
    from npl_index.selection import Selected, select, selector_for
    from npl_index.selectors import Selector, compile_selector
    from npl_index.suggestions import Companions
    from npl_index.tailoring import Tailored, TailorRequest, tailor
    from npl_index.tokens import TokenCounter, estimator, load_vocabulary
    from npl_index.traits import TraitFilter, Traits

_HOMES = {
    "analysis": ("Keywords", "extract_keywords"),
    "assembling": ("Desk",),
    "cache": ("BuildingCache", "IndexCache", "MemoryIndexCache"),
    "catalog": ("Catalog", "Root", "places"),
    "choices": ("Weights",),
    "counting": ("TokenCounts", "count_sections"),
    "documents": ("Document", "Fingerprint", "Library"),
    "errors": ("NPLError",),
    "finding": ("Limits",),
    "indexing": ("Collection", "IndexedDocument", "index_document"),
    "loading": ("Loaded", "flag_header", "load", "load_agent"),
    "references": ("DocumentRef",),
    "scoring": ("Hit", "Query", "Score", "rank"),
    "sections": ("Section", "SectionTree", "Span", "parse_sections"),
    "selection": ("Selected", "select", "selector_for"),
    "selectors": ("Selector", "compile_selector"),
    "suggestions": ("Companions",),
    "tailoring": ("TailorRequest", "Tailored", "tailor"),
    "tokens": ("TokenCounter", "estimator", "load_vocabulary"),
    "traits": ("TraitFilter", "Traits"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    """Import a public name from its module."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
