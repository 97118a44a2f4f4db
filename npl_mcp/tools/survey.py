"""Lists and analyses for the command line: agents, notation, versions of prompts.

These tools are called by name and not listed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from npl_index.errors import InvalidRequestError, NPLError
from npl_index.items.agents import field_condition, has_field, in_category
from npl_index.items.loading import Group, list_agents, load_groups, load_raw, text_of
from npl_index.items.notation import Usage, analyse
from npl_index.items.versioned import Change, Comparison, Source, append, compare, renew, versioned_sections
from npl_index.library.references import near_names
from npl_mcp.core.files import Files
from npl_mcp.tools.spec import ToolSpec

DEFAULT_PROMPTS = ("npl-conventions", "npl-delegation", "npl-load-directive", "npl-scripts", "sqlite-guide")
"""Prompts added to a file without versioned sections, as far as they exist."""

MAX_TEXT = 4 << 20
"""Most characters of a text that is analysed or updated."""


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent.

    :param name: its name.
    :param location: its file: below the working directory, or absolute.
    :param fields: its front matter.
    :param text: the whole file, on request.
    """

    name: str
    location: str
    fields: Mapping[str, object]
    text: str | None


@dataclass(frozen=True, slots=True)
class AgentsReply:
    """Agents by name.

    :param agents: those that meet the conditions.
    :param total: how many there are.
    """

    agents: tuple[AgentRow, ...]
    total: int


def survey_agents(
    app: Files,
    field: Annotated[str | None, "field:value of the front matter"] = None,
    category: str | None = None,
    texts: Annotated[bool, "Add the files' text"] = False,
) -> AgentsReply:
    """List agents.

    :returns: agents by name.
    :raises InvalidRequestError: the field is not of the form ``field:value``.
    """
    condition = field_condition(field) if field is not None else None
    agents = list_agents(app.own)
    chosen = (agent for agent in agents if condition is None or has_field(agent.fields, condition))
    rows = (agent for agent in chosen if category is None or in_category(agent.fields, category))
    return AgentsReply(
        agents=tuple(
            AgentRow(agent.name, _location(app, agent.absolute), agent.fields, agent.text if texts else None)
            for agent in rows
        ),
        total=len(agents),
    )


def _location(app: Files, absolute: str) -> str:
    here = os.path.join(os.path.realpath(app.settings.cwd), "")  # noqa: PTH118
    return absolute.removeprefix(here)


@dataclass(frozen=True, slots=True)
class NotationReply:
    """The notations a text uses.

    :param total: how often any of them occurs.
    :param categories: the categories they belong to, sorted.
    :param used: each notation that occurs, by name.
    """

    total: int
    categories: tuple[str, ...]
    used: tuple[Usage, ...]


def survey_notation(
    app: Files,  # noqa: ARG001 - every tool takes it
    text: str,
    matches: Annotated[int, "Matches shown of each"] = 0,
) -> NotationReply:
    """Count the notations of NPL in a text.

    :returns: the notations a text uses.
    :raises InvalidRequestError: the text is too long.
    """
    _check_size(text)
    used = analyse(text, matches)
    return NotationReply(
        total=sum(usage.count for usage in used),
        categories=tuple(sorted({usage.category for usage in used})),
        used=used,
    )


@dataclass(frozen=True, slots=True)
class VersionsReply:
    """Versioned sections of a text, compared with their sources, and the updated text.

    :param sections: each that is installed or has a source.
    :param text: the updated text, if a change was requested.
    :param changes: sections replaced or added.
    :param present: prompts to be added that are installed already.
    :param lost: sections to update that have no source.
    :param unknown: names that exist nowhere.
    :param near: known names similar to those.
    """

    sections: tuple[Comparison, ...]
    text: str | None = None
    changes: tuple[Change, ...] | None = None
    present: tuple[str, ...] | None = None
    lost: tuple[str, ...] | None = None
    unknown: tuple[str, ...] | None = None
    near: tuple[str, ...] | None = None


def survey_versions(
    app: Files,
    text: Annotated[str, "A file with versioned sections"],
    renewed: Annotated[list[str] | None, "Sections to renew or add"] = None,
    prompts: Annotated[list[str] | None, "Prompts to append; none names the usual ones"] = None,
) -> VersionsReply:
    """Compare versioned sections with their sources; return the text with newer ones.

    :returns: versioned sections of a text, compared with their sources, and the updated text.
    :raises InvalidRequestError: the text is too long.
    """
    _check_size(text)
    sources = _sources(app)
    installed = versioned_sections(text)
    sections = compare(sources, installed)
    if prompts is not None:
        return _appended(app, text, prompts, sections)
    if renewed is None:
        return VersionsReply(sections)
    result = renew(text, sources, renewed)
    known = {*sources, *installed}
    return VersionsReply(
        sections=sections,
        text=result.text,
        changes=result.changes,
        lost=result.lost or None,
        unknown=result.unknown or None,
        near=tuple(near for name in result.unknown for near in near_names(name, known)) or None,
    )


def _sources(app: Files) -> dict[str, Source]:
    """Return the versioned sections of all prompts by name; of equal names the first place wins."""
    kind = app.library.catalog.kind("prompt")
    found = app.own.find_items(kind, "*")
    order = {place.root.label: number for number, place in reversed(list(enumerate(kind.places)))}
    sources: dict[str, Source] = {}
    for name in sorted(found, key=lambda name: (order[found[name].label], name)):
        try:
            text = text_of(app.library.read(found[name]))
        except NPLError:  # a prompt that cannot be read updates nothing
            continue
        for section in versioned_sections(text).values():
            sources.setdefault(section.name, Source(section, _location(app, found[name].absolute)))
    return sources


def _appended(app: Files, text: str, prompts: list[str], sections: tuple[Comparison, ...]) -> VersionsReply:
    """Append prompts whole that are not there yet."""
    installed = {row.name: row.installed_version for row in sections if row.installed_version is not None}
    bodies: list[str] = []
    changes: list[Change] = []
    unknown: list[str] = []
    near: list[str] = []
    for name in prompts or DEFAULT_PROMPTS:
        loaded = None if name in installed else load_groups(app.own, [Group("prompt", name)])
        if loaded is None:
            continue
        if loaded.items:
            bodies.append(load_raw(app.own, "prompt", name).content)
            changes.append(Change(name, None, loaded.items[0].version or "0.0.0"))
        elif prompts:
            unknown.append(name)
            near += [one for missing in loaded.missing for one in missing.near]
    return VersionsReply(
        sections=sections,
        text=append(text, bodies),
        changes=tuple(changes),
        present=tuple(name for name in prompts or DEFAULT_PROMPTS if name in installed) or None,
        unknown=tuple(unknown) or None,
        near=tuple(near) or None,
    )


def _check_size(text: str) -> None:
    if len(text) > MAX_TEXT:
        problem = f"the text has {len(text):,} characters"
        raise InvalidRequestError(problem, parameter="text", hint=f"use at most {MAX_TEXT:,}")


TOOLS = (
    ToolSpec(survey_agents, listed=False),
    ToolSpec(survey_notation, listed=False),
    ToolSpec(survey_versions, listed=False),
)
