"""Settings of a server or a command: one field a setting.

A field of :class:`Settings` or :class:`Listening` declares a setting whole: its name in ``npl.toml`` and as a
flag, its variable, its kind and default, and in the docstring its meaning. The flags, ``npl-mcp config show``
and SETTINGS.md come from :data:`SETTINGS`.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from platformdirs import user_data_path

from npl_index.choices import FORMATS, VOCABULARIES, Weights
from npl_index.errors import InvalidRequestError
from npl_index.library.roots import Limits
from npl_index.tokens.places import vocabulary_folders
from npl_mcp.config import kinds
from npl_mcp.config.docstrings import parameters
from npl_mcp.config.sources import Given, given_values

TOKEN_BUDGET = 450
"""Tokens of an answer whose call names no budget."""
DEFAULT_PORT = 8765

SERVERS, HTTP, COMMANDS = "npl-mcp and npl-mcp-server", "npl-mcp-server", "npl-load and npl-worklog"
"""Programs that have a flag."""

SEARCH_PLACES = (
    "NPL_HOME",
    "NPL_META",
    "NPL_STYLE_GUIDE",
    "NPL_PERSONA_DIR",
    "NPL_USER_PERSONA_DIR",
    "NPL_WORKFLOW_DIR",
)
"""Variables that name search places of single kinds of items."""

_BESIDE_AN_ARTIFACT = 1024 * 1024


def setting(*row: Any, **more: Any) -> Any:
    """Return a dataclass field that declares a setting; see :class:`~npl_mcp.config.kinds.Setting`."""
    one = kinds.Setting(*row, **more)
    return field(default=one.default, repr=not one.secret, metadata={"setting": one})


def server_flag(*row: Any, **more: Any) -> Any:
    """Return the field of a setting that is a flag of both servers."""
    return setting(*row, flag=SERVERS, **more)


def http_flag(*row: Any, **more: Any) -> Any:
    """Return the field of a setting that is a flag of the HTTP server."""
    return setting(*row, flag=HTTP, **more)


def project_flag(*row: Any, **more: Any) -> Any:
    """Return the field of a setting that is a flag of both servers, and that a project's file may give."""
    return setting(*row, flag=SERVERS, project=True, **more)


@dataclass(frozen=True, slots=True)
class Listening:
    """Where the HTTP server listens, and who may call.

    :param host: address the HTTP server listens on.
    :param port: port it listens on; 0 means any free one. With ``socket``, the server listens on no port by
        default.
    :param socket: Unix socket to listen on instead of a port.
    :param token: bearer token that callers of the port need. Where other people have accounts on the machine
        a token is required even if none is set.
    :param no_token: require no token from callers on this machine, even if other people have accounts there.
    :param hosts: host name that callers may use for the server (repeatable).
    :param origins: origin whose web pages may call (repeatable).
    :param max_calls: concurrent calls; more are refused.
    """

    host: str = http_flag("host", "NPL_MCP_HOST", kinds.TEXT, "127.0.0.1", metavar="ADDRESS")
    port: int | None = http_flag("port", "NPL_MCP_PORT", kinds.PORT, DEFAULT_PORT, metavar="NUMBER")
    socket: Path | None = http_flag("socket", "NPL_MCP_SOCKET", kinds.PATH, metavar="PATH")
    token: str | None = http_flag("token", "NPL_MCP_TOKEN", kinds.TEXT, secret=True)
    no_token: bool = http_flag("no-token", "NPL_MCP_NO_TOKEN", kinds.SWITCH, False)
    hosts: tuple[str, ...] = http_flag("allow-host", "NPL_MCP_HOSTS", kinds.LIST, ())
    origins: tuple[str, ...] = http_flag("allow-origin", "NPL_MCP_ORIGINS", kinds.LIST, (), metavar="ORIGIN")
    max_calls: int = setting("max-calls", "NPL_MCP_MAX_CALLS", kinds.COUNT, 64)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a server or a command.

    :param cwd: the working directory; a root as well, after the given ones.
    :param home: the user's home directory, for ``~/.npl``.
    :param system: the machine's folder of NPL files.
    :param environment: search places that variables name, by variable.
    :param vocabulary_folders: folders where other programs keep vocabularies.
    :param cloned_roots: a project's file gave the roots; its author may not allow changes to them.
    :param warm_up: index the core files and load the vocabulary in the background after the start.
    :param listening: of the HTTP server.
    :param roots: serve the Markdown below this folder (repeatable; first wins).
    :param write: list ``npl_update_section``, which edits the Markdown below these folders. Roots of a
        project's ``npl.toml`` do not count.
    :param search_cwd: search the working directory where no root is given. The default is yes, unless the
        home folder is that directory or lies in it.
    :param cr_projects: projects with change requests outside the roots, or ``CODE=folder`` for a folder of
        change requests.
    :param cache_mode: keep large folders indexed across restarts (``disk``, and ``sqlite``, its former
        name), or nothing (``memory``).
    :param cache_bytes: size of the memory cache.
    :param index_bytes: size of the index. The least recently used folders are removed first.
    :param data_dir: folder of the database, the artifacts and the index; by default the user's data folder.
    :param database_url: address of a PostgreSQL database that replaces the one in the data folder.
    :param max_artifact_bytes: largest artifact.
    :param web: pages for people: ``on``, ``read`` (they change nothing) or ``off``.
    :param web_url: address under which people reach the pages, where it is not the server's own.
    :param structured: add structured content and output schemas.
    :param exact_names: list tools under their former names.
    :param domains: list only these domains of tools: ``search``, ``npl``, ``cr``, ``directive``, ``utility``,
        ``session``, ``artifact``, ``review``, ``worklog``, ``chat``, or ``loading``, ``coordination``,
        ``changes``, ``all``.
    :param small_list: list the tools for reading, and two that find and call the others.
    :param vocabulary: vocabulary for token counts.
    :param format: default form of answers over MCP. Failures, commands, pages and plain HTTP calls stay JSON.
    :param token_budget: default tokens of an answer to a context or topics; 0 for no limit.
    :param weights: weights of the three parts of a score: name, content, topic.
    :param theme: preferred theme of styles.
    :param limits: largest file.
    :param time_limit: seconds to read and index one file.
    :param patience: seconds a call waits for a folder that is being indexed, by default until it is. Then the
        answer has the indexed part, and says so.
    :param log_calls: keep a log of calls (``on``), with their questions (``contexts``), or none. The log has
        the last 100,000 calls of 30 days.
    :param project: folder of the worklogs, by default the working directory. Servers that share a database
        need one path, which need not exist.
    :param log_level: level of the log on standard error. ``INFO`` shows each call, ``DEBUG`` keywords and
        scores.
    :param max_body_bytes: largest request over HTTP, by default what the largest artifact needs.
    :param url: server that the command lines call, e.g. ``http://127.0.0.1:8765``.
    :param via: call a server or run here: ``auto``, ``http``, ``stdio`` or ``direct``.
    """

    cwd: Path
    home: Path
    system: Path = Path("/etc/npl")
    environment: Mapping[str, Path] = field(default_factory=dict)
    vocabulary_folders: tuple[Path, ...] = ()
    cloned_roots: bool = False
    warm_up: bool = True
    roots: tuple[Path, ...] = project_flag("root", "NPL_ROOTS", kinds.PATHS, ())
    write: bool = server_flag("write", "NPL_WRITE", kinds.SWITCH, False)
    search_cwd: bool = setting("search-cwd", "NPL_SEARCH_CWD", kinds.SWITCH, False, project=True)
    cr_projects: tuple[kinds.ChangeFolder, ...] = setting(
        "cr-projects", "NPL_CR_PROJECTS", kinds.CHANGE_FOLDERS, (), shown="cr_roots"
    )
    cache_mode: str = project_flag(
        "cache", "NPL_CACHE_MODE", kinds.choice("disk", "memory", "sqlite"), "disk"
    )
    cache_bytes: int = setting("cache-bytes", "NPL_CACHE_BYTES", kinds.COUNT, 256 << 20)
    index_bytes: int = setting("index-bytes", "NPL_INDEX_BYTES", kinds.COUNT, 8 << 30)
    data_dir: Path | None = server_flag("data-dir", "NPL_MCP_DATA_DIR", kinds.PATH, shown="data_folder")
    database_url: str | None = setting(
        "database-url", "NPL_DATABASE_URL", kinds.DATABASE_ADDRESS, secret=True
    )
    max_artifact_bytes: int = setting("max-artifact-bytes", "NPL_MAX_ARTIFACT_BYTES", kinds.COUNT, 10 << 20)
    web: str = http_flag("web", "NPL_MCP_WEB", kinds.choice("on", "read", "off"), "on")
    web_url: str | None = setting("web-url", "NPL_MCP_WEB_URL", kinds.WEB_ADDRESS)
    structured: bool = project_flag("structured", "NPL_STRUCTURED", kinds.SWITCH, False)
    exact_names: bool = project_flag("exact-names", "NPL_EXACT_NAMES", kinds.SWITCH, False)
    domains: tuple[str, ...] = project_flag("domains", "NPL_DOMAINS", kinds.WORDS, ())
    small_list: bool = project_flag("small-list", "NPL_SMALL_LIST", kinds.SWITCH, False)
    vocabulary: str = project_flag(
        "vocabulary", "NPL_VOCABULARY", kinds.choice(*VOCABULARIES), VOCABULARIES[0]
    )
    format: str = project_flag("format", "NPL_FORMAT", kinds.choice(*FORMATS), "json")
    token_budget: int = project_flag("token-budget", "NPL_TOKEN_BUDGET", kinds.BUDGET, TOKEN_BUDGET)
    weights: Weights = setting("weights", "NPL_WEIGHTS", kinds.WEIGHTS, Weights(), project=True)
    theme: str = setting("theme", "NPL_THEME", kinds.TEXT, "default", project=True)
    limits: Limits = setting(
        "max-file-bytes", "NPL_MAX_FILE_BYTES", kinds.LIMITS, Limits(), shown="limits.max_bytes"
    )
    time_limit: float = setting("time-limit", "NPL_TIME_LIMIT", kinds.COUNT, 10)
    patience: float | None = project_flag("patience", "NPL_PATIENCE", kinds.SECONDS)
    log_calls: str = server_flag("log-calls", "NPL_LOG_CALLS", kinds.choice("off", "on", "contexts"), "off")
    project: Path | None = project_flag("project", "NPL_PROJECT", kinds.PROJECT)
    log_level: str = project_flag(
        "log-level",
        "NPL_LOG_LEVEL",
        kinds.choice("DEBUG", "INFO", "WARNING", "ERROR"),
        "WARNING",
    )
    listening: Listening = field(default_factory=Listening)
    max_body_bytes: int | None = setting(
        "max-body-bytes", "NPL_MCP_MAX_BODY_BYTES", kinds.COUNT, shown="body_limit"
    )
    url: str | None = setting("url", "NPL_MCP_URL", kinds.TEXT)
    via: str = setting(
        "via", "NPL_VIA", kinds.choice("auto", "http", "stdio", "direct"), "auto", flag=COMMANDS
    )

    @property
    def cr_roots(self) -> tuple[Path, ...]:
        """The projects with change requests outside the roots."""
        return tuple(one.folder for one in self.cr_projects if not one.code)

    @property
    def cr_folders(self) -> dict[str, Path]:
        """The folders of change requests of projects without a configuration, by code."""
        return {one.code: one.folder for one in self.cr_projects if one.code}

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
        return self.data_dir or user_data_path("npl-mcp", appauthor=False)

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
        """The documents of calls that name no file, as a sentence for the person who starts a server."""
        if self.roots:
            return f"serves {', '.join(str(root.absolute()) for root in self.roots)}"
        if self.search_cwd:
            return f"serves the working directory, {self.cwd}; --root DIR serves another"
        return "no --root: only the bundled reference is served; start with --root DIR"

    @property
    def unwritable(self) -> str | None:
        """The reason why no file may be changed, whatever ``write`` says."""
        if self.cloned_roots:
            return "a project's npl.toml gives the roots"
        return None if self.roots else "there is no root"

    @classmethod
    def from_env(
        cls,
        env: Mapping[str, str] | None = None,
        flags: Mapping[str, object] | None = None,
        **values: object,
    ) -> Settings:
        """Read flags, the environment and the files.

        :param env: the variables, without any file; by default the process's, and the files.
        :param flags: values of the flags by name, with ``_`` for ``-``.
        :param values: values by attribute that override all others; ``None`` overrides none.
        :raises InvalidRequestError: a value or a file cannot be used; names its source and a valid value.
        """
        said = given_settings(env, flags)
        variables = os.environ if env is None else env
        home, cwd = Path.home(), _working_directory()
        found: dict[str, object] = {
            "cwd": cwd,
            "home": home,
            "system": _system_folder(variables),
            "environment": {name: Path(variables[name]) for name in SEARCH_PLACES if variables.get(name)},
            "vocabulary_folders": vocabulary_folders(variables),
            # Clients and services start servers in the home folder or above without meaning to serve it.
            "search_cwd": not home.resolve().is_relative_to(cwd),
        }
        if "root" in said:
            found["cloned_roots"] = said["root"].cloned and values.get("roots") is None
        listening: dict[str, Any] = {"port": None} if "socket" in said else {}
        for name, given in said.items():
            inside, _, last = SETTINGS[name].attribute.rpartition(".")
            (listening if inside else found)[last] = SETTINGS[name].read(given.texts, given.label)
        found["listening"] = Listening(**listening)
        found.update({name: value for name, value in values.items() if value is not None})
        return cls(**found)  # type: ignore[arg-type]


def _declared(kind: type, inside: str = "") -> Iterator[kinds.Setting]:
    meanings = parameters(kind)
    for one in fields(kind):
        if "setting" in one.metadata:
            meaning = meanings.get(one.name, "")  # "python -OO" has no docstrings
            yield replace(one.metadata["setting"], attribute=inside + one.name, meaning=meaning)
        elif one.name == "listening":
            yield from _declared(Listening, "listening.")


SETTINGS: Mapping[str, kinds.Setting] = {one.name: one for one in _declared(Settings)}
"""All settings, by name."""


def given_settings(
    env: Mapping[str, str] | None = None, flags: Mapping[str, object] | None = None
) -> dict[str, Given]:
    """Return what is said about each setting that is not left to its default; see :meth:`Settings.from_env`.

    :raises InvalidRequestError: a file cannot be used.
    """
    return given_values(SETTINGS, env, flags or {})


def search_places() -> str:
    """Return the variables that say where files are looked for, one a line."""
    said = given_settings()
    lines = {SETTINGS[name].variable: said[name].texts for name in ("root", "theme") if name in said}
    lines |= {name: [os.environ[name]] for name in SEARCH_PLACES if os.environ.get(name)}
    return "\n".join(f"{name}={os.pathsep.join(texts)}" for name, texts in lines.items())


def add_flags(parser: ArgumentParser, programs: str) -> None:
    """Add the flags of settings that some programs have."""
    for name, one in SETTINGS.items():
        if one.flag == programs:
            option = {**one.kind.option, **({"metavar": one.metavar} if one.metavar else {})}
            text = one.meaning.partition(". ")[0].removesuffix(".").replace("`", "")
            default = f" (default: {one.default})" if one.default else ""
            parser.add_argument(f"--{name}", help=text + default, **option)


def corpus_folder() -> Path:
    """Return the folder of the prompts that come with the package.

    It is part of the package when installed and a folder of its own in a checkout.
    """
    package = Path(__file__).resolve().parents[1]
    packaged = package / "corpus"
    return packaged if packaged.is_dir() else package.parent / "corpus"


def _working_directory() -> Path:
    try:
        return Path.cwd()
    except OSError:
        problem = "the working directory does not exist"
        raise InvalidRequestError(problem, hint="change to another folder") from None


def _system_folder(variables: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return Path("/Library/Application Support/npl")
    if sys.platform == "win32":
        return Path(variables.get("PROGRAMDATA", r"C:\ProgramData")) / "npl"
    return Path("/etc/npl")
