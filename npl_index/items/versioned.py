"""Compare and update versioned prompts inside one file, such as an agent's ``CLAUDE.md``.

A versioned section begins with a header and ends before a line ``* * *``, the next header, or the end of the
file::

    npl-instructions:
       name: npl-conventions
       version: 1.5.0
    ---

Lines inside a fence neither begin nor end a section, except a separator directly before a header: prompts
nest fences of equal length, so a fence may only appear to be open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from npl_index.library.references import near_names
from npl_index.library.roots import LocalPath
from npl_index.markdown.preambles import BETWEEN, SEPARATOR, match_npl_header, name_and_version
from npl_index.selectors.versions import NO_VERSION, version_key

_MARKER = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


@dataclass(frozen=True, slots=True)
class VersionedSection:
    """A versioned section of a text.

    :param name: the name in its header.
    :param version: the version in its header, ``0.0.0`` without one.
    :param text: its text, from the header to the last line that is not blank.
    :param start: offset of its first character.
    :param stop: offset after its last character.
    :param location: path of its file, for display, if it is the source of an update.
    """

    name: str
    version: str
    text: str
    start: int
    stop: int
    location: Annotated[str | None, LocalPath] = None


@dataclass(frozen=True, slots=True)
class VersionComparison:
    """Comparison of a section's installed version with its source's version.

    :param name: name of the section.
    :param source_version: version of its source, ``None`` without a source.
    :param installed_version: ``None`` if the section is not installed.
    :param source_path: location of the source.
    :param status: ``current``, ``outdated`` (the source is newer), ``newer`` (the installed section is
        newer), ``missing`` (not installed) or ``extra`` (no source).
    """

    name: str
    source_version: str | None
    installed_version: str | None
    source_path: Annotated[str | None, LocalPath]
    status: str


@dataclass(frozen=True, slots=True)
class Change:
    """A replaced or added section.

    :param name: name of the section.
    :param before: the previous version, ``None`` if the section was not installed.
    :param after: the new version.
    """

    name: str
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class VersionsReport:
    """Versioned sections of a text, compared with their sources, and the updated text.

    :param sections: sections that are installed or have a source.
    :param text: updated text, if a change was requested.
    :param changes: replaced and added sections.
    :param lost: requested sections without a source.
    :param unknown: unknown names.
    :param near: known names similar to the unknown ones.
    """

    sections: tuple[VersionComparison, ...]
    text: str | None = None
    changes: tuple[Change, ...] | None = None
    lost: tuple[str, ...] | None = None
    unknown: tuple[str, ...] | None = None
    near: tuple[str, ...] | None = None


Sections = Mapping[str, VersionedSection]


def versioned_sections(text: str) -> dict[str, VersionedSection]:
    """Return the versioned sections of a text by name; among equal names the last section counts.

    :param text: with line feeds as line ends.
    """
    marks = [*_marks(text), (len(text), None)]
    sections = {}
    for (start, header), (stop, _) in pairwise(marks):
        if header is not None:
            body = text[start:stop].rstrip()
            name, version = name_and_version(header[1])
            if name:
                end = start + len(body)
                sections[name] = VersionedSection(name, version or NO_VERSION, body, start, end)
    return sections


def _marks(text: str) -> Iterator[tuple[int, re.Match[str] | None]]:
    """Yield the offset and match of every header, and the offset of every separator with ``None``."""
    fence, at, after_separator = "", 0, False
    for line in text.splitlines(keepends=True):
        header = match_npl_header(text, at) if line.startswith("npl-instructions:") else None
        if header is not None and (not fence or after_separator):
            fence = ""
            yield at, header
        elif line.rstrip() == SEPARATOR and (not fence or _header_follows(text, at + len(line))):
            yield at, None
            after_separator = True
        elif line.strip():
            after_separator = False
            fence = _open_fence(fence, line)
        at += len(line)


def _open_fence(fence: str, line: str) -> str:
    """Return the marks of the open fence after a line, ``""`` for none.

    :param fence: those before the line.
    """
    marker = _MARKER.match(line)
    if marker is None or (fence and not marker[1].startswith(fence)):
        return fence
    if fence:
        return fence if marker[2].strip() else ""
    return "" if marker[1][0] == "`" and "`" in marker[2] else marker[1]


def _header_follows(text: str, at: int) -> bool:
    rest = re.compile(r"\s*").match(text, at)
    return rest is not None and match_npl_header(text, rest.end()) is not None


def compare(sources: Sections, installed: Sections) -> tuple[VersionComparison, ...]:
    """Compare the installed sections with their sources, by name."""

    def compared(name: str) -> VersionComparison:
        source, section = sources.get(name), installed.get(name)
        latest, path = (source.version, source.location) if source else (None, None)
        present = section.version if section else None
        return VersionComparison(name, latest, present, path, _version_status(latest, present))

    return tuple(map(compared, sorted({*sources, *installed})))


def _version_status(latest: str | None, installed: str | None) -> str:
    if latest is None or installed is None:
        return "extra" if latest is None else "missing"
    lowest = version_key(NO_VERSION) or ((), ())
    new, old = version_key(latest) or lowest, version_key(installed) or lowest
    return "current" if new == old else "outdated" if new > old else "newer"


def renew(text: str, sources: Sections, names: Iterable[str]) -> VersionsReport:
    """Replace sections with their sources, and add missing sections; all other text stays.

    :param text: with line feeds as line ends.
    :param names: names of the sections; repeated names count once.
    """
    installed = versioned_sections(text)
    requested = tuple(dict.fromkeys(names))
    present = sorted(installed.keys() & requested, key=lambda name: installed[name].start)
    replaced = [name for name in present if name in sources]
    added = [name for name in requested if name in sources and name not in installed]
    unknown = [name for name in requested if name not in installed and name not in sources]
    for name in reversed(replaced):
        text = text[: installed[name].start] + sources[name].text + text[installed[name].stop :]
    if added:
        text = append(text.rstrip(), [sources[name].text for name in added])
    changes = [Change(name, installed[name].version, sources[name].version) for name in replaced]
    return VersionsReport(
        sections=compare(sources, installed),
        text=text,
        changes=(*changes, *(Change(name, None, sources[name].version) for name in added)),
        lost=tuple(name for name in present if name not in sources) or None,
        unknown=tuple(unknown) or None,
        near=tuple(near for name in unknown for near in near_names(name, {*sources, *installed})) or None,
    )


def append(text: str, prompts: Sequence[str]) -> str:
    """Append prompts to a text, with a separator before each."""
    bodies = [_without_separators(prompt) for prompt in prompts]
    return text + BETWEEN * bool(text.strip() and bodies) + BETWEEN.join(bodies)


def _without_separators(text: str) -> str:
    """Return a text without surrounding blank lines and without a separator at its start and its end."""
    return text.strip().removeprefix(SEPARATOR).lstrip("\n").removesuffix(SEPARATOR).rstrip("\n")
