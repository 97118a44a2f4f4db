"""The names of settings in a configuration file: those of the flags, or else of the variables."""

# Not "from __future__ import annotations": a NamedTuple compiles annotations that are texts, and the first
# compilation costs a command two milliseconds.

from typing import NamedTuple


class Key(NamedTuple):
    """One setting.

    :param variable: the variable of the environment that says the same.
    :param kind: what a file may give: ``text``, ``switch``, ``count``, ``seconds``, ``numbers``, ``words``,
        ``path`` or ``paths``.
    :param attribute: where :class:`~npl_mcp.config.settings.Settings` has it; empty for what only the command
        lines use.
    :param project: a project's file may say it. Such a file comes with a clone, from whoever wrote it: only
        what changes the form of answers or narrows what is served to the project itself.
    :param secret: its value is not shown.
    """

    variable: str
    kind: str
    attribute: str = ""
    project: bool = False
    secret: bool = False


KEYS = {
    "root": Key("NPL_ROOTS", "paths", "roots", project=True),
    "write": Key("NPL_WRITE", "switch", "write"),
    "search-cwd": Key("NPL_SEARCH_CWD", "switch", "search_cwd", project=True),
    "cr-projects": Key("NPL_CR_PROJECTS", "paths", "cr_roots"),
    "cache": Key("NPL_CACHE_MODE", "text", "cache_mode", project=True),
    "cache-bytes": Key("NPL_CACHE_BYTES", "count", "cache_bytes"),
    "index-bytes": Key("NPL_INDEX_BYTES", "count", "index_bytes"),
    "data-dir": Key("NPL_MCP_DATA_DIR", "path", "data_folder"),
    "database-url": Key("NPL_DATABASE_URL", "text", "database_url", secret=True),
    "max-artifact-bytes": Key("NPL_MAX_ARTIFACT_BYTES", "count", "max_artifact_bytes"),
    "web": Key("NPL_MCP_WEB", "text", "web"),
    "web-url": Key("NPL_MCP_WEB_URL", "text", "web_url"),
    "structured": Key("NPL_STRUCTURED", "switch", "structured", project=True),
    "exact-names": Key("NPL_EXACT_NAMES", "switch", "exact_names", project=True),
    "domains": Key("NPL_DOMAINS", "words", "domains", project=True),
    "small-list": Key("NPL_SMALL_LIST", "switch", "small_list", project=True),
    "vocabulary": Key("NPL_VOCABULARY", "text", "vocabulary", project=True),
    "format": Key("NPL_FORMAT", "text", "format", project=True),
    "token-budget": Key("NPL_TOKEN_BUDGET", "count", "token_budget", project=True),
    "weights": Key("NPL_WEIGHTS", "numbers", "weights", project=True),
    "theme": Key("NPL_THEME", "text", "theme", project=True),
    "max-file-bytes": Key("NPL_MAX_FILE_BYTES", "count", "limits.max_bytes"),
    "time-limit": Key("NPL_TIME_LIMIT", "count", "time_limit"),
    "patience": Key("NPL_PATIENCE", "seconds", "patience", project=True),
    "log-calls": Key("NPL_LOG_CALLS", "text", "log_calls"),
    "project": Key("NPL_PROJECT", "path", "project", project=True),
    "log-level": Key("NPL_LOG_LEVEL", "text", "log_level", project=True),
    "host": Key("NPL_MCP_HOST", "text", "listening.host"),
    "port": Key("NPL_MCP_PORT", "count", "listening.port"),
    "socket": Key("NPL_MCP_SOCKET", "path", "listening.socket"),
    "token": Key("NPL_MCP_TOKEN", "text", "listening.token", secret=True),
    "no-token": Key("NPL_MCP_NO_TOKEN", "switch", "listening.no_token"),
    "allow-host": Key("NPL_MCP_HOSTS", "words", "listening.hosts"),
    "allow-origin": Key("NPL_MCP_ORIGINS", "words", "listening.origins"),
    "max-body-bytes": Key("NPL_MCP_MAX_BODY_BYTES", "count", "body_limit"),
    "max-calls": Key("NPL_MCP_MAX_CALLS", "count", "listening.max_calls"),
    "url": Key("NPL_MCP_URL", "text"),
    "via": Key("NPL_VIA", "text"),
}
"""By the name in a file. A row without ``project`` can be given by the user alone."""

FORMER = frozenset({"worklog-files"})
"""Names of earlier versions; a file that has them can still be read."""
