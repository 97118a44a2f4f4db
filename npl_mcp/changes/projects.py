"""Projects with change requests: folders that hold ``.mdt-config.toml``, or that a setting names.

::

    [project]
    code = "TST"                # a letter and 1 to 4 letters or digits
    name = "Test Project"
    id = "proj"                 # optional, as all that follows
    ticketsPath = "docs/CRs"    # inside the project
    startNumber = 1
    description = ""
    repository = ""
    active = true

The file is only read; an older one, which says ``path`` for ``ticketsPath``, is understood as it is.
"""

# A path object costs more than the system call it is made for.
# ruff: noqa: PTH118

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npl_index.errors import NPLError
from npl_index.library.files import read_path
from npl_mcp.changes.files import TicketFolder, locate
from npl_mcp.changes.format import Key, is_code, parse_code
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.errors import ProjectNotFoundError

CONFIG = ".mdt-config.toml"
TICKETS = "docs/CRs"
MOST_CHILDREN = 1_000
"""Most folders directly below a search root that are searched for projects."""

_LARGEST_CONFIG = 64 * 1024


@dataclass(frozen=True, slots=True)
class Project:
    """A project with change requests.

    :param code: what its keys begin with.
    :param name: for people.
    :param folder: of its change requests.
    :param path: the project's folder, absolute.
    :param tickets: path of ``folder`` below it.
    :param start: number of its first change request.
    """

    code: str
    name: str
    folder: TicketFolder = field(repr=False, compare=False)
    path: str
    tickets: str
    id: str | None = None
    description: str | None = None
    repository: str | None = None
    start: int = 1


class Projects:
    """Finds the projects a caller may see; looks at the folders at each call.

    :param cwd: the caller's working directory, which may lie inside a project.
    :param roots: folders that are projects or contain some; no project above the one with ``cwd`` is found.
    :param named: folders of change requests by code.
    """

    def __init__(self, cwd: Path, roots: Sequence[Path], named: Mapping[str, Path]) -> None:
        self._cwd = str(cwd.absolute())
        self._roots = tuple(dict.fromkeys(str(root.absolute()) for root in roots))
        self._named = named
        self._kept: dict[str, tuple[tuple[int, int], Project | None]] = {}
        self._lock = threading.Lock()

    def all(self) -> tuple[Project, ...]:
        """Return all projects, that of the working directory first; of one code only the first counts."""
        found: dict[str, Project] = {}
        for project in self._stream():
            found.setdefault(project.code, project)
        return tuple(found.values())

    def find(self, code: str | None, key: Key | None = None) -> Project:
        """Return the project a call is about: the named one, else that of the key, else that of the working
        directory, else the only one.

        :raises ProjectNotFoundError: there is no such project, or several might be meant.
        """
        wanted = parse_code(code) if code is not None else key.code if key is not None else None
        if wanted is None:
            return self._only()
        found = next((project for project in self._stream() if project.code == wanted), None)
        if found is None:
            known = ", ".join(project.code for project in self.all()) or "none"
            raise ProjectNotFoundError(f"Project '{wanted}' not found", hint=f"available projects: {known}")
        return found

    def _only(self) -> Project:
        here = self._above()
        known = self.all() if here is None else (here,)
        if len(known) == 1:
            return known[0]
        if not known:
            raise ProjectNotFoundError(
                "there is no project with change requests",
                hint=f'put {CONFIG} with [project], code = "ABC" and name = "…" into its folder',
            )
        raise ProjectNotFoundError(
            "several projects might be meant",
            near=[project.code for project in known],
            hint=f"give project, one of {', '.join(project.code for project in known)}",
        )

    def _stream(self) -> Iterator[Project]:
        """Return the projects, those first that are found fastest."""
        here = self._above()
        if here is not None:
            yield here
        for code, path in self._named.items():
            folder = str(path.absolute())
            yield Project(code, code, locate(folder, ""), folder, "")
        # The working directory is searched like a root.
        roots = dict.fromkeys((*self._roots, self._cwd))
        lone = [(root, self._at(root)) for root in roots]
        yield from (project for _, project in lone if project is not None)
        for root, project in lone:
            if project is not None:
                continue
            for child in _folders(root):
                inner = self._at(child)
                if inner is not None:
                    yield inner

    def _above(self) -> Project | None:
        """Return the project the working directory lies in."""
        folder = os.path.realpath(self._cwd)
        stops = {
            root
            for root in map(os.path.realpath, self._roots)
            if f"{folder}{os.sep}".startswith(os.path.join(root, ""))
        }
        while True:
            found = self._at(folder)
            parent = os.path.dirname(folder)  # noqa: PTH120
            if found is not None or folder in stops or parent == folder:
                return found
            folder = parent

    def _at(self, folder: str) -> Project | None:
        """Return the project a folder is, from memory while its configuration is unchanged."""
        path = os.path.join(folder, CONFIG)
        try:
            status = os.stat(path)  # noqa: PTH116
        except OSError:
            return None
        state = (status.st_mtime_ns, status.st_size)
        with self._lock:
            kept = self._kept.get(folder)
        if kept is None or kept[0] != state:
            kept = (state, _project(folder, _configuration(path)))
            with self._lock:
                self._kept[folder] = kept
        return kept[1]


def _folders(root: str) -> list[str]:
    """List the folders in a root, sorted; those of installed packages and hidden ones are none."""
    found = []
    try:
        with os.scandir(root) as entries:
            for entry in entries:
                if (
                    entry.name[0] != "."
                    and entry.name != "node_modules"
                    and entry.is_dir(follow_symlinks=False)
                ):
                    found.append(entry.path)
    except OSError:
        return []
    return sorted(found)[:MOST_CHILDREN]


def _configuration(path: str) -> Mapping[str, Any]:
    """Read a configuration; empty if it cannot be read."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]
    try:
        read = tomllib.loads(read_path(path, _LARGEST_CONFIG)[0].decode("utf-8"))
    except (OSError, ValueError):
        return {}
    project = read.get("project")
    return project if isinstance(project, dict) else {}


def _project(folder: str, values: Mapping[str, Any]) -> Project | None:
    """Make a project of its configuration; ``None`` if that is not usable."""
    texts: dict[str, str] = {name: value for name, value in values.items() if isinstance(value, str)}
    code, name = texts.get("code", ""), texts.get("name", "")
    tickets = texts.get("ticketsPath") or texts.get("path") or TICKETS
    parts = tickets.replace("\\", "/").split("/")
    start = values.get("startNumber", 1)
    if not is_code(code) or not values.get("active", True) or Path(tickets).is_absolute() or ".." in parts:
        return None
    try:
        place = locate(folder, "/".join(part for part in parts if part not in ("", os.curdir)))
        shown = checks.line(name or code, "name")
    except NPLError:
        return None
    return Project(
        code,
        shown,
        place,
        folder,
        place.below,
        texts.get("id") or None,
        texts.get("description") or None,
        texts.get("repository") or None,
        start if isinstance(start, int) and not isinstance(start, bool) and 0 < start < 10**5 else 1,
    )
