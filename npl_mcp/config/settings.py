"""Settings of one server or one command.

This module and :mod:`npl_mcp.config.connection` are the only ones that read the environment.

==========================  ======================  =====================================================
variable                    command-line flag       meaning
==========================  ======================  =====================================================
``NPL_ROOTS``               ``--root`` (repeat)     folders whose Markdown is served, separated as ``PATH``
``NPL_WRITE``               ``--write``             list the tool that changes sections of their Markdown
``NPL_SEARCH_CWD``                                  without roots, the working directory is searched; default:
                                                    yes, unless the home folder lies in it
``NPL_CR_PROJECTS``                                 projects with change requests, beside the roots,
                                                    or ``CODE=folder`` of the change requests themselves
``NPL_CACHE_MODE``          ``--cache``             ``disk`` (default): large folders stay indexed across
                                                    starts; ``sqlite``: single files, too; ``memory``: none
``NPL_CACHE_BYTES``                                 size of the memory cache, default 256 MiB
``NPL_INDEX_BYTES``                                 size of what is kept on disk, default 8 GiB
``NPL_MCP_DATA_DIR``        ``--data-dir``          folder of the database, artifacts and the kept cache
``NPL_DATABASE_URL``                                PostgreSQL instead of the database in that folder, e.g.
                                                    ``postgresql://user@host/database``
``NPL_MAX_ARTIFACT_BYTES``                          larger artifacts are refused, default 10 MiB
``NPL_MCP_WEB``             ``--web``               pages for people: ``on`` (default), ``read``, ``off``
``NPL_MCP_WEB_URL``                                 address under which people reach these pages
``NPL_STRUCTURED``          ``--structured``        add structured content and output schemas
``NPL_EXACT_NAMES``         ``--exact-names``       list tools under the names they had before
``NPL_DOMAINS``             ``--domains``           domains of tools to list, separated by commas
``NPL_SMALL_LIST``          ``--small-list``        list two tools and what finds and calls the others
``NPL_VOCABULARY``          ``--vocabulary``        tokens are counted with this one, default ``o200k_base``
``NPL_FORMAT``              ``--format``            ``json`` (default) or ``markdown``: the form of answers
``NPL_TOKEN_BUDGET``        ``--token-budget``      tokens of an answer whose call names none, default 450;
                                                    0 for no limit
``NPL_WEIGHTS``                                     name, content and topic weights, default ``0.4,0.3,0.3``
``NPL_MAX_FILE_BYTES``                              larger files are refused, default 16 MiB
``NPL_TIME_LIMIT``                                  seconds to read and index one file, default 10
``NPL_PATIENCE``            ``--patience``          seconds a call waits for a folder that is being indexed
``NPL_LOG_CALLS``           ``--log-calls``         ``on`` keeps a log of calls, ``contexts`` with what they
                                                    were for; default ``off``
``NPL_PROJECT``             ``--project``           folder whose worklogs are meant, whether it is there or
                                                    not; default: the working directory
``NPL_LOG_LEVEL``           ``--log-level``         ``INFO`` logs each call, ``DEBUG`` keywords and scoring
``NPL_MCP_HOST``            ``--host``              address the HTTP server listens on, default ``127.0.0.1``
``NPL_MCP_PORT``            ``--port``              its port, default 8765; 0 means any that is free
``NPL_MCP_SOCKET``          ``--socket``            Unix socket to listen on instead of a port
``NPL_MCP_TOKEN``           ``--token``             bearer token that callers of a port need
``NPL_MCP_NO_TOKEN``        ``--no-token``          none is needed, even if other people have accounts here
``NPL_MCP_HOSTS``           ``--allow-host``        names callers may use for the server, separated by commas
``NPL_MCP_ORIGINS``         ``--allow-origin``      origins whose web pages may call, separated by commas
``NPL_MCP_MAX_BODY_BYTES``                          larger requests are refused, default: an artifact fits
``NPL_MCP_MAX_CALLS``                               concurrent calls over HTTP, default 64
``NPL_MCP_URL``                                     server the command lines call, e.g. ``http://127.0.0.1:8765``
``NPL_VIA``                 ``--via``               how: ``auto`` (default), ``http``, ``stdio``, ``direct``
``NPL_PROJECT_CONFIG``                              ``off`` leaves the project's ``npl.toml`` out
``NPL_HOME``                                        folder with ``npl.md``, ``npl/``, ``core/``
``NPL_META``, ``NPL_STYLE_GUIDE``, ``NPL_THEME``, ``NPL_PERSONA_DIR``, ``NPL_USER_PERSONA_DIR``,
``NPL_WORKFLOW_DIR``                                search places of single kinds
``TIKTOKEN_CACHE_DIR``, ``DATA_GYM_CACHE_DIR``      where tiktoken keeps its vocabularies
==========================  ======================  =====================================================

A variable that is unset or empty means what a configuration file says, or its default;
:mod:`npl_mcp.config.layers` reads these files.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from npl_index.choices import FORMATS, VOCABULARIES, Weights
from npl_index.errors import InvalidRequestError
from npl_index.library.roots import Limits
from npl_index.tokens.places import vocabulary_folders
from npl_mcp.config.connection import (
    SEARCH_PLACES,
    database_url,
    given_variables,
    project_folder,
    user_data,
)
from npl_mcp.config.layers import Variables

CACHE_MODES = ("disk", "memory", "sqlite")
WEB = ("on", "read", "off")
LOG_CALLS = ("off", "on", "contexts")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
MEMORY_CACHE_BYTES = 256 * 1024 * 1024
INDEX_BYTES = 8 * 1024 * 1024 * 1024
MAX_ARTIFACT_BYTES = 10 * 1024 * 1024
MAX_CALLS = 64
TOKEN_BUDGET = 450
"""Tokens of an answer whose call names no budget."""
HOST = "127.0.0.1"
PORT = 8765

_BESIDE_AN_ARTIFACT = 1024 * 1024

# A variable, what it looks like, and what is said of anything else.
_BUDGET = (
    "NPL_TOKEN_BUDGET",
    r"[0-9]{1,9}",
    "is not a number of tokens",
    f"e.g. {TOKEN_BUDGET}, or 0 for no limit",
)
_PATIENCE = (
    "NPL_PATIENCE",
    r"[0-9]{1,6}(?:[.][0-9]{1,3})?",
    "is not a number of seconds",
    "e.g. 5 or 0.5",
)
_PORT = (
    "NPL_MCP_PORT",
    "[0-5]?[0-9]{1,4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]",
    "is not a port",
    f"use 0 to 65535, e.g. {PORT}",
)
_WEB_URL = (
    "NPL_MCP_WEB_URL",
    r"https?://[^\s/?#]+(?:/[^\s?#]*)?",
    "is no address of pages",
    "e.g. https://npl.example",
)


@dataclass(frozen=True, slots=True)
class Listening:
    """Where the HTTP server listens, and who may call.

    :param host: address or name of the interface.
    :param port: 0 means any that is free; ``None`` means only the socket.
    :param socket: path of a Unix socket.
    :param token: bearer token that callers of the port need; ``None`` if they need none.
    :param no_token: callers of a port of this machine need none, whoever has an account.
    :param hosts: names callers may use for the server besides its own, with or without a port.
    :param origins: origins whose web pages may call.
    :param max_calls: concurrent calls; more are refused.
    """

    host: str = HOST
    port: int | None = PORT
    socket: Path | None = None
    token: str | None = field(default=None, repr=False)
    no_token: bool = False
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    max_calls: int = MAX_CALLS


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a server or a command.

    :param roots: folders given by the user, first wins.
    :param cloned_roots: a project's file gave them, and whoever wrote it may not allow that they are changed.
    :param write: sections of the Markdown in roots that the user gave may be changed.
    :param cwd: the working directory; a root as well, after the given ones.
    :param search_cwd: without given roots it is searched if nothing is named, as far as it holds Markdown.
    :param home: the user's home directory, for ``~/.npl``.
    :param system: the machine's folder of NPL files.
    :param environment: search places that variables name, by variable.
    :param theme: preferred theme of styles.
    :param cr_roots: projects with change requests, or folders that hold some, beside the roots.
    :param cr_folders: folders of change requests of projects without a configuration, by code.
    :param data_dir: folder of the database, the artifacts and the persistent cache; ``None`` means the user's
        data directory.
    :param database_url: address of a database of PostgreSQL, which replaces the one in the data folder.
    :param max_artifact_bytes: larger artifacts are refused.
    :param web: pages for people: ``on``, ``read`` (they change nothing) or ``off``.
    :param web_url: address of the pages, without a final slash; the server that has them sets its own.
    :param cache_mode: ``disk`` keeps large sets of documents in the data folder, ``memory`` nothing,
        ``sqlite`` parsed single files as well.
    :param cache_bytes: size of the memory cache.
    :param index_bytes: size of the sets of documents that are kept in the data folder.
    :param structured: add structured content and output schemas to every tool.
    :param exact_names: list tools under the names they had before; both names are always accepted.
    :param domains: names of the domains whose tools are listed, or of presets; empty means all.
    :param small_list: list three tools for reading, one that finds the others and one that calls them.
    :param vocabulary: name of the token vocabulary.
    :param vocabulary_folders: where others keep its file.
    :param format: of answers whose call asks for none: ``json`` or ``markdown``.
    :param token_budget: tokens of an answer to a context or topics whose call has no budget; 0 for no limit.
    :param weights: of the three parts of a relevance score.
    :param limits: bounds on files.
    :param time_limit: seconds to read and index one file.
    :param patience: seconds that a call waits for a set of documents that is being indexed, before it is
        answered from what is ready; ``None`` for as long as it takes.
    :param log_calls: a log of calls in the database: ``off``, ``on``, or with the ``contexts`` they name.
    :param project: the folder whose worklogs are meant; ``None`` means the working directory.
    :param log_level: of the log on standard error.
    :param listening: of the HTTP server.
    :param max_body_bytes: longer requests are refused; ``None`` means that the largest artifact fits.
    :param warm_up: index the core files and load the vocabulary in the background after the start.
    """

    cwd: Path
    home: Path
    search_cwd: bool = False
    roots: tuple[Path, ...] = ()
    cloned_roots: bool = False
    write: bool = False
    system: Path = Path("/etc/npl")
    environment: Mapping[str, Path] = field(default_factory=dict)
    theme: str = "default"
    cr_roots: tuple[Path, ...] = ()
    cr_folders: Mapping[str, Path] = field(default_factory=dict)
    data_dir: Path | None = None
    database_url: str | None = field(default=None, repr=False)
    max_artifact_bytes: int = MAX_ARTIFACT_BYTES
    web: str = "on"
    web_url: str | None = None
    cache_mode: str = "disk"
    cache_bytes: int = MEMORY_CACHE_BYTES
    index_bytes: int = INDEX_BYTES
    structured: bool = False
    exact_names: bool = False
    domains: tuple[str, ...] = ()
    small_list: bool = False
    vocabulary: str = "o200k_base"
    vocabulary_folders: tuple[Path, ...] = ()
    format: str = "json"
    token_budget: int = TOKEN_BUDGET
    weights: Weights = field(default_factory=Weights)
    limits: Limits = field(default_factory=Limits)
    time_limit: float = 10.0
    patience: float | None = None
    log_calls: str = "off"
    project: Path | None = None
    log_level: str = "WARNING"
    warm_up: bool = True
    listening: Listening = field(default_factory=Listening)
    max_body_bytes: int | None = None

    @property
    def body_limit(self) -> int:
        """Maximum length of a request in bytes: an artifact as base64, and what is sent with it."""
        return self.max_body_bytes or (self.max_artifact_bytes + 2) // 3 * 4 + _BESIDE_AN_ARTIFACT

    @property
    def page_url(self) -> str | None:
        """Address of the pages; ``None`` where there are none."""
        return self.web_url if self.web != "off" else None

    @property
    def data_folder(self) -> Path:
        """The folder of everything stored; it is created when first needed."""
        return self.data_dir or Path(user_data(os.environ))

    @property
    def vocabularies(self) -> tuple[Path, ...]:
        """The folders where the vocabulary may lie; the first is for those that the user puts there."""
        return (self.data_folder / "vocabularies", *self.vocabulary_folders)

    @property
    def worklog_project(self) -> Path:
        """The folder whose worklogs are meant; its real path is their key."""
        return (self.project or self.cwd).resolve()

    @property
    def serves(self) -> str:
        """What calls are about that name no file, as a sentence for who starts a server."""
        if self.roots:
            return f"serves {', '.join(str(root.absolute()) for root in self.roots)}"
        if self.search_cwd:
            return f"serves the working directory, {self.cwd}; --root DIR serves another"
        return "no --root: only the bundled reference is served; start with --root DIR"

    @property
    def unwritable(self) -> str | None:
        """Why no file may be changed, whatever ``write`` says."""
        if self.cloned_roots:
            return "a project's npl.toml gives the roots"
        return None if self.roots else "there is no root"

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None, **given: object) -> Settings:
        """Read the environment and the files; keywords that are not ``None`` override them.

        :param env: see :func:`~npl_mcp.config.connection.given_variables`.
        :raises InvalidRequestError: a variable or a file cannot be used; names it and a valid value.
        """
        variables = given_variables(env)
        values: dict[str, object] = {
            **_search_places(variables),
            "cloned_roots": "NPL_ROOTS" in variables.cloned and given.get("roots") is None,
            "write": _flag(variables, "NPL_WRITE"),
            "data_dir": Path(variables["NPL_MCP_DATA_DIR"]) if "NPL_MCP_DATA_DIR" in variables else None,
            "database_url": database_url(variables),
            "max_artifact_bytes": _number(variables, "NPL_MAX_ARTIFACT_BYTES", MAX_ARTIFACT_BYTES),
            "web": _choice(variables, "NPL_MCP_WEB", "on", WEB),
            "web_url": (_matched(variables, *_WEB_URL) or "").rstrip("/") or None,
            "cache_mode": _choice(variables, "NPL_CACHE_MODE", "disk", CACHE_MODES),
            "cache_bytes": _number(variables, "NPL_CACHE_BYTES", MEMORY_CACHE_BYTES),
            "index_bytes": _number(variables, "NPL_INDEX_BYTES", INDEX_BYTES),
            "structured": _flag(variables, "NPL_STRUCTURED"),
            "exact_names": _flag(variables, "NPL_EXACT_NAMES"),
            "domains": parse_words(variables.get("NPL_DOMAINS", "")),
            "small_list": _flag(variables, "NPL_SMALL_LIST"),
            "vocabulary": _choice(variables, "NPL_VOCABULARY", "o200k_base", VOCABULARIES),
            "vocabulary_folders": vocabulary_folders(variables),
            "format": _choice(variables, "NPL_FORMAT", "json", FORMATS),
            "token_budget": int(_matched(variables, *_BUDGET) or TOKEN_BUDGET),
            "weights": _weights(variables),
            "time_limit": float(_number(variables, "NPL_TIME_LIMIT", 10)),
            "patience": float(patience) if (patience := _matched(variables, *_PATIENCE)) else None,
            "log_calls": _choice(variables, "NPL_LOG_CALLS", "off", LOG_CALLS),
            "project": Path(project) if (project := project_folder(variables)) else None,
            "log_level": _choice(variables, "NPL_LOG_LEVEL", "WARNING", LOG_LEVELS),
            "listening": _listening(variables),
            "max_body_bytes": _number(variables, "NPL_MCP_MAX_BODY_BYTES", 2 * MAX_ARTIFACT_BYTES)
            if "NPL_MCP_MAX_BODY_BYTES" in variables
            else None,
        }
        values.update({name: value for name, value in given.items() if value is not None})
        return cls(**values)  # type: ignore[arg-type]

    @classmethod
    def of_files(cls, env: Mapping[str, str] | None = None) -> Settings:
        """Read only what environment and files say about documents; all else has its default.

        :param env: see :func:`~npl_mcp.config.connection.given_variables`.
        :raises InvalidRequestError: a variable or a file cannot be used.
        """
        variables = given_variables(env)
        return cls(**_search_places(variables))  # type: ignore[arg-type]


_PASSED_ON = ("PATH", "HOME", "USERPROFILE", "XDG_CONFIG_HOME", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR")


def child_environment(added: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a child process: the variables every program needs, and the added ones.

    Its ``PATH`` has no folder that depends on the working directory.
    """
    found = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    found["PATH"] = os.pathsep.join(filter(os.path.isabs, found.get("PATH", "").split(os.pathsep)))
    return found | dict(added)


def find_program(name: str, path: str | None = None) -> str | None:
    """Return the full path of a program that is not in the working directory, or ``None``.

    :param path: folders to look in; by default those of ``PATH``.
    """
    found = shutil.which(name, path=path or child_environment({})["PATH"])
    # Windows looks in the working directory first.
    return found if found and Path(found).is_absolute() else None


def inherited_environment(added: Mapping[str, str]) -> dict[str, str]:
    """Return this process's variables, and the added ones."""
    return dict(os.environ) | dict(added)


def corpus_folder() -> Path:
    """Return the folder of the prompts that come with the package.

    It is part of the package when installed and a folder of its own in a checkout.
    """
    package = Path(__file__).resolve().parents[1]
    packaged = package / "corpus"
    return packaged if packaged.is_dir() else package.parent / "corpus"


def _search_places(variables: Variables) -> dict[str, object]:
    """Read where files lie and how large they may be."""
    cwd, home = Path.cwd(), Path.home()
    # Clients and services start servers in the home folder or above: nobody means all that lies there.
    is_accident = home.resolve().is_relative_to(cwd)
    return {
        "cwd": cwd,
        "home": home,
        "roots": _paths(variables.get("NPL_ROOTS", "")),
        "search_cwd": _flag(variables, "NPL_SEARCH_CWD", default="0" if is_accident else "1"),
        "system": _system_folder(variables),
        "environment": {name: Path(variables[name]) for name in SEARCH_PLACES if name in variables},
        "theme": variables.get("NPL_THEME", "default"),
        **_change_requests(variables),
        "limits": Limits(max_bytes=_number(variables, "NPL_MAX_FILE_BYTES", Limits().max_bytes)),
    }


def _change_requests(variables: Variables) -> dict[str, object]:
    """Read where change requests lie: projects, and folders behind ``CODE=``."""
    roots, folders = [], {}
    for part in filter(str.strip, variables.get("NPL_CR_PROJECTS", "").split(os.pathsep)):
        code, equals, folder = part.strip().partition("=")
        if equals and re.fullmatch(r"[A-Z][A-Z0-9]{1,4}", code):
            folders[code] = Path(folder).expanduser()
        else:
            roots.append(Path(part.strip()).expanduser())
    return {"cr_roots": tuple(roots), "cr_folders": folders}


def _paths(text: str) -> tuple[Path, ...]:
    return tuple(Path(part).expanduser() for part in text.split(os.pathsep) if part.strip())


def _listening(variables: Variables) -> Listening:
    place = variables.get("NPL_MCP_SOCKET")
    port = _matched(variables, *_PORT)
    return Listening(
        host=variables.get("NPL_MCP_HOST", HOST),
        port=int(port) if port else None if place else PORT,
        socket=Path(place) if place else None,
        token=variables.get("NPL_MCP_TOKEN"),
        no_token=_flag(variables, "NPL_MCP_NO_TOKEN"),
        hosts=parse_words(variables.get("NPL_MCP_HOSTS", "")),
        origins=parse_words(variables.get("NPL_MCP_ORIGINS", "")),
        max_calls=_number(variables, "NPL_MCP_MAX_CALLS", MAX_CALLS),
    )


def _matched(variables: Variables, name: str, pattern: str, problem: str, hint: str) -> str | None:
    """Return what a variable says, if it says something.

    :raises InvalidRequestError: it does not have the pattern.
    """
    text = variables.get(name)
    if text is not None and not re.fullmatch(pattern, text):
        raise InvalidRequestError(f"{variables.label(name)}={text[:32]!r} {problem}", hint=hint)
    return text


def parse_words(text: str) -> tuple[str, ...]:
    """Read words separated by commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _system_folder(variables: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return Path("/Library/Application Support/npl")
    if sys.platform == "win32":
        return Path(variables.get("PROGRAMDATA", r"C:\ProgramData")) / "npl"
    return Path("/etc/npl")


def _choice(variables: Variables, name: str, default: str, allowed: Sequence[str]) -> str:
    value = variables.get(name, default)
    for one in allowed:
        if one.lower() == value.lower():
            return one
    hint = f"use one of {', '.join(allowed)}"
    raise InvalidRequestError(f"{variables.label(name)}={value!r} is not known", hint=hint)


def _number(variables: Variables, name: str, default: int) -> int:
    # More digits than that mean nothing, and Python refuses to read very many.
    hint = f"write a whole number above 0, of at most 15 digits, e.g. {default}"
    return int(_matched(variables, name, r"0*[1-9][0-9]{,14}", "cannot be used", hint) or default)


def _flag(variables: Variables, name: str, default: str = "0") -> bool:
    text = variables.get(name, default).lower()
    if text not in ("0", "1", "true", "false", "yes", "no", "on", "off"):
        raise InvalidRequestError(
            f"{variables.label(name)}={text!r} is neither on nor off", hint="use 1 or 0"
        )
    return text in ("1", "true", "yes", "on")


def _weights(variables: Variables) -> Weights:
    text = variables.get("NPL_WEIGHTS")
    if text is None:
        return Weights()
    hint = "three numbers from 0 on, not all 0, e.g. 0.4,0.3,0.3"
    try:
        name, content, topic = (float(part) for part in text.split(","))
    except ValueError:
        raise InvalidRequestError(
            f"{variables.label('NPL_WEIGHTS')}={text[:32]!r} cannot be read", hint=hint
        ) from None
    if not all(0 <= part < float("inf") for part in (name, content, topic)) or name + content + topic == 0:
        raise InvalidRequestError(f"{variables.label('NPL_WEIGHTS')}={text[:32]!r} cannot be used", hint=hint)
    return Weights(name=name, content=content, topic=topic)
