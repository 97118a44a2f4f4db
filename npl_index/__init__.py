"""Find, parse, select, rank and pack sections of Markdown for agents.

``load_tailored`` and ``section_index`` cover the common cases; the other names are their building blocks.
Each name is imported from its module at its first use, so that a program loads only the modules it needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npl_index.answer.document_set import DocumentSet as DocumentSet
    from npl_index.answer.outline import OutlineNode as OutlineNode
    from npl_index.answer.suggestions import Companions as Companions
    from npl_index.answer.tailoring import TailorRequest as TailorRequest, tailor as tailor
    from npl_index.answer.values import Tailored as Tailored
    from npl_index.api import load_tailored as load_tailored, section_index as section_index
    from npl_index.choices import Weights as Weights
    from npl_index.errors import NPLError as NPLError
    from npl_index.items.loading import Loaded as Loaded, flag_header as flag_header, load as load
    from npl_index.items.loading import load_agent as load_agent
    from npl_index.library.cache import BuildingCache as BuildingCache
    from npl_index.library.catalog import Catalog as Catalog, Root as Root, places as places
    from npl_index.library.documents import Document as Document, Library as Library
    from npl_index.library.fingerprints import Fingerprint as Fingerprint
    from npl_index.library.references import DocumentRef as DocumentRef
    from npl_index.library.roots import Limits as Limits
    from npl_index.markdown.sections import Section as Section, SectionTree as SectionTree, Span as Span
    from npl_index.markdown.sections import parse_sections as parse_sections
    from npl_index.markdown.traits import TraitFilter as TraitFilter, Traits as Traits
    from npl_index.ranking.analysis import Keywords as Keywords, extract_keywords as extract_keywords
    from npl_index.ranking.indexing import Collection as Collection, IndexedDocument as IndexedDocument
    from npl_index.ranking.indexing import index_document as index_document
    from npl_index.ranking.scoring import Hit as Hit, Query as Query, Score as Score, rank as rank
    from npl_index.selectors.grammar import Selector as Selector, compile_selector as compile_selector
    from npl_index.selectors.selection import Selected as Selected, select as select
    from npl_index.selectors.writing import selector_for as selector_for
    from npl_index.tokens.counting import TokenCounter as TokenCounter
    from npl_index.tokens.estimated import estimator as estimator
    from npl_index.tokens.exact import load_vocabulary as load_vocabulary
    from npl_index.tokens.sections import TokenCounts as TokenCounts, count_sections as count_sections

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
    "library.cache": "BuildingCache",
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
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> object:
    """Import a public name from its module."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
