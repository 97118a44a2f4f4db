"""What variables and configuration files say together: a variable beats the project's ``npl.toml``, and that
the user's.

A file says the same as variables do, under the names of :mod:`npl_mcp.config.keys`, so that whoever reads
settings reads variables. A project's file comes with a clone: what could reach outside the project is
refused. Nobody sees a warning on a server's standard error, so a line that cannot be used stops the start.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from npl_index.errors import InvalidRequestError
from npl_mcp.config.keys import FORMER, KEYS, Key

# A file that is not there costs each command a few system calls, and path objects would double the time.
# ruff: noqa: PTH109, PTH111, PTH117, PTH118, PTH120

FILE = "npl.toml"

LARGEST_FILE = 64 * 1024
"""Settings fill a page; reading more would only cost time."""

SWITCH = "NPL_PROJECT_CONFIG"
"""Variable that leaves a project's file out."""

_FORMS = {
    "text": "a text",
    "path": "a text",
    "switch": "true or false",
    "count": "a whole number",
    "seconds": "a number of seconds",
    "numbers": "a list of numbers",
    "words": "a text or a list of texts",
    "paths": "a text or a list of texts",
}


class Variables(dict[str, str]):
    """Variables by name, with the place that each comes from.

    :param values: of the variables.
    :param places: of those that a file says: the file and the line, then the key; of an option its name.
    :param cloned: names of those that a project's file says, whoever wrote it.
    """

    def __init__(
        self,
        values: Mapping[str, str],
        places: Mapping[str, tuple[str, ...]] | None = None,
        cloned: Iterable[str] = (),
    ) -> None:
        super().__init__(values)
        self.places = dict(places or {})
        self.cloned = frozenset(cloned)

    def label(self, name: str) -> str:
        """Return what the user calls a variable: its name, or the key of a file."""
        return ": ".join(self.places[name]) if name in self.places else name


def with_files(env: Mapping[str, str], user_folder: str) -> Variables:
    """Return variables with what the files say where these say nothing.

    :param env: variables; empty ones count as unset.
    :param user_folder: of the user's file.
    :raises InvalidRequestError: a file cannot be used; names it, the line, and what to write.
    """
    user = os.path.join(user_folder, FILE)
    project = _project_file(env)
    result = Variables({})
    if os.path.lexists(user):
        result = _read(user, user_file=None)
    if project is not None and os.path.realpath(project) != os.path.realpath(user):
        said = _read(project, user_file=user)
        result = Variables(result | said, result.places | said.places, said)
    given = {name: value for name, value in env.items() if value}
    places = {name: place for name, place in result.places.items() if name not in given}
    return Variables(result | given, places, result.cloned - given.keys())


def _project_file(env: Mapping[str, str]) -> str | None:
    """Return the project's file: of the working directory, or of the nearest folder above it that has one.

    Above the working directory only folders of the same repository count: whoever may write to a folder that
    many share could else say something about all projects in it.
    """
    said = (env.get(SWITCH) or "on").lower()
    if said not in ("on", "off"):
        raise InvalidRequestError(f"{SWITCH}={said!r} is not known", hint="use on or off")
    try:
        folder = start = os.getcwd()
    except OSError:  # it was removed
        return None
    if said == "off":
        return None
    found = None
    while True:
        if found is None and os.path.lexists(os.path.join(folder, FILE)):
            found = folder
        if os.path.lexists(os.path.join(folder, ".git")):
            break
        above = os.path.dirname(folder)
        if above == folder:
            found = start if found == start else None
            break
        folder = above
    return None if found is None else os.path.join(found, FILE)


def _read(path: str, user_file: str | None) -> Variables:
    """Return what a file says.

    :param user_file: path of the user's file, if this is a project's.
    """
    text = _text(path)
    values, places = {}, {}
    for name, value in _parsed(path, text).items():
        if name in FORMER:
            continue
        place = f"{path}{_line(text, name)}"
        key = KEYS.get(name)
        if key is None:
            _unknown(place, name, project=user_file is not None)
        if user_file is not None and not key.project:
            hint = f"remove the line, or put it into {user_file}; {SWITCH}=off ignores the project's file"
            raise InvalidRequestError(f"{place}: {name} is not a project's to set", hint=hint)
        values[key.variable] = _value(place, name, value, os.path.dirname(path) if user_file else None)
        places[key.variable] = (place, name)
    return Variables(values, places)


def _text(path: str) -> str:
    # Most have no such file, and importing this takes as long as a call.
    from npl_index.library.files import ABSENT, FileTooLargeError, Folder, NotRegularError

    try:
        with Folder.opened(os.path.dirname(path)) as folder:
            data, _ = folder.read(FILE, LARGEST_FILE)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        problem, hint = "is not UTF-8", "save it as UTF-8"
    except FileTooLargeError:
        problem, hint = f"has more than {LARGEST_FILE:,} bytes", "keep only settings in it"
    except NotRegularError:
        problem, hint = "is not a file", "rename or remove it"
    except OSError as error:
        link = error.errno in ABSENT
        problem = "is a link" if link else f"cannot be read: {error.strerror}"
        hint = "put the file itself there" if link else "let its owner allow it, or remove it"
    raise InvalidRequestError(f"{path} {problem}", hint=hint)


def _parsed(path: str, text: str) -> dict[str, Any]:
    # Only a file needs a parser.
    from npl_mcp.config.toml import read_toml

    try:
        return read_toml(text)
    except ValueError as error:
        hint = 'write e.g. format = "markdown"'
        raise InvalidRequestError(f"{path} is not TOML: {error}", hint=hint) from None


def _line(text: str, name: str) -> str:
    """Return the number of the line that gives a key, as part of a message; the parser does not tell it."""
    for number, line in enumerate(text.split("\n"), 1):
        start = line.strip().lstrip("[").split("=")[0].split("]")[0].split(".")[0]
        if start.strip().strip("\"'") == name:
            return f", line {number}"
    return ""


def _unknown(place: str, name: str, *, project: bool) -> NoReturn:
    from npl_index.library.references import near_words

    known = [key for key, row in KEYS.items() if row.project or not project]
    near = near_words(name.replace("_", "-"), KEYS, 1)
    hint = f"did you mean {near[0]}?" if near else f"use {', '.join(known)}"
    raise InvalidRequestError(f"{place}: there is no setting {name!r}", hint=hint)


def _value(place: str, name: str, value: object, project: str | None) -> str:
    """Return a value as its variable would say it.

    :param project: folder of the file, if it is a project's.
    """
    key = KEYS[name]
    texts = _texts(key, value)
    if texts is None:
        raise InvalidRequestError(f"{place}: {name} is not {_FORMS[key.kind]}", hint=f"write {_example(key)}")
    if any(not one.isprintable() or not one.strip() for one in texts):
        raise InvalidRequestError(
            f"{place}: {name} has an empty text or one with control characters", hint=f"write {_example(key)}"
        )
    if key.kind in ("path", "paths"):
        texts = [_path(place, name, one, project) for one in texts]
    return (os.pathsep if key.kind == "paths" else ",").join(texts)


def _texts(key: Key, value: object) -> list[str] | None:
    """Return the parts of a value, or ``None`` if it is of another type."""
    if key.kind == "switch":
        return [str(int(value))] if isinstance(value, bool) else None
    parts = value if isinstance(value, list) and key.kind in ("words", "paths", "numbers") else [value]
    number = {"count": int, "seconds": (int, float), "numbers": (int, float)}.get(key.kind)
    wanted: Any = number or str
    if any(isinstance(one, bool) or not isinstance(one, wanted) for one in parts):
        return None
    return [str(one) for one in parts]


def _example(key: Key) -> str:
    return {"switch": "true", "count": "1000", "seconds": "0.5", "numbers": "[0.4, 0.3, 0.3]"}.get(
        key.kind, '["one", "two"]' if key.kind in ("words", "paths") else '"…"'
    )


def _path(place: str, name: str, text: str, project: str | None) -> str:
    """Return the real path of a folder; a project's must lie in it, and begins there."""
    if project is None:
        found = os.path.expanduser(text)
        code, _, folder = text.partition("=")  # of change requests
        if not os.path.isabs(os.path.expanduser(folder) if code.isalnum() else found):
            hint = "write an absolute path, or one from ~"
            raise InvalidRequestError(f"{place}: {name} has the relative path {text!r}", hint=hint)
    else:
        own = os.path.realpath(project)
        # Neither the variable nor who reads it may see in this path what is not in it.
        found = os.path.realpath(os.path.join(own, text))
        if text.startswith("~") or not (found == own or found.startswith(os.path.join(own, ""))):
            hint = "name a folder of the project, e.g. docs; others are given by --root or in the user's file"
            raise InvalidRequestError(f"{place}: {name} {text!r} leads out of the project", hint=hint)
    if os.pathsep in found and KEYS[name].kind == "paths":
        hint = "rename the folder, or give it by --root"
        raise InvalidRequestError(f"{place}: {name} {found!r} has a {os.pathsep!r}", hint=hint)
    return found
