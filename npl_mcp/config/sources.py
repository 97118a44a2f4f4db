"""What is said about settings: a flag beats a variable, a variable the project's ``npl.toml``, and that the
user's.

A project's file comes with a clone: what could reach outside the project is refused. Nobody sees a warning on
a server's standard error, so a line that cannot be used stops the start.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from platformdirs import user_config_path

from npl_index.errors import InvalidRequestError
from npl_index.library.files import ABSENT, FileTooLargeError, Folder, NotRegularError
from npl_index.library.references import near_words
from npl_mcp.config.kinds import Setting
from npl_mcp.config.toml import read_toml

# ruff: noqa: PTH111, PTH117, PTH118 - real paths of links that lead nowhere or in a circle

FILE = "npl.toml"
MAX_FILE_BYTES = 64 * 1024
SWITCH = "NPL_PROJECT_CONFIG"
"""Variable that leaves a project's file out."""
FORMER = frozenset({"worklog-files"})
"""Names of earlier versions; files and command lines that have them can still be read."""


class Given(NamedTuple):
    """The value of a setting where it was given.

    :param texts: the value; one text, or several where the kind has a separator.
    :param source: flag, variable, or file with line.
    :param key: key in that file; empty for flags and variables.
    :param cloned: a project's file gives it, so its author may be a stranger.
    """

    texts: list[str]
    source: str
    key: str = ""
    cloned: bool = False

    @property
    def label(self) -> str:
        """What messages call the setting."""
        return f"{self.source}: {self.key}" if self.key else self.source


def given_values(
    settings: Mapping[str, Setting], env: Mapping[str, str] | None, flags: Mapping[str, object]
) -> dict[str, Given]:
    """Return what is said about each setting, by name.

    :param env: the variables, without any file; by default the process's, and the files. An empty one counts
        as unset.
    :param flags: values of the flags by name, with ``_`` for ``-``; ``None`` for a flag that is not given.
    :raises InvalidRequestError: a file cannot be used; names it, the line, and what to write.
    """
    found = _of_files(settings) if env is None else {}
    variables = os.environ if env is None else env
    for name, setting in settings.items():
        if text := variables.get(setting.variable):
            found[name] = Given(setting.kind.split(text), setting.variable)
        value = flags.get(name.replace("-", "_"))
        if value is not None:
            parts = value if isinstance(value, (list, tuple)) else [int(value) if value is True else value]
            found[name] = Given([str(part) for part in parts], f"--{name}")
    return found


def _of_files(settings: Mapping[str, Setting]) -> dict[str, Given]:
    user, project = user_config_path("npl-mcp", appauthor=False) / FILE, _project_file()
    found = _File(user, settings).read() if os.path.lexists(user) else {}
    if project is not None and os.path.realpath(project) != os.path.realpath(user):
        found |= _File(project, settings, user).read()
    return found


def _project_file() -> Path | None:
    """Return the project's file: of the working directory, or of the nearest folder above it that has one.

    Above the working directory only folders of the same repository count: anybody who may write to a shared
    folder could otherwise give settings of all projects in it.
    """
    said = os.environ.get(SWITCH, "").lower() or "on"
    if said not in ("on", "off"):
        raise InvalidRequestError(f"{SWITCH}={said!r} is not known", hint="use on or off")
    try:
        here = Path.cwd()
    except OSError:  # it was removed
        return None
    folders = [here, *here.parents]
    top = next((at for at, folder in enumerate(folders) if os.path.lexists(folder / ".git")), 0)
    files = (folder / FILE for folder in folders[: top + 1] if said == "on")
    return next((file for file in files if os.path.lexists(file)), None)


class _File:
    """A configuration file.

    :param path: of the file.
    :param settings: that it may give.
    :param user: path of the user's file, if this is a project's.
    """

    def __init__(self, path: Path, settings: Mapping[str, Setting], user: Path | None = None) -> None:
        self._path, self._settings, self._user = path, settings, user

    def read(self) -> dict[str, Given]:
        """Return what it says."""
        text, found = self._text(), {}
        try:
            values = read_toml(text)
        except ValueError as error:
            hint = 'write e.g. format = "markdown"'
            raise InvalidRequestError(f"{self._path} is not TOML: {error}", hint=hint) from None
        for name, value in values.items():
            if name not in FORMER:
                place = f"{self._path}{_line(text, name)}"
                texts = self._value(f"{place}: {name}", self._setting(place, name), value)
                found[name] = Given(texts, place, name, cloned=self._user is not None)
        return found

    def _text(self) -> str:
        try:
            with Folder.opened(self._path.parent) as folder:
                return folder.read(FILE, MAX_FILE_BYTES)[0].decode("utf-8-sig")
        except UnicodeDecodeError:
            problem, hint = "is not UTF-8", "save it as UTF-8"
        except FileTooLargeError:
            problem, hint = f"has more than {MAX_FILE_BYTES:,} bytes", "keep only settings in it"
        except NotRegularError:
            problem, hint = "is not a file", "rename or remove it"
        except OSError as error:
            link = error.errno in ABSENT
            problem = "is a link" if link else f"cannot be read: {error.strerror}"
            hint = "put the file itself there" if link else "let its owner allow it, or remove it"
        raise InvalidRequestError(f"{self._path} {problem}", hint=hint)

    def _setting(self, place: str, name: str) -> Setting:
        """Return the setting of a key."""
        allowed = [key for key, one in self._settings.items() if one.project or self._user is None]
        if name not in self._settings:
            near = near_words(name.replace("_", "-"), self._settings, 1)
            hint = f"did you mean {near[0]}?" if near else f"use {', '.join(allowed)}"
            raise InvalidRequestError(f"{place}: there is no setting {name!r}", hint=hint)
        if name not in allowed:
            hint = f"remove the line, or put it into {self._user}; {SWITCH}=off ignores the project's file"
            raise InvalidRequestError(f"{place}: {name} is not a project's to set", hint=hint)
        return self._settings[name]

    def _value(self, label: str, setting: Setting, value: object) -> list[str]:
        """Return a value as texts."""
        kind, (form, example) = setting.kind, setting.kind.form
        parts: list[Any] = value if isinstance(value, list) and kind.separator else [value]
        if any(type(one) not in kind.types for one in parts):  # True is an instance of int
            raise InvalidRequestError(f"{label} is not {form}", hint=f"write {example}")
        texts = [str(one) for one in parts]
        if any(not one.isprintable() or not one.strip() for one in texts):
            problem = f"{label} has an empty text or one with control characters"
            raise InvalidRequestError(problem, hint=f"write {example}")
        if kind.is_path:
            return [self._folder(label, one) for one in texts]
        return [part for text in texts for part in kind.split(text)]

    def _folder(self, label: str, text: str) -> str:
        """Return the real path of a folder; a project's must lie in it, and begins there."""
        if self._user is None:
            code, _, folder = text.partition("=")  # of change requests
            if not os.path.isabs(os.path.expanduser(folder if code.isalnum() else text)):
                hint = "write an absolute path, or one from ~"
                raise InvalidRequestError(f"{label} has the relative path {text!r}", hint=hint)
            return text
        own = os.path.realpath(self._path.parent)
        found = os.path.realpath(os.path.join(own, text))
        if text.startswith("~") or not Path(found).is_relative_to(own):
            hint = "name a folder of the project, e.g. docs; others are given by --root or in the user's file"
            raise InvalidRequestError(f"{label} {text!r} leads out of the project", hint=hint)
        return found


def _line(text: str, name: str) -> str:
    """Return the number of the line that gives a key, as part of a message; the parser does not tell it."""
    for number, line in enumerate(text.split("\n"), 1):
        start = line.strip().lstrip("[").split("=")[0].split("]")[0].split(".")[0]
        if start.strip().strip("\"'") == name:
            return f", line {number}"
    return ""
