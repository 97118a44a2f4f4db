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
from npl_mcp.config.kinds import REMOVED_SETTINGS, Setting, ValueKind, warn
from npl_mcp.config.toml import read_toml
from npl_mcp.config.user_folders import user_folder

# ruff: noqa: PTH111, PTH117, PTH118 - real paths of broken and circular links

FILE = "npl.toml"
MAX_FILE_BYTES = 64 * 1024
PROJECT_SWITCH = "NPL_PROJECT_CONFIG"
"""Variable that can exclude the project's file."""

Declared = Mapping[str, Setting]
"""All settings, by name."""


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


def given_values(settings: Declared, flags: Mapping[str, object], origin: Origin) -> dict[str, Given]:
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
            parts = value if isinstance(value, (list, tuple)) else [value]
            given[name] = Given([str(part) for part in parts], f"--{name}")
    return given


def _of_files(settings: Declared, origin: Origin) -> dict[str, Given]:
    user, project = Path(user_folder("config"), FILE), _project_file(origin)
    given = _read_file(user, settings) if os.path.lexists(user) else {}
    if project is not None and os.path.realpath(project) != os.path.realpath(user):
        given |= _read_file(project, settings, user)
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


def _read_file(path: Path, settings: Declared, user: Path | None = None) -> dict[str, Given]:
    """Return the values in a configuration file.

    :param user: path of the user's file, if this file is a project's.
    """
    given = {}
    try:
        with Folder.opened(path.parent) as folder:
            values = read_toml(folder.read(FILE, MAX_FILE_BYTES)[0].decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        hint = "write a plain file in UTF-8, not a link"
        raise InvalidRequestError(f"{path} cannot be read: {reason}", hint=hint) from None
    except ValueError as error:
        hint = 'write e.g. format = "markdown"'
        raise InvalidRequestError(f"{path} is not TOML: {error}", hint=hint) from None
    for name, value in values.items():
        label = f"{path}: {name}"
        if name in REMOVED_SETTINGS:
            warn(label, REMOVED_SETTINGS[name])
            continue
        _check_key(path, name, settings, user)
        texts = _texts(label, settings[name].kind, value)
        if settings[name].kind.is_path:
            texts = [_folder(label, text, None if user is None else path.parent) for text in texts]
        given[name] = Given(texts, str(path), name, cloned=user is not None)
    return given


def _check_key(path: Path, name: str, settings: Declared, user: Path | None) -> None:
    """Check that a file may have a key; the error names the next one, or the place for it."""
    allowed = [key for key, setting in settings.items() if setting.project or user is None]
    if name not in settings:
        near = near_names(name.replace("_", "-"), settings, 1, parts=True)
        hint = f"did you mean {near[0]}?" if near else f"use {', '.join(allowed)}"
        raise InvalidRequestError(f"{path}: there is no setting {name!r}", hint=hint)
    if name not in allowed:
        hint = f"remove the line, or put it into {user}; {PROJECT_SWITCH}=off ignores it"
        raise InvalidRequestError(f"{path}: a project may not set {name}", hint=hint)


def _texts(label: str, kind: ValueKind, value: object) -> list[str]:
    """Return the texts of a value."""
    parts: list[Any] = value if isinstance(value, list) and kind.separator else [value]
    texts = [str(part) for part in parts]
    # A number is a valid text of some kinds, but never a free one.
    if not all(isinstance(part, (str, int, float) if kind.problem else str) for part in parts):
        problem, hint = kind.problem or "is not a text", "write it in quotes"
    elif not all(text.isprintable() and text.strip() for text in texts):
        problem, hint = "has an empty text or one with control characters", "write a text"
    elif kind.is_path:  # a folder's name may have the separator
        return texts
    else:
        return [part for text in texts for part in kind.split(text)]
    raise InvalidRequestError(f"{label} {problem}", hint=kind.hint or hint)


def _folder(label: str, text: str, project: Path | None) -> str:
    """Return the path of a folder; in a project's file it is relative to the project and lies in it."""
    if project is None:
        if not os.path.isabs(os.path.expanduser(text)):
            hint = "write an absolute path, or one from ~"
            raise InvalidRequestError(f"{label} has the relative path {text!r}", hint=hint)
        return text
    own = os.path.realpath(project)
    real = os.path.realpath(os.path.join(own, text))
    if text.startswith("~") or not Path(real).is_relative_to(own):
        hint = "name a folder of the project, e.g. docs; set others by --root or in the user's file"
        raise InvalidRequestError(f"{label} {text!r} leads out of the project", hint=hint)
    return real
