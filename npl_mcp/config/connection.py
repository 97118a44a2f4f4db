"""How a command line reaches the tools.

A module of its own beside :mod:`npl_mcp.config.settings`, which takes longer to import than a server takes to
answer. These two modules are the only ones that read the environment; :mod:`npl_mcp.config.layers` adds what
configuration files say.
"""

# Not "from __future__ import annotations": a NamedTuple compiles annotations that are texts, and the first
# compilation costs a command two milliseconds.

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple

from npl_index.errors import InvalidRequestError
from npl_mcp.config.layers import Variables, with_files

SEARCH_PLACES = (
    "NPL_HOME",
    "NPL_META",
    "NPL_STYLE_GUIDE",
    "NPL_PERSONA_DIR",
    "NPL_USER_PERSONA_DIR",
    "NPL_WORKFLOW_DIR",
)
"""Variables that name search places of single kinds of items."""

TRANSPORTS = ("auto", "http", "stdio", "direct")

STATE_FILE = "server.json"
"""File in the data folder that says where its server listens; see :mod:`npl_mcp.config.server_state`."""


class ConnectionSettings(NamedTuple):
    """How a command line reaches the tools.

    :param transport: one of :data:`TRANSPORTS`.
    :param url: the server to call; ``None`` means the one of the data folder, if it runs.
    :param token: bearer token for that URL.
    :param data_folder: path of the data folder.
    :param database_url: of a database that replaces the one in the data folder.
    :param project: path of the folder whose worklogs are meant; ``None`` means the working directory.
    :param places: the variables that say where files are looked for, one per line.
    """

    transport: str
    url: str | None
    token: str | None
    data_folder: str
    database_url: str | None
    project: str | None
    places: str

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> "ConnectionSettings":
        """Read the variables that matter for this and no others.

        :param env: variables; by default the process's, and what the configuration files say.
        :raises InvalidRequestError: ``NPL_VIA`` is none of :data:`TRANSPORTS`, another variable or a file
            cannot be used.
        """
        variables = given_variables(env)
        transport = variables.get("NPL_VIA") or TRANSPORTS[0]
        if transport not in TRANSPORTS:
            hint = f"use one of {', '.join(TRANSPORTS)}"
            raise InvalidRequestError(f"{variables.label('NPL_VIA')}={transport!r} is not known", hint=hint)
        return cls(
            transport=transport,
            url=variables.get("NPL_MCP_URL") or None,
            token=variables.get("NPL_MCP_TOKEN") or None,
            data_folder=variables.get("NPL_MCP_DATA_DIR") or user_data(variables),
            database_url=database_url(variables),
            project=project_folder(variables),
            places=search_places(variables),
        )

    @property
    def state_file(self) -> str:
        """Path of the file that says where the data folder's server listens."""
        return f"{self.data_folder}/{STATE_FILE}"


def given_variables(env: Mapping[str, str] | None = None) -> Variables:
    """Return the variables that are set and not empty.

    :param env: these and no files; by default the process's, and what the configuration files say.
    :raises InvalidRequestError: a file cannot be used.
    """
    if env is None:
        return with_files(os.environ, user_config(os.environ))
    return (
        env
        if isinstance(env, Variables)
        else Variables({name: value for name, value in env.items() if value})
    )


def database_url(variables: Variables) -> str | None:
    """Return the address of the database that replaces the one in the data folder.

    :raises InvalidRequestError: it is none; it is not repeated, since it may hold a password.
    """
    url = variables.get("NPL_DATABASE_URL") or None
    if url is not None and not url.startswith(("postgresql://", "postgres://")):
        raise InvalidRequestError(
            f"{variables.label('NPL_DATABASE_URL')} is no address of PostgreSQL",
            hint="e.g. postgresql://user@host/database",
        )
    return url


def project_folder(variables: Mapping[str, str]) -> str | None:
    """Return the path of the folder whose worklogs are meant; ``None`` means the working directory."""
    said = variables.get("NPL_PROJECT")
    return os.path.abspath(os.path.expanduser(said)) if said else None  # noqa: PTH100, PTH111


def search_places(env: Mapping[str, str] | None = None) -> str:
    """Return the variables that say where files are looked for, one per line.

    :param env: see :func:`given_variables`.
    """
    variables = given_variables(env)
    names = ("NPL_ROOTS", "NPL_THEME", *SEARCH_PLACES)
    return "\n".join(f"{name}={variables[name]}" for name in names if variables.get(name))


def user_data(variables: Mapping[str, str]) -> str:
    """Return the folder for a user's data.

    On Linux it follows the XDG Base Directory Specification, elsewhere platformdirs.
    """
    if sys.platform in ("darwin", "win32"):
        from platformdirs import user_data_dir

        return user_data_dir("npl-mcp", appauthor=False)
    # Every command needs it, and platformdirs takes longer to import than the rest of a short command.
    given = variables.get("XDG_DATA_HOME", "")
    base = given if given.startswith("/") else os.path.expanduser("~/.local/share")  # noqa: PTH111
    return f"{base}/npl-mcp"


def user_config(variables: Mapping[str, str]) -> str:
    """Return the folder of a user's configuration, likewise."""
    if sys.platform in ("darwin", "win32"):
        from platformdirs import user_config_dir

        return user_config_dir("npl-mcp", appauthor=False)
    given = variables.get("XDG_CONFIG_HOME", "")
    base = given if given.startswith("/") else os.path.expanduser("~/.config")  # noqa: PTH111
    return f"{base}/npl-mcp"
