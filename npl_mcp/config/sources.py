"""Sources of settings: a flag overrides a variable, that overrides the project's ``npl.toml``, and that
overrides the user's.

A project's file comes with a clone, so settings that reach outside the project are refused. An invalid line
stops the start of a server, because users do not see warnings on its standard error.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from npl_index.errors import InvalidRequestError
from npl_index.library.files import Folder
from npl_index.library.references import near_names
from npl_mcp.config.kinds import Setting
from npl_mcp.config.removed import REMOVED_SETTINGS, warn
from npl_mcp.config.toml import read_toml
from npl_mcp.config.user_folders import user_folder

# ruff: noqa: PTH111, PTH117, PTH118 - real paths of broken and circular links

FILE = "npl.toml"
MAX_FILE_BYTES = 64 * 1024
PROJECT_SWITCH = "NPL_PROJECT_CONFIG"
"""Variable that can exclude the project's file."""


class Origin(NamedTuple):
    """The process that settings come from: this one, or the pipe of a session.

    :param environment: its variables.
    :param cwd: its working directory; ``None`` for that of this process.
    """

    environment: Mapping[str, str]
    cwd: Path | None = None

    def absolute(self, text: str) -> str:
        """Return a path that means the same in this process."""
        return text if self.cwd is None else os.path.join(self.cwd, os.path.expanduser(text))


class Given(NamedTuple):
    """The value of a setting at its source.

    :param texts: one text, or several if the kind has a separator.
    :param source: flag, variable or file.
    :param key: key in that file; empty for flags and variables.
    :param cloned: whether the source is a project's file, whose author may be a stranger.
    """

    texts: list[str]
    source: str
    key: str = ""
    cloned: bool = False

    @property
    def label(self) -> str:
        """The name of the setting in messages."""
        return f"{self.source}: {self.key}" if self.key else self.source


def given_values(
    settings: Mapping[str, Setting], flags: Mapping[str, object], origin: Origin
) -> dict[str, Given]:
    """Return the values of settings that have a source, by name.

    An empty variable counts as unset.

    :param flags: values of the flags by name, with ``_`` for ``-``; ``None`` for an absent flag.
    :param origin: the process with the variables and the working directory.
    :raises InvalidRequestError: a file is invalid; the message names file, key and a valid value.
    """
    given = _of_files(settings, origin)
    for name, advice in REMOVED_SETTINGS.items():
        if origin.environment.get(variable := f"NPL_{name.upper().replace('-', '_')}"):
            warn(variable, advice)
    for name, setting in settings.items():
        if text := origin.environment.get(setting.variable):
            given[name] = Given(setting.kind.split(text), setting.variable)
        value = flags.get(name.replace("-", "_"))
        if value is not None:
            parts = value if isinstance(value, (list, tuple)) else [int(value) if value is True else value]
            given[name] = Given([str(part) for part in parts], f"--{name}")
    return given


def _of_files(settings: Mapping[str, Setting], origin: Origin) -> dict[str, Given]:
    user, project = Path(user_folder("config"), FILE), _project_file(origin)
    given = _File(user, settings).read() if os.path.lexists(user) else {}
    if project is not None and os.path.realpath(project) != os.path.realpath(user):
        given |= _File(project, settings, user).read()
    return given


def _project_file(origin: Origin) -> Path | None:
    """Return the project's file in the working directory or the nearest folder above it.

    Above the working directory only folders of the same repository count; otherwise every user with write
    access to a shared folder could change the settings of all projects in it.
    """
    switch = origin.environment.get(PROJECT_SWITCH, "").lower() or "on"
    if switch not in ("on", "off"):
        raise InvalidRequestError(f"{PROJECT_SWITCH}={switch!r} is not known", hint="use on or off")
    try:
        here = origin.cwd or Path.cwd()
    except OSError:  # the folder was removed
        return None
    folders = [here, *here.parents]
    top = next((at for at, folder in enumerate(folders) if os.path.lexists(folder / ".git")), 0)
    files = (folder / FILE for folder in folders[: top + 1] if switch == "on")
    return next((file for file in files if os.path.lexists(file)), None)


class _File:
    """A configuration file.

    :param path: path of the file.
    :param settings: all settings, by name.
    :param user: path of the user's file, if this file is a project's.
    """

    def __init__(self, path: Path, settings: Mapping[str, Setting], user: Path | None = None) -> None:
        self._path, self._settings, self._user = path, settings, user

    def read(self) -> dict[str, Given]:
        """Return the values in the file."""
        given = {}
        try:
            values = read_toml(self._file_text())
        except ValueError as error:
            hint = 'write e.g. format = "markdown"'
            raise InvalidRequestError(f"{self._path} is not TOML: {error}", hint=hint) from None
        for name, value in values.items():
            label = f"{self._path}: {name}"
            if name in REMOVED_SETTINGS:
                warn(label, REMOVED_SETTINGS[name])
            else:
                texts = self._value(label, self._setting(name), value)
                given[name] = Given(texts, str(self._path), name, cloned=self._user is not None)
        return given

    def _file_text(self) -> str:
        try:
            with Folder.opened(self._path.parent) as folder:
                return folder.read(FILE, MAX_FILE_BYTES)[0].decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            problem = f"{self._path} cannot be read: {reason}"
            raise InvalidRequestError(problem, hint="write a plain file in UTF-8, not a link") from None

    def _setting(self, name: str) -> Setting:
        """Return the setting of a key."""
        allowed = [key for key, setting in self._settings.items() if setting.project or self._user is None]
        if name not in self._settings:
            near = near_names(name.replace("_", "-"), self._settings, 1, parts=True)
            hint = f"did you mean {near[0]}?" if near else f"use {', '.join(allowed)}"
            raise InvalidRequestError(f"{self._path}: there is no setting {name!r}", hint=hint)
        if name not in allowed:
            hint = f"remove the line, or put it into {self._user}; {PROJECT_SWITCH}=off ignores it"
            raise InvalidRequestError(f"{self._path}: a project may not set {name}", hint=hint)
        return self._settings[name]

    def _value(self, label: str, setting: Setting, value: object) -> list[str]:
        """Return the texts of a value."""
        kind = setting.kind
        parts: list[Any] = value if isinstance(value, list) and kind.separator else [value]
        # A number is a valid text of some kinds, but never a free one.
        if not all(isinstance(part, (str, int, float) if kind.problem else str) for part in parts):
            problem = f"{label} {kind.problem or 'is not a text'}"
            raise InvalidRequestError(problem, hint=kind.hint or "write it in quotes")
        texts = [str(part) for part in parts]
        if any(not text.isprintable() or not text.strip() for text in texts):
            problem = f"{label} has an empty text or one with control characters"
            raise InvalidRequestError(problem, hint=kind.hint or "write a text")
        if kind.is_path:
            return [self._folder(label, text) for text in texts]
        return [part for text in texts for part in kind.split(text)]

    def _folder(self, label: str, text: str) -> str:
        """Return the path of a folder; in a project's file it is relative to the project and lies in it."""
        if self._user is None:
            if not os.path.isabs(os.path.expanduser(text)):
                hint = "write an absolute path, or one from ~"
                raise InvalidRequestError(f"{label} has the relative path {text!r}", hint=hint)
            return text
        own = os.path.realpath(self._path.parent)
        real = os.path.realpath(os.path.join(own, text))
        if text.startswith("~") or not Path(real).is_relative_to(own):
            hint = "name a folder of the project, e.g. docs; set others by --root or in the user's file"
            raise InvalidRequestError(f"{label} {text!r} leads out of the project", hint=hint)
        return real
