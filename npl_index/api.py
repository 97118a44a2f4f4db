"""The library in two functions: sections that a task needs, and the sections there are.

Files are read again when they change, and otherwise taken from memory. For other caches, item names, several
roots or own limits put the parts together as ``npl_mcp.core.app`` does.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npl_index.answer.outline import OutlineNode
    from npl_index.answer.values import Tailored
    from npl_index.markdown.traits import TraitFilter
    from npl_index.tokens.counting import TokenCounter


def load_tailored(
    path: str | os.PathLike[str],
    context: str = "",
    *,
    topics: Sequence[str] = (),
    selectors: Sequence[str] = (),
    budget: int | None = None,
    explain: bool = False,
    counter: TokenCounter | None = None,
) -> Tailored:
    """Return the sections of Markdown files that a task needs.

    :param path: a Markdown file, or a folder, whose files are ranked together.
    :param context: the task or question.
    :param topics: concepts to match against headings and text.
    :param selectors: sections to include whatever their score, e.g. ``"guide > ## Usage"``.
    :param budget: tokens of the content at most; ``None`` for no limit.
    :param explain: report every hit and the parts of its score.
    :param counter: counts tokens, by default those of ``o200k_base``: exactly where that vocabulary lies on
        this machine, else by estimate.
    :raises DocumentNotFoundError: there is no such file, or no Markdown in the folder.
    :raises DocumentError: the file cannot be read or is too large.
    :raises InvalidRequestError: there is nothing to look for, or an argument is out of range.
    :raises SelectorSyntaxError: a selector cannot be parsed.
    :raises SectionNotFoundError: there are selectors, and none selects anything.
    """
    from npl_index.answer import files

    request = files.TailorRequest.parse(
        context=context, topics=topics, selectors=selectors, token_budget=budget, explain=explain
    )
    return files.tailored(os.fspath(path), request, counter)


def section_index(
    path: str | os.PathLike[str],
    *,
    depth: int | None = None,
    conditions: TraitFilter | None = None,
    counter: TokenCounter | None = None,
) -> tuple[OutlineNode, ...]:
    """Return the section tree of each Markdown file: a node of level 0 with its sections as children.

    Files of a folder that cannot be read are left out and named in the log.

    :param path: a Markdown file or a folder.
    :param depth: levels of sections below the file; ``None`` for all.
    :param conditions: only sections that meet these, and what leads to them.
    :param counter: counts tokens, by default those of ``o200k_base``: exactly where that vocabulary lies on
        this machine, else by estimate.
    :raises DocumentNotFoundError: there is no such file, or no Markdown in the folder.
    :raises DocumentError: the file cannot be read or is too large.
    """
    from npl_index.answer import files

    return files.outlines(os.fspath(path), depth, conditions, counter)
