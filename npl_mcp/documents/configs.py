"""Configurations of projects, ``.mdt-config.toml``; see :mod:`npl_mcp.documents.projects` for the form."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npl_index.errors import NPLError, OutsideRootError
from npl_index.library.files import below_root, read_below
from npl_mcp.config.toml import read_toml
from npl_mcp.documents.answers import ProjectInfo
from npl_mcp.documents.folders import SharedFolder, printable
from npl_mcp.documents.format import MAX_NUMBER, is_code
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.errors import StorageError

CONFIG = ".mdt-config.toml"
TICKETS = "docs/CRs"

_MAX_CONFIG_BYTES = 64 * 1024
_MAX_PATH = 1_000
_PARSER_POSITION = re.compile(r"[(,] ?at line (\d+), column \d+\)")


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


class _ProblemError(Exception):
    """A configuration that cannot be used.

    :param problem: reason, for messages.
    :param where: name of the wrong value, or number of the line.
    """

    def __init__(self, problem: str, where: str | int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.where = where


def locate(root: str, path: str) -> SharedFolder:
    """Return a project's folder of change requests; it need not exist.

    :param root: folder of the project.
    :param path: path below the project.
    :raises OutsideRootError: a link leads out of the project.
    :raises StorageError: no folder can have the path.
    """
    try:
        return SharedFolder(*below_root(root, path))
    except (OSError, ValueError) as error:
        if not isinstance(error, OSError) or error.errno != errno.ELOOP:
            reason = getattr(error, "strerror", None) or str(error)
            raise StorageError(f"{path[:64]!r} cannot be used: {reason.lower()}") from None
        problem = f"{path!r} leads out of the project"
        raise OutsideRootError(problem, hint="keep change requests inside the project") from None


def read_config(folder: str) -> Project | str | None:
    """Read the project of a folder.

    :param folder: path of a folder with a file :data:`CONFIG`.
    :returns: ``None`` if the project is switched off; the reason, with file and line, if the configuration
        cannot be used.
    """
    text = ""
    try:
        text = _config_text(folder)
        return _project(folder, _project_table(text))
    except _ProblemError as error:
        line = error.where if isinstance(error.where, int) else _line_number(text, error.where)
        place = f"{printable(Path(folder).name)}/{CONFIG}" + (f", line {line}" if line else "")
        return f"{place}: {error.problem}"


def _config_text(folder: str) -> str:
    """Return the text of a configuration without a byte order mark, which some editors write."""
    try:
        data = read_below(*below_root(folder, CONFIG), _MAX_CONFIG_BYTES)[0]
    except OSError as error:
        raise _ProblemError(f"cannot be read: {(error.strerror or type(error).__name__).lower()}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _ProblemError("not UTF-8; save it as UTF-8", line) from None


def _project_table(text: str) -> Mapping[str, Any]:
    try:
        read = read_toml(text)
    except ValueError as error:
        place = _PARSER_POSITION.search(str(error))
        reason = _PARSER_POSITION.sub("", str(error)).rstrip(" (")[:200]
        last = text.count("\n") + 1 if "at end of document" in reason else None
        raise _ProblemError(f"not TOML: {reason}", int(place[1]) if place else last) from None
    project = read.get("project")
    if not isinstance(project, dict):
        raise _ProblemError("the table [project] is missing")
    return project


def _project(folder: str, values: Mapping[str, Any]) -> Project | None:
    """Return the project of a configuration; ``None`` if it is switched off."""
    if not values.get("active", True):
        return None
    code = values.get("code")
    if not isinstance(code, str) or not is_code(code):
        problem = "code is missing" if code is None else f"code is {_excerpt(code)}"
        raise _ProblemError(f"{problem}; write a capital letter and 1 to 4 capitals or digits", "code")
    name = _line_of(values, "name", code, checks.LINE)
    which = "ticketsPath" if values.get("ticketsPath") or not values.get("path") else "path"
    tickets = _line_of(values, which, TICKETS, _MAX_PATH)
    parts = tickets.replace("\\", "/").split("/")
    if Path(tickets).is_absolute() or ".." in parts:
        raise _ProblemError(f"{which} is {_excerpt(tickets)}; write a path inside the project", which)
    try:
        place = locate(folder, "/".join(part for part in parts if part not in ("", os.curdir)))
    except NPLError as error:
        raise _ProblemError(f"{which}: {error.message}", which) from None
    texts = {name: values.get(name) for name in ("id", "description", "repository")}
    start = values.get("startNumber", 1)
    number = start if type(start) is int and 0 < start <= MAX_NUMBER else 1
    more: dict[str, Any] = {name: text for name, text in texts.items() if isinstance(text, str) and text}
    info = ProjectInfo(code, name, folder, ticketsPath=place.below or ".", startNumber=number, **more)
    return Project(place, info)


def _line_of(values: Mapping[str, Any], name: str, default: str, max_length: int) -> str:
    value = values.get(name) or default
    if not isinstance(value, str):
        raise _ProblemError(f"{name} is {_excerpt(value)}; write a text in quotes", name)
    try:
        return checks.line(value, name, max_length)
    except NPLError as error:
        raise _ProblemError(error.message, name) from None


def _excerpt(value: object) -> str:
    return ascii(value)[:64]


_SETTING = re.compile(r"""^[ \t]*["']?(\w+)["']?[ \t]*=""", re.MULTILINE)
_PROJECT = re.compile(r"^[ \t]*\[[ \t]*project[ \t]*\]", re.MULTILINE)


def _line_number(text: str, name: str | None) -> int | None:
    """Return the number of the line that sets a value; without one, of the line ``[project]``."""
    if name is None:
        return None
    found = next((line for line in _SETTING.finditer(text) if line[1] == name), None) or _PROJECT.search(text)
    return None if found is None else text.count("\n", 0, found.start()) + 1
