"""Find, parse, select, rank and pack sections of Markdown for agents.

``load_tailored`` and ``section_index`` are the interface; their building blocks have names in their modules.
Each name is imported from its module at its first use, so that a program loads only the modules it needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npl_index.outline.nodes import OutlineNode as OutlineNode
    from npl_index.answer.values import Tailored as Tailored
    from npl_index.api import load_tailored as load_tailored, section_index as section_index
    from npl_index.errors import NPLError as NPLError
    from npl_index.selectors.filters import TraitFilter as TraitFilter
    from npl_index.tokens.counting import TokenCounter as TokenCounter
    from npl_index.tokens.estimated import estimator as estimator
    from npl_index.tokens.exact import load_vocabulary as load_vocabulary

_MODULE_OF = {
    "NPLError": "errors",
    "OutlineNode": "outline.nodes",
    "Tailored": "answer.values",
    "TokenCounter": "tokens.counting",
    "TraitFilter": "selectors.filters",
    "estimator": "tokens.estimated",
    "load_tailored": "api",
    "load_vocabulary": "tokens.exact",
    "section_index": "api",
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> object:
    """Import a public name from its module."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
