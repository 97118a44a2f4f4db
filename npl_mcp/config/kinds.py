"""Kinds of settings: the valid texts of variables, flags and ``npl.toml``, and their conversion to values."""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from npl_index.choices import Weights
from npl_index.errors import InvalidRequestError
from npl_index.library.roots import Limits
from npl_mcp.config.domains import NAMES, USE_SOME


def path(text: str) -> Path:
    """Read a path; the file need not exist.

    :raises ArgumentTypeError: no file can have this path, or it is empty: that would mean the working
        directory.
    """
    if not text:
        raise argparse.ArgumentTypeError("it is empty; write a path")
    try:
        os.lstat(text)
    except ValueError:
        raise argparse.ArgumentTypeError("it contains a NUL character; write a path") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise argparse.ArgumentTypeError(f"{text[:32]!r}… is too long for a path") from None
    return Path(text)


def non_empty(text: str) -> str:
    """Read a text that is not empty; an empty one often comes from an unset variable of a script.

    :raises ArgumentTypeError: the text is empty.
    """
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty; write a value")
    return text


def words(text: str) -> tuple[str, ...]:
    """Read words separated by commas.

    :raises ArgumentTypeError: the text has no word.
    """
    names = tuple(word.strip() for word in text.split(",") if word.strip())
    if not names:
        raise argparse.ArgumentTypeError("it has no name; write names separated by commas")
    return names


@dataclass(frozen=True, slots=True)
class ValueKind:
    """The kind of a setting.

    :param read: function from the text to the value, or from several texts if there is a separator; raises
        :class:`ValueError` for invalid texts.
    :param pattern: regular expression of a valid text.
    :param problem: predicate of the message for an invalid text; empty if every text is valid.
    :param hint: hint with a valid text.
    :param separator: separator of the texts in a variable; empty for kinds with one text.
    :param is_path: whether each text is a path.
    :param option: arguments of :meth:`argparse.ArgumentParser.add_argument`.
    """

    read: Callable[[Any], Any]
    pattern: str = "(?s:.*)"
    problem: str = ""
    hint: str = ""
    separator: str = ""
    is_path: bool = False
    option: Mapping[str, Any] = field(default_factory=dict)

    def split(self, text: str) -> list[str]:
        """Return the texts in a variable."""
        if not self.separator:
            return [text]
        return [part.strip() for part in text.split(self.separator) if part.strip()]


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting.

    :param name: key in ``npl.toml``; with ``--`` the flag.
    :param variable: variable of the environment.
    :param kind: kind of its value.
    :param default: default value.
    :param flag: programs that have the flag; empty for a setting without one.
    :param project: whether a project's file may contain it. Such a file comes with a clone: it may change the
        form of answers, or limit the served documents to the project.
    :param secret: whether its value is hidden.
    :param shown: attribute of the settings to show instead, which includes a computed default.
    :param metavar: name of the flag's value; by default that of the kind.
    :param attribute: its attribute in :class:`~npl_mcp.config.settings.Settings`.
    :param meaning: description, one or more sentences.
    """

    name: str
    variable: str
    kind: ValueKind
    default: Any = None
    flag: str = ""
    project: bool = False
    secret: bool = False
    shown: str = ""
    metavar: str = ""
    attribute: str = ""
    meaning: str = ""

    def line(self, texts: Sequence[str]) -> str:
        """Return the setting with its texts in a form to compare: a path is absolute, a secret a digest."""
        return f"--{self.name}={sha256(texts[0].encode()).hexdigest() if self.secret else self.words(texts)}"

    def words(self, texts: Sequence[str]) -> list[str]:
        """Return the flag with its texts as words of a command line that mean the same in any folder."""
        option = self.kind.option
        if self.kind.is_path:
            texts = [os.path.abspath(os.path.expanduser(text)) for text in texts]  # noqa: PTH100, PTH111
        if option.get("action") != "append":
            texts = [",".join(texts)]
        return [f"--{self.name}" + f"={text}" * (text != option.get("const")) for text in texts]

    def read(self, texts: Sequence[str], label: str) -> Any:
        """Return the value of texts.

        :param label: name of the setting at its source, for messages.
        :raises InvalidRequestError: the texts are invalid; the hint names a valid value.
        """
        wrong = [text for text in texts if not re.fullmatch(self.kind.pattern, text)]
        try:
            if not wrong:
                return self.kind.read(texts if self.kind.separator else texts[0])
        except ValueError:
            pass
        shown = "" if self.secret else f"={','.join(wrong or texts)[:32]!r}"
        raise InvalidRequestError(f"{label}{shown} {self.kind.problem}", hint=self.kind.hint)


def choice(*names: str) -> ValueKind:
    """Return the kind of a setting whose value is one of some names; case does not count."""
    known = {name.lower(): name for name in names}
    hint = f"use one of {', '.join(names)}"
    option = {"choices": names}
    return ValueKind(lambda text: known[text.lower()], _any(names), "is not known", hint, option=option)


def _any(names: Iterable[str]) -> str:
    return f"(?ai:{'|'.join(names)})"


def _weights(texts: Sequence[str]) -> Weights:
    name, content, topic = map(float, texts)
    if not 0 < name + content + topic < float("inf") or min(name, content, topic) < 0:
        raise ValueError(texts)
    return Weights(name, content, topic)


def _folder(text: str) -> Path:
    return Path(os.path.expanduser(text))  # noqa: PTH111 - Path.expanduser raises for an unknown user


def _is_on(text: str) -> bool:
    return text.lower() in _ON


def _places(texts: Sequence[str]) -> bool | tuple[str, ...]:
    if any(map(_is_on, texts)):
        return True
    return tuple(os.path.expanduser(text) for text in texts if text.lower() not in _OFF) or False  # noqa: PTH111


_ON, _OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_PORT = "[0-5]?[0-9]{1,4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
_DECIMAL = "[0-9]{1,6}([.][0-9]{1,3})?"
_WEB = r"https?://[^\s/?#]+(/[^\s?#]*)?"
_HOST = r"([\w.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?"
_ORIGIN = r"[A-Za-z][\w+.-]*://[^\s/?#]+"  # RFC 6454: scheme, host and an optional port; no path
_RANDOM = "use 16 or more printable ASCII characters, e.g. from: openssl rand -hex 24"
_THREE = "three numbers from 0 on, not all 0, e.g. 0.4,0.3,0.3"
_MANY = "write a whole number above 0, of at most 15 digits, e.g. 1000"  # Python refuses thousands of digits
_N, _DIR = {"metavar": "N"}, {"type": path, "metavar": "DIR"}
_CONSTANT, _SECONDS = {"action": "store_const", "const": "1"}, {"metavar": "SECONDS"}

DATABASE_SERVERS = {"postgresql": "PostgreSQL", "postgres": "PostgreSQL"}
"""The database servers, by the schemes of their addresses."""

TEXT = ValueKind(str, option={"type": non_empty, "metavar": "TEXT"})
TOKEN = replace(TEXT, pattern="[ -~]{16,}", problem="cannot be used", hint=_RANDOM)
SWITCH = ValueKind(_is_on, _any((*_ON, *_OFF)), "is neither on nor off", "use 1 or 0", option=_CONSTANT)
PLACES = ValueKind(
    _places,
    problem="is not true, false or folders",
    hint='e.g. true, or ["notes/"]',
    separator=os.pathsep,
    option={"nargs": "?", "const": "1", "action": "append", "type": non_empty, "metavar": "FOLDER"},
)
PATH = ValueKind(_folder, is_path=True, option=_DIR)
PROJECT = replace(PATH, read=lambda text: _folder(text).absolute())
_DIRS = {**_DIR, "action": "append"}
PATHS = replace(PATH, read=lambda texts: tuple(map(_folder, texts)), separator=os.pathsep, option=_DIRS)
WORDS = ValueKind(tuple, separator=",", option={"type": words, "metavar": "NAMES"})
DOMAINS = replace(WORDS, pattern="|".join(NAMES), problem="is not known", hint=USE_SOME)
LIST = replace(WORDS, option={"type": non_empty, "action": "append", "metavar": "NAME"})
HOSTS = replace(LIST, pattern=_HOST, problem="is not a host", hint="e.g. tools.example:8765")
ORIGINS = replace(LIST, pattern=_ORIGIN, problem="is not an origin", hint="e.g. https://tools.example")
WEIGHTS = ValueKind(_weights, ".*", "is invalid", _THREE, ",")
COUNT = ValueKind(int, "0*[1-9][0-9]{,14}", "is invalid", _MANY, option=_N)
LIMITS = replace(COUNT, read=lambda text: Limits(max_bytes=int(text)))
BUDGET = ValueKind(int, "[0-9]{1,9}", "is not a number of tokens", "e.g. 700, or 0 for no limit", option=_N)
PORT = ValueKind(int, _PORT, "is not a port", "use 0 to 65535, e.g. 8765", option=_N)
SECONDS = ValueKind(float, _DECIMAL, "is not a number of seconds", "e.g. 5 or 0.5", option=_SECONDS)
WEB_ADDRESS = ValueKind(
    lambda text: text.rstrip("/"), _WEB, "is not a web address", "e.g. https://npl.example"
)
_WRONG_DATABASE = f"is not an address of {' or '.join(dict.fromkeys(DATABASE_SERVERS.values()))}"
_EXAMPLE = "e.g. postgresql://user@host/database"
DATABASE = ValueKind(str, f"({'|'.join(DATABASE_SERVERS)})://.*", _WRONG_DATABASE, _EXAMPLE)

# Settings and flags of earlier versions: a warning for one minor version, never a refusal to start.
REMOVED_SETTINGS: Mapping[str, str] = {
    "worklog-files": "worklogs are in the database; npl-worklog read --json prints their entries",
}
"""The replacement of each removed setting, a sentence without a full stop, by its key in ``npl.toml``.

The key is also its flag of the servers and, after ``NPL_``, its variable.
"""


@cache
def warn(label: str, advice: str) -> None:
    """Write a warning to standard error, once in a process.

    :param label: the setting at its source, e.g. ``--worklog-files``.
    """
    sys.stderr.write(f"npl: {label} has no effect: {advice}\n")
