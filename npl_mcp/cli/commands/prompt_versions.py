"""Versioned prompts in a text: compared with their sources, updated, and appended."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from npl_index.errors import NPLError
from npl_index.items import versioned
from npl_index.items.loading import Group, load_groups, load_raw, text_of
from npl_mcp.app.file_view import Files

DEFAULT_PROMPTS = ("npl-conventions", "npl-delegation", "npl-load-directive", "npl-scripts", "sqlite-guide")
"""Default prompts for a file without versioned sections; missing ones are skipped."""


def compared(files: Files, text: str) -> tuple[versioned.VersionComparison, ...]:
    """Compare the versioned sections of a text with their sources."""
    return versioned.compare(_sources(files), versioned.versioned_sections(text))


def renewed(files: Files, text: str, names: Sequence[str]) -> versioned.VersionsReport:
    """Update or add sections."""
    return versioned.renew(text, _sources(files), names)


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


def appended(files: Files, text: str, prompts: Sequence[str]) -> versioned.VersionsReport:
    """Append whole prompts that are not installed.

    :param prompts: their names; none means the default ones.
    """
    sections = compared(files, text)
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
