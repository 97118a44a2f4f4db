"""Versioned prompts in a text: version_report with their sources, updated, and appended."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from npl_index.errors import InvalidRequestError, NPLError
from npl_index.items import versioned
from npl_index.items.loading import Group, load_groups, load_raw, text_of
from npl_mcp.app.file_view import Files

DEFAULT_PROMPTS = ("npl-conventions", "npl-delegation", "npl-load-directive", "npl-scripts", "sqlite-guide")
"""Default prompts for a file without versioned sections; missing ones are skipped."""

MAX_TEXT = 4 << 20
"""Characters of a text to compare or update."""


def version_report(
    files: Files, text: str, renewed: Sequence[str] | None = None, prompts: Sequence[str] | None = None
) -> versioned.VersionsReport:
    """Compare versioned sections with their sources; return the text with newer ones.

    :param text: text of a file with versioned sections.
    :param renewed: sections to update or add.
    :param prompts: prompts to append; none means the default ones.
    :raises InvalidRequestError: the text is too long.
    """
    if len(text) > MAX_TEXT:
        problem = f"the text has {len(text):,} characters"
        raise InvalidRequestError(problem, parameter="text", hint=f"use at most {MAX_TEXT:,}")
    sources = _sources(files)
    if renewed is not None and prompts is None:
        return versioned.renew(text, sources, renewed)
    sections = versioned.compare(sources, versioned.versioned_sections(text))
    return (
        versioned.VersionsReport(sections) if prompts is None else _appended(files, text, prompts, sections)
    )


def _sources(files: Files) -> dict[str, versioned.VersionedSection]:
    """Return the versioned sections of all prompts by name; for equal names the first place counts."""
    kind = files.library.catalog.kind("prompt")
    items = files.own.find_items(kind, "*")
    order = {place.root.label: number for number, place in reversed(list(enumerate(kind.places)))}
    sources: dict[str, versioned.VersionedSection] = {}
    for name in sorted(items, key=lambda name: (order[items[name].label], name)):
        place = files.place(items[name].absolute)
        with suppress(NPLError):  # an unreadable prompt updates nothing
            text = text_of(files.library.read(items[name]))
            for section in versioned.versioned_sections(text).values():
                sources.setdefault(section.name, replace(section, location=place))
    return sources


def _appended(
    files: Files, text: str, prompts: Sequence[str], sections: tuple[versioned.VersionComparison, ...]
) -> versioned.VersionsReport:
    """Append whole prompts that are not installed."""
    installed = {row.name: row.installed_version for row in sections if row.installed_version is not None}
    bodies: list[str] = []
    changes: list[versioned.Change] = []
    unknown: list[str] = []
    near: list[str] = []
    for name in prompts or DEFAULT_PROMPTS:
        loaded = None if name in installed else load_groups(files.own, [Group("prompt", name)])
        if loaded is None:
            continue
        if loaded.items:
            bodies.append(load_raw(files.own, "prompt", name).content)
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
