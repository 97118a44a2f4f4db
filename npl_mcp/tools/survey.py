"""Lists and analyses for the command line: agents, notations, versions of prompts.

These tools are called by name and not listed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated

from npl_index.errors import InvalidRequestError, NPLError
from npl_index.items import versioned
from npl_index.items.agents import AgentInfo, field_condition, has_field, in_category, list_agents
from npl_index.items.loading import Group, load_groups, load_raw, text_of
from npl_index.items.notation import Usage, analyse
from npl_mcp.app.file_view import Files
from npl_mcp.tools.contract.spec import not_listed

DEFAULT_PROMPTS = ("npl-conventions", "npl-delegation", "npl-load-directive", "npl-scripts", "sqlite-guide")
"""Default prompts for a file without versioned sections; missing ones are skipped."""

MAX_TEXT = 4 << 20
"""Characters of a text to analyse or update."""


@dataclass(frozen=True, slots=True)
class AgentsReply:
    """Agents, ordered by name.

    :param agents: agents that meet the conditions.
    :param total: number of all agents.
    """

    agents: tuple[AgentInfo, ...]
    total: int


def survey_agents(
    app: Files,
    field: Annotated[str | None, "field:value of the front matter"] = None,
    category: str | None = None,
    texts: Annotated[bool, "Add the files' text"] = False,
) -> AgentsReply:
    """List agents.

    :param category: only agents of this category.
    :returns: agents, ordered by name.
    :raises InvalidRequestError: the field does not have the form ``field:value``.
    """
    condition = field_condition(field) if field is not None else None
    agents = list_agents(app.own)
    chosen = (agent for agent in agents if condition is None or has_field(agent.fields, condition))
    rows = (agent for agent in chosen if category is None or in_category(agent.fields, category))
    return AgentsReply(
        agents=tuple(
            replace(agent, location=_location(app, agent.location), text=agent.text if texts else None)
            for agent in rows
        ),
        total=len(agents),
    )


def _location(app: Files, absolute: str) -> str:
    folder = os.path.join(os.path.realpath(app.settings.cwd), "")  # noqa: PTH118
    return absolute.removeprefix(folder)


@dataclass(frozen=True, slots=True)
class NotationReply:
    """The notations in a text.

    :param total: number of all occurrences.
    :param categories: their categories, sorted.
    :param used: notations in the text, ordered by name.
    """

    total: int
    categories: tuple[str, ...]
    used: tuple[Usage, ...]


def survey_notation(
    app: Files,  # noqa: ARG001 - first parameter of all tools
    text: str,
    matches: Annotated[int, "Maximum number of matches to show of each"] = 0,
) -> NotationReply:
    """Count the notations of NPL in a text.

    :param text: text to analyse.
    :returns: the notations in a text.
    :raises InvalidRequestError: the text is too long.
    """
    _check_size(text)
    used = analyse(text, matches)
    return NotationReply(
        total=sum(usage.count for usage in used),
        categories=tuple(sorted({usage.category for usage in used})),
        used=used,
    )


def survey_versions(
    app: Files,
    text: Annotated[str, "Text of a file with versioned sections"],
    renewed: Annotated[list[str] | None, "Sections to update or add"] = None,
    prompts: Annotated[list[str] | None, "Prompts to append; an empty list means the default ones"] = None,
) -> versioned.VersionsReport:
    """Compare versioned sections with their sources; return the text with newer ones.

    :returns: versioned sections of a text, compared with their sources, and the updated text.
    :raises InvalidRequestError: the text is too long.
    """
    _check_size(text)
    sources = _sources(app)
    if renewed is not None and prompts is None:
        return versioned.renew(text, sources, renewed)
    sections = versioned.compare(sources, versioned.versioned_sections(text))
    return versioned.VersionsReport(sections) if prompts is None else _appended(app, text, prompts, sections)


def _sources(app: Files) -> dict[str, versioned.VersionedSection]:
    """Return the versioned sections of all prompts by name; for equal names the first place counts."""
    kind = app.library.catalog.kind("prompt")
    items = app.own.find_items(kind, "*")
    order = {place.root.label: number for number, place in reversed(list(enumerate(kind.places)))}
    sources: dict[str, versioned.VersionedSection] = {}
    for name in sorted(items, key=lambda name: (order[items[name].label], name)):
        place = _location(app, items[name].absolute)
        with suppress(NPLError):  # an unreadable prompt updates nothing
            text = text_of(app.library.read(items[name]))
            for section in versioned.versioned_sections(text).values():
                sources.setdefault(section.name, replace(section, location=place))
    return sources


def _appended(
    app: Files, text: str, prompts: list[str], sections: tuple[versioned.VersionComparison, ...]
) -> versioned.VersionsReport:
    """Append whole prompts that are not installed."""
    installed = {row.name: row.installed_version for row in sections if row.installed_version is not None}
    bodies: list[str] = []
    changes: list[versioned.Change] = []
    unknown: list[str] = []
    near: list[str] = []
    for name in prompts or DEFAULT_PROMPTS:
        loaded = None if name in installed else load_groups(app.own, [Group("prompt", name)])
        if loaded is None:
            continue
        if loaded.items:
            bodies.append(load_raw(app.own, "prompt", name).content)
            changes.append(versioned.Change(name, None, loaded.items[0].version or "0.0.0"))
        elif prompts:
            unknown.append(name)
            near += [similar for missing in loaded.missing or () for similar in missing.near]
    return versioned.VersionsReport(
        sections=sections,
        text=versioned.append(text, bodies),
        changes=tuple(changes),
        unknown=tuple(unknown) or None,
        near=tuple(near) or None,
    )


def _check_size(text: str) -> None:
    if len(text) > MAX_TEXT:
        problem = f"the text has {len(text):,} characters"
        raise InvalidRequestError(problem, parameter="text", hint=f"use at most {MAX_TEXT:,}")


TOOLS = (*not_listed(survey_agents, survey_notation, survey_versions),)
