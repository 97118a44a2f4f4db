"""Projects with change requests: folders with a file ``.mdt-config.toml``.

::

    [project]
    code = "TST"                # a letter and 1 to 4 letters or digits
    name = "Test Project"
    id = "proj"                 # optional, like all following lines
    ticketsPath = "docs/CRs"    # inside the project
    startNumber = 1
    description = ""
    repository = ""
    active = true

A file that cannot be used affects no other project; errors name the file and the value. The file is never
written. Older files have ``path`` instead of ``ticketsPath``.

Numbers of new change requests are higher than all earlier ones of the project. A file next to the
configuration holds the highest key. Without it, the key of a deleted change request would be used again,
although commits and notes may mention it. Present files count as well, because they may be newer.
"""

# A path object costs more than the system call.
# ruff: noqa: PTH118

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npl_index.errors import InvalidRequestError, NPLError
from npl_index.library.files import Folder, read_below
from npl_index.library.fingerprints import Fingerprint
from npl_index.library.roots import below_root
from npl_mcp.config.toml import read_toml
from npl_mcp.documents.answers import ProjectInfo
from npl_mcp.documents.folders import SharedFolder, printable
from npl_mcp.documents.format import MAX_NUMBER, ChangeKey, is_code, key_in, parse_code
from npl_mcp.documents.tickets import FolderListing
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.errors import ClosedError, ProjectNotFoundError

CONFIG = ".mdt-config.toml"
TICKETS = "docs/CRs"

LAST_KEY_FILE = ".mdt-last-key"
"""File with the highest key of the project, e.g. ``TST-033``."""

_LINE = re.compile(rb"([A-Z][A-Z0-9]{1,4})-([0-9]{1,5})\s*")
_MAX_LINE = 64

_MAX_CONFIG_BYTES = 64 * 1024
_MAX_PATH = 1_000

MAX_CHILDREN = 1_000
"""Folders directly below a search root that are searched for projects."""

_MAX_PROBLEMS = 5
_FIRST = f'put {CONFIG} with [project], code = "ABC" and name = "…" into its folder'


@dataclass(frozen=True, slots=True)
class Project:
    """A project with change requests.

    :param folder: folder of its change requests.
    :param info: description in answers.
    """

    folder: SharedFolder
    info: ProjectInfo

    @property
    def code(self) -> str:
        """The code that its keys begin with."""
        return self.info.code


def read_config(folder: str) -> Project | str | None:
    """Read the project of a folder.

    :param folder: path of a folder with a file :data:`CONFIG`.
    :returns: ``None`` if the project is switched off; the reason, with the file, if the configuration cannot
        be used.
    """
    try:
        data = read_below(*below_root(folder, CONFIG), _MAX_CONFIG_BYTES)[0]
        # Some editors write a byte order mark.
        project = read_toml(data.decode("utf-8-sig")).get("project")
        if not isinstance(project, dict):
            raise InvalidRequestError("the table [project] is missing")
        return _project(folder, project)
    except OSError as error:
        problem = f"cannot be read: {(error.strerror or type(error).__name__).lower()}"
    except ValueError as error:
        problem = f"not TOML: {error}"[:200]
    except NPLError as error:
        problem = error.message
    return f"{printable(Path(folder).name)}/{CONFIG}: {problem}"


def _project(folder: str, values: Mapping[str, Any]) -> Project | None:
    """Return the project of a configuration; ``None`` if it is switched off.

    :raises NPLError: a value cannot be used.
    """
    if not values.get("active", True):
        return None
    code = values.get("code")
    if not isinstance(code, str) or not is_code(code):
        problem = "code is missing" if code is None else f"code is {_excerpt(code)}"
        raise InvalidRequestError(f"{problem}; write a capital letter and 1 to 4 capitals or digits")
    name = _line_of(values, "name", code, checks.LINE)
    which = "ticketsPath" if values.get("ticketsPath") or not values.get("path") else "path"
    tickets = _line_of(values, which, TICKETS, _MAX_PATH)
    try:
        place = SharedFolder(*below_root(folder, tickets.replace("\\", "/")))
    except (OSError, ValueError) as error:
        problem = f"{which} is {_excerpt(tickets)}: {getattr(error, 'strerror', None) or error}"
        raise InvalidRequestError(f"{problem}; write a path inside the project") from None
    texts = {name: values.get(name) for name in ("id", "description", "repository")}
    start = values.get("startNumber", 1)
    number = start if type(start) is int and 0 < start <= MAX_NUMBER else 1
    more: dict[str, Any] = {name: text for name, text in texts.items() if isinstance(text, str) and text}
    info = ProjectInfo(code, name, folder, ticketsPath=place.below or ".", startNumber=number, **more)
    return Project(place, info)


def _line_of(values: Mapping[str, Any], name: str, default: str, max_length: int) -> str:
    value = values.get(name) or default
    if not isinstance(value, str):
        raise InvalidRequestError(f"{name} is {_excerpt(value)}; write a text in quotes")
    return checks.line(value, name, max_length)


def _excerpt(value: object) -> str:
    return ascii(value)[:64]


class Projects:
    """The projects that a caller may see; each call checks the folders.

    :param cwd: the caller's working directory, which may lie inside a project; ``None`` if it does not count.
    :param roots: folders that are or contain projects; a root with ``cwd`` also ends the search upwards.
    """

    def __init__(self, cwd: Path | None, roots: Sequence[Path]) -> None:
        self._cwd = None if cwd is None else str(cwd.absolute())
        self._roots = tuple(dict.fromkeys(str(root.absolute()) for root in roots))
        self._kept: dict[str, tuple[Fingerprint, Project | str | None]] = {}

    def all(self) -> tuple[Project, ...]:
        """Return all projects, that of the working directory first; the first project of a code counts."""
        by_code: dict[str, Project] = {}
        for project in self._stream():
            by_code.setdefault(project.code, project)
        return tuple(by_code.values())

    def find(self, code: str | None, key: ChangeKey | None = None) -> Project:
        """Return the project of a call.

        It is the named project, else that of the key, else that of the working directory, else the only one.

        :raises ProjectNotFoundError: no project or several projects match.
        """
        wanted = parse_code(code) if code is not None else key.code if key is not None else None
        if wanted is None:
            return self._only()
        project = next((project for project in self._stream() if project.code == wanted), None)
        if project is None:
            known = checks.name_list([project.code for project in self.all()])
            more = self.problems()[:_MAX_PROBLEMS] or (() if known else (_FIRST,))
            hint = "; ".join((f"available projects: {known or 'none'}", *more))
            raise ProjectNotFoundError(f"Project '{wanted}' not found", hint=hint)
        return project

    def problems(self) -> tuple[str, ...]:
        """Return the problems of configurations that cannot be used."""
        kept = list(self._kept.values())  # at once: other threads add to it
        return tuple(problem for _, problem in kept if isinstance(problem, str))

    def _only(self) -> Project:
        here = self._above(strict=True)
        known = self.all() if here is None else (here,)
        if len(known) == 1:
            return known[0]
        if not known:
            problems = "; ".join(self.problems()[:_MAX_PROBLEMS])
            raise ProjectNotFoundError("no project has change requests", hint=problems or _FIRST)
        raise ProjectNotFoundError(
            "several projects have change requests",
            near=[project.code for project in known[: checks.LISTED]],
            hint=f"set project to one of {checks.name_list([project.code for project in known])}",
        )

    def _stream(self) -> Iterator[Project]:
        """Yield the projects, the cheapest to find first."""
        if (here := self._above()) is not None:
            yield here
        # The working directory is searched like a root.
        roots = dict.fromkeys(filter(None, (*self._roots, self._cwd)))
        own = {root: self._project_at(root) for root in roots}
        yield from filter(None, own.values())
        for root, project in own.items():
            if project is None:
                yield from filter(None, map(self._project_at, _visible_folders(root)))

    def _above(self, *, strict: bool = False) -> Project | None:
        """Return the project with the working directory.

        :param strict: fail at a configuration that cannot be used, instead of searching further up.
        :raises ProjectNotFoundError: the search failed in this way.
        """
        if self._cwd is None:
            return None
        here = Path(os.path.realpath(self._cwd))
        roots = set(map(os.path.realpath, self._roots))
        for folder in map(str, (here, *here.parents)):
            project = self._project_at(folder, strict=strict)
            if project is not None or folder in roots:
                return project
        return None

    def _project_at(self, folder: str, *, strict: bool = False) -> Project | None:
        """Return the project of a folder, from memory while its configuration is unchanged."""
        try:
            status = os.stat(os.path.join(folder, CONFIG))  # noqa: PTH116
        except (OSError, ValueError):
            self._kept.pop(folder, None)
            return None
        state = Fingerprint.of(folder, status)
        entry = self._kept.get(folder)
        if entry is None or entry[0] != state:
            entry = self._kept[folder] = (state, read_config(folder))
        project = entry[1]
        if strict and isinstance(project, str):
            raise ProjectNotFoundError("the project of the working directory cannot be used", hint=project)
        return None if isinstance(project, str) else project


def _visible_folders(root: str) -> list[str]:
    """Return the folders in a root, sorted, without hidden folders and ``node_modules``."""
    with suppress(OSError), os.scandir(root) as entries:
        named = (entry for entry in entries if entry.name[0] != "." and entry.name != "node_modules")
        folders = (entry.path for entry in named if entry.is_dir(follow_symlinks=False))
        return sorted(folders)[:MAX_CHILDREN]
    return []


def next_number(project: Project, folder: Folder, listing: FolderListing) -> int:
    """Return the number of a new change request.

    :param folder: open folder of its change requests.
    :param listing: its change requests.
    :raises ClosedError: no number is left.
    """
    known = {(project.info.startNumber or 1) - 1: "startNumber", _last_number(project): LAST_KEY_FILE}
    known |= {ticket.number: printable(ticket.name) for ticket in listing.tickets}
    for name in folder.names():
        code, _, digits = key_in(name).upper().partition("-")
        if code == project.code and len(digits) <= len(str(MAX_NUMBER)):
            known[int(digits)] = printable(name)
    highest = max(known)
    if highest >= MAX_NUMBER:
        problem = f"{project.code} has no number left: the highest is {highest} (of {known[highest]})"
        hint = "if that number is a mistake, change the name and the code of the file"
        raise ClosedError(problem, hint=hint)
    return highest + 1


def keep_number(project: Project, number: int) -> None:
    """Store a number as used, unless the stored number is higher.

    If the project's folder cannot be written, or another program owns the file, nothing is stored.
    """
    with suppress(OSError), Folder.opened(project.info.path) as folder:
        absent = folder.stat(LAST_KEY_FILE) is None
        stored = None if absent else _LINE.fullmatch(folder.read(LAST_KEY_FILE, _MAX_LINE)[0])
        if absent or (stored and (stored[1] != project.code.encode() or int(stored[2]) < number)):
            folder.replace(LAST_KEY_FILE, f"{ChangeKey(project.code, number).of(project.code)}\n".encode())


def _last_number(project: Project) -> int:
    """Return the stored number; 0 without one."""
    with suppress(OSError), Folder.opened(project.info.path) as folder:
        stored = _LINE.fullmatch(folder.read(LAST_KEY_FILE, _MAX_LINE)[0])
        # A copy of another project's folder has that project's key.
        if stored and stored[1] == project.code.encode():
            return int(stored[2])
    return 0
