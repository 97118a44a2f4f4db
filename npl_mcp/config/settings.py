"""Settings of servers and commands, one field per setting.

A field of :class:`Settings` or :class:`Listening` is the only declaration of its setting: key in
``npl.toml``, flag, variable, kind, default, and in the docstring the description. The flags,
``npl-mcp config show`` and SETTINGS.md come from :data:`SETTINGS`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from npl_index.choices import DEFAULT_BUDGET, FORMATS, VOCABULARIES, Weights
from npl_index.errors import InvalidRequestError
from npl_index.library.ignoring import Ignoring
from npl_index.library.roots import Limits
from npl_index.tokens.folders import vocabulary_folders
from npl_mcp.config import kinds
from npl_mcp.config.docstrings import parameters
from npl_mcp.config.kinds import choice
from npl_mcp.config.sources import Given, Origin, given_values
from npl_mcp.config.user_folders import user_folder

DEFAULT_PORT = 8765

SERVERS, HTTP, COMMANDS = "npl-mcp and npl-mcp-server", "npl-mcp-server", "npl-load and npl-worklog"
STDIO = "npl-mcp"
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

SYSTEM_FOLDERS = {
    "darwin": Path("/Library/Application Support/npl"),
    "win32": Path(os.environ.get("PROGRAMDATA", r"C:\ProgramData")) / "npl",
}
"""The machine's folder of NPL files, on systems where it is not /etc/npl."""

_REQUEST_OVERHEAD = 1024 * 1024
"""Bytes of a request besides the artifact in it."""


def setting(*row: Any, **more: Any) -> Any:
    """Return a dataclass field that declares a setting; see :class:`~npl_mcp.config.kinds.Setting`."""
    declared = kinds.Setting(*row, **more)
    return field(default=declared.default, repr=not declared.secret, metadata={"setting": declared})


def server_flag(*row: Any, **more: Any) -> Any:
    """Return the field of a setting with a flag of both servers."""
    return setting(*row, flag=SERVERS, **more)


def http_flag(*row: Any, **more: Any) -> Any:
    """Return the field of a setting with a flag of the HTTP server."""
    return setting(*row, flag=HTTP, **more)


def project_flag(*row: Any, **more: Any) -> Any:
    """Return the field of a setting with a flag of both servers, which a project's file may set as well."""
    return setting(*row, flag=SERVERS, project=True, **more)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a server or a command.

    :param cwd: working directory.
    :param own_cwd: whether it is the folder of the user who calls, which is a root after the given ones.
    :param home: home directory of the user, for ``~/.npl``.
    :param system: the machine's folder of NPL files.
    :param environment: search places in variables, by variable.
    :param vocabulary_folders: folders where other programs keep vocabularies.
    :param cloned_roots: whether a project's file gave the roots; its author may not allow changes to them.
    :param own_url: whether ``web_url`` is the address of this server alone.
    :param warm_up: whether a thread checks the database and the index, indexes the roots and loads the
        vocabulary.
    :param sources: the given settings with their sources, by name.
    :param roots: serve the Markdown below this folder (repeatable; the first has priority).
    :param write: list ``npl_update_section``, which edits the Markdown below the roots, or only in this
        folder of theirs (repeatable). Roots of a project's ``npl.toml`` do not count.
    :param no_gitignore: also serve what ``.gitignore`` files below the roots name.
    :param exclude: leave out what this line of a ``.gitignore`` would name below each root (repeatable).
        Files named in full are served.
    :param search_cwd: search the working directory if no root is given. The default is yes, unless the home
        folder is that directory or lies in it.
    :param cr_projects: projects with change requests outside the roots.
    :param cache_mode: place of the index: ``disk`` (formerly ``sqlite``) or ``memory``, which restarts lose.
    :param cache_bytes: limit of the memory cache.
    :param index_bytes: limit of the index. The least recently used folders are removed first.
    :param data_dir: folder of the database, the artifacts and the index; by default the user's data folder.
    :param database_url: address of a PostgreSQL database that replaces the one in the data folder.
    :param max_artifact_bytes: limit of an artifact.
    :param web: pages for people: ``on``, ``read`` (without changes) or ``off``.
    :param web_url: address of the pages for people, if it differs from the server's own.
    :param structured: add structured content and output schemas.
    :param exact_names: list tools under their former names.
    :param domains: list only these domains of tools: ``search``, ``npl``, ``cr``, ``directive``, ``utility``,
        ``session``, ``artifact``, ``review``, ``worklog``, ``chat``, or ``reading``, ``loading``,
        ``coordination``, ``changes``, ``all``.
    :param small_list: list only the tools for reading, and two that find and call the others.
    :param vocabulary: vocabulary for token counts.
    :param format: default form of answers over MCP. Failures, commands, pages and plain HTTP calls stay JSON.
    :param token_budget: default token budget of an answer to a context or topics; 0 for no limit.
    :param tell_changes: tell a caller, once, which sections have changed since it read them.
    :param weights: weights of the three parts of a score: name, content, topic.
    :param theme: preferred theme of styles.
    :param limits: limit of a file.
    :param time_limit: seconds to read and index one file, and to work on a call.
    :param patience: seconds that a call waits while a folder is being indexed, by default 20; commands and
        plain HTTP calls then wait to the end. After this time the answer covers the indexed part, and its
        first line says so.
    :param log_calls: log of calls: ``off``, ``on``, or ``contexts`` with their questions, and the arguments
        of questions and failed calls. The log has the last 100,000 calls of 30 days.
    :param project: folder of the worklogs, by default the working directory. Servers that share a database
        need the same path, which need not exist.
    :param log_level: level of the log on standard error. ``INFO`` shows each call, ``DEBUG`` keywords and
        scores.
    :param host: address of the HTTP server.
    :param port: port of the HTTP server; 0 means any free port. With ``socket``, the server has no port by
        default.
    :param socket: Unix socket that replaces the port.
    :param token: bearer token for callers of the port; on a machine with other users, the port requires a
        token even if none is set.
    :param no_token: require no token from callers on this machine, even if other people have accounts there.
    :param hosts: host name that callers may use for the server (repeatable).
    :param origins: origin of web pages that may call the server (repeatable).
    :param max_calls: limit of concurrent calls; further calls are refused.
    :param max_body_bytes: limit of a request over HTTP, by default enough for the largest artifact.
    :param shared: pass the session to one process for all sessions of this user and data folder.
    :param url: server that the command lines call, e.g. ``http://127.0.0.1:8765``.
    :param via: transport to the tools: ``auto``, ``http``, ``stdio`` or ``direct`` (this process).
    """

    cwd: Path
    home: Path
    system: Path = Path("/etc/npl")
    environment: Mapping[str, Path] = field(default_factory=dict)
    vocabulary_folders: tuple[Path, ...] = ()
    own_cwd: bool = False
    cloned_roots: bool = False
    own_url: bool = False
    warm_up: bool = True
    sources: Mapping[str, Given] = field(default_factory=dict, repr=False, compare=False)
    roots: tuple[Path, ...] = project_flag("root", "NPL_ROOTS", kinds.PATHS, ())
    write: bool | tuple[str, ...] = server_flag("write", "NPL_WRITE", kinds.PLACES, False)
    no_gitignore: bool = server_flag("no-gitignore", "NPL_NO_GITIGNORE", kinds.SWITCH, False)
    exclude: tuple[str, ...] = project_flag("exclude", "NPL_EXCLUDE", kinds.LIST, (), metavar="PATTERN")
    search_cwd: bool = setting("search-cwd", "NPL_SEARCH_CWD", kinds.SWITCH, False, project=True)
    cr_projects: tuple[Path, ...] = setting("cr-projects", "NPL_CR_PROJECTS", kinds.PATHS, ())
    cache_mode: str = project_flag("cache", "NPL_CACHE_MODE", choice("disk", "memory", "sqlite"), "disk")
    cache_bytes: int = setting("cache-bytes", "NPL_CACHE_BYTES", kinds.COUNT, 256 << 20)
    index_bytes: int = setting("index-bytes", "NPL_INDEX_BYTES", kinds.COUNT, 8 << 30)
    data_dir: Path | None = server_flag("data-dir", "NPL_MCP_DATA_DIR", kinds.PATH, shown="data_folder")
    database_url: str | None = setting("database-url", "NPL_DATABASE_URL", kinds.DATABASE, secret=True)
    max_artifact_bytes: int = setting("max-artifact-bytes", "NPL_MAX_ARTIFACT_BYTES", kinds.COUNT, 10 << 20)
    web: str = http_flag("web", "NPL_MCP_WEB", choice("on", "read", "off"), "on")
    web_url: str | None = setting("web-url", "NPL_MCP_WEB_URL", kinds.WEB_ADDRESS)
    structured: bool = project_flag("structured", "NPL_STRUCTURED", kinds.SWITCH, False)
    exact_names: bool = project_flag("exact-names", "NPL_EXACT_NAMES", kinds.SWITCH, False)
    domains: tuple[str, ...] = project_flag("domains", "NPL_DOMAINS", kinds.DOMAINS, ())
    small_list: bool = project_flag("small-list", "NPL_SMALL_LIST", kinds.SWITCH, False)
    vocabulary: str = project_flag("vocabulary", "NPL_VOCABULARY", choice(*VOCABULARIES), VOCABULARIES[0])
    format: str = project_flag("format", "NPL_FORMAT", choice(*FORMATS), "json")
    token_budget: int = project_flag("token-budget", "NPL_TOKEN_BUDGET", kinds.BUDGET, DEFAULT_BUDGET)
    tell_changes: bool = setting("tell-changes", "NPL_TELL_CHANGES", kinds.SWITCH, True)
    weights: Weights = setting("weights", "NPL_WEIGHTS", kinds.WEIGHTS, Weights(), project=True)
    theme: str = setting("theme", "NPL_THEME", kinds.TEXT, "default", project=True)
    limits: Limits = setting(
        "max-file-bytes", "NPL_MAX_FILE_BYTES", kinds.LIMITS, Limits(), shown="limits.max_bytes"
    )
    time_limit: float = setting("time-limit", "NPL_TIME_LIMIT", kinds.COUNT, 10)
    patience: float | None = project_flag("patience", "NPL_PATIENCE", kinds.SECONDS)
    log_calls: str = server_flag("log-calls", "NPL_LOG_CALLS", choice("off", "on", "contexts"), "off")
    project: Path | None = project_flag("project", "NPL_PROJECT", kinds.PROJECT)
    log_level: str = project_flag(
        "log-level", "NPL_LOG_LEVEL", choice("DEBUG", "INFO", "WARNING", "ERROR"), "WARNING"
    )
    host: str = http_flag("host", "NPL_MCP_HOST", kinds.TEXT, "127.0.0.1", metavar="ADDRESS")
    port: int | None = http_flag("port", "NPL_MCP_PORT", kinds.PORT, DEFAULT_PORT, metavar="NUMBER")
    socket: Path | None = http_flag("socket", "NPL_MCP_SOCKET", kinds.PATH, metavar="PATH")
    token: str | None = http_flag("token", "NPL_MCP_TOKEN", kinds.TOKEN, secret=True)
    no_token: bool = http_flag("no-token", "NPL_MCP_NO_TOKEN", kinds.SWITCH, False)
    hosts: tuple[str, ...] = http_flag("allow-host", "NPL_MCP_HOSTS", kinds.HOSTS, ())
    origins: tuple[str, ...] = http_flag(
        "allow-origin", "NPL_MCP_ORIGINS", kinds.ORIGINS, (), metavar="ORIGIN"
    )
    max_calls: int = setting("max-calls", "NPL_MCP_MAX_CALLS", kinds.COUNT, 64)
    max_body_bytes: int | None = setting(
        "max-body-bytes", "NPL_MCP_MAX_BODY_BYTES", kinds.COUNT, shown="body_limit"
    )
    shared: bool = setting("shared", "NPL_SHARED", kinds.SWITCH, False, flag=STDIO)
    url: str | None = setting("url", "NPL_MCP_URL", kinds.TEXT)
    via: str = setting("via", "NPL_VIA", choice("auto", "http", "stdio", "direct"), "auto", flag=COMMANDS)

    @property
    def body_limit(self) -> int:
        """Maximum length of a request in bytes: an artifact as base64, and the rest of the request."""
        return self.max_body_bytes or (self.max_artifact_bytes + 2) // 3 * 4 + _REQUEST_OVERHEAD

    @property
    def page_url(self) -> str | None:
        """Address of the pages for people; ``None`` without pages."""
        return self.web_url if self.web != "off" else None

    @property
    def data_folder(self) -> Path:
        """The folder of all stored data; it is created when first needed."""
        return self.data_dir or Path(user_folder("data"))

    @property
    def vocabularies(self) -> tuple[Path, ...]:
        """The folders to search for the vocabulary; the first is for files of the user."""
        return (self.data_folder / "vocabularies", *self.vocabulary_folders)

    @property
    def worklog_project(self) -> Path:
        """The folder of the worklogs; its real path is their key."""
        return (self.project or self.cwd).resolve()

    @property
    def serves_cwd(self) -> bool:
        """Whether the working directory is a root: the user's own, any other only if no root is given."""
        return self.own_cwd or (self.search_cwd and not self.roots)

    @property
    def serves(self) -> str:
        """A sentence about the documents of calls without ``file``, for the user who starts a server."""
        if self.roots:
            return f"serves {', '.join(str(root.absolute()) for root in self.roots)}"
        if self.search_cwd:
            return f"serves the working directory, {self.cwd}; --root DIR serves another"
        return "no --root: the server has only the bundled reference; start it with --root DIR"

    @property
    def given(self) -> str:
        """The given values, a line for each, that mean the same in any folder; of secrets the digests."""
        return "\n".join(SETTINGS[name].line(given.texts) for name, given in self.sources.items())

    @property
    def flags(self) -> list[str]:
        """The given flags without secrets, as words of a command line that mean the same in any folder."""
        own = [(SETTINGS[name], given) for name, given in self.sources.items() if given.source == f"--{name}"]
        return [word for flag, given in own if not flag.secret for word in flag.words(given.texts)]

    @property
    def ignoring(self) -> Ignoring:
        """The entries that folders leave out below the roots."""
        return Ignoring(not self.no_gitignore, self.exclude)

    @property
    def unwritable(self) -> str | None:
        """The reason why files may not be changed despite ``write``; ``None`` without one."""
        if self.cloned_roots:
            return "a project's npl.toml sets the roots"
        return None if self.roots else "there is no root"

    @classmethod
    def from_env(
        cls, flags: Mapping[str, object] | None = None, origin: Origin | None = None, **values: object
    ) -> Settings:
        """Read flags, the environment and the files.

        :param flags: values of the flags by name, with ``_`` for ``-``.
        :param origin: the process with the variables and the working directory; by default this one.
        :param values: values by attribute that override all others; ``None`` overrides nothing.
        :raises InvalidRequestError: a value or a file is invalid; the message names its source and a valid
            value.
        """
        origin = origin or Origin(os.environ)
        sources = given_values(SETTINGS, flags or {}, origin)
        home, cwd = Path.home(), origin.cwd or _working_directory()
        places = {name: text for name in SEARCH_PLACES if (text := origin.environment.get(name))}
        attributes: dict[str, object] = {
            "cwd": cwd,
            "home": home,
            "system": SYSTEM_FOLDERS.get(sys.platform, Path("/etc/npl")),
            "environment": {name: Path(origin.absolute(text)) for name, text in places.items()},
            "vocabulary_folders": vocabulary_folders(),
            "sources": sources,
            # Clients and services start servers in the home folder or above, which is not meant to be served.
            "search_cwd": not home.resolve().is_relative_to(cwd),
        }
        if "root" in sources:
            attributes["cloned_roots"] = sources["root"].cloned and values.get("roots") is None
        if "socket" in sources:
            attributes["port"] = None
        for name, given in sources.items():
            setting = SETTINGS[name]
            texts = [*map(origin.absolute, given.texts)] if setting.kind.is_path else given.texts
            attributes[setting.attribute] = setting.read(texts, given.label)
        attributes.update({name: value for name, value in values.items() if value is not None})
        return cls(**attributes)  # type: ignore[arg-type]


_MEANINGS = parameters(Settings)  # "python -OO" has no docstrings
SETTINGS: Mapping[str, kinds.Setting] = {
    declared.name: replace(declared, attribute=row.name, meaning=_MEANINGS.get(row.name, ""))
    for row in fields(Settings)
    if (declared := row.metadata.get("setting")) is not None
}
"""All settings, by name."""


def search_places() -> str:
    """Return the variables with search places and their values, one per line."""
    sources = given_values(SETTINGS, {}, Origin(os.environ))
    lines = {SETTINGS[name].variable: sources[name].texts for name in ("root", "theme") if name in sources}
    lines |= {name: [os.environ[name]] for name in SEARCH_PLACES if os.environ.get(name)}
    return "\n".join(f"{name}={os.pathsep.join(texts)}" for name, texts in lines.items())


def flags(programs: str) -> Iterator[tuple[tuple[str], dict[str, Any]]]:
    """Yield the flags of settings, each with its keyword arguments of ``add_argument``.

    :param programs: :data:`SERVERS`, :data:`HTTP`, :data:`STDIO` or :data:`COMMANDS`.
    """
    for name, declared in SETTINGS.items():
        if declared.flag == programs:
            option = {**declared.kind.option, **({"metavar": declared.metavar} if declared.metavar else {})}
            text = declared.meaning.partition(". ")[0].removesuffix(".").replace("`", "")
            default = f" (default: {declared.default})" if declared.default else ""
            yield (f"--{name}",), {"help": text + default, **option}


def corpus_folder() -> Path:
    """Return the folder of the bundled prompts: in the installed package, or next to it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    packaged = package / "corpus"
    return packaged if packaged.is_dir() else package.parent / "corpus"


def _working_directory() -> Path:
    try:
        return Path.cwd()
    except OSError:
        problem = "the working directory does not exist"
        raise InvalidRequestError(problem, hint="change to another folder") from None
