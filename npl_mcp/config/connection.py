"""How a command line reaches the tools; reads these few variables of the environment itself.

:mod:`npl_mcp.config.settings` reads all the others, and takes longer to import than a server takes to answer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple

from npl_index.errors import InvalidRequestError

PLACES = (
    "NPL_ROOTS",
    "NPL_THEME",
    "NPL_HOME",
    "NPL_META",
    "NPL_STYLE_GUIDE",
    "NPL_PERSONA_DIR",
    "NPL_USER_PERSONA_DIR",
    "NPL_WORKFLOW_DIR",
)
"""Variables that say where files are looked for."""

WAYS = ("auto", "http", "stdio", "direct")


class Reach(NamedTuple):
    """How a command line reaches the tools.

    :param via: one of :data:`WAYS`.
    :param url: the server to ask; ``None`` means the one that runs on the data folder, if any.
    :param token: bearer token for it.
    :param data_folder: path of the data folder.
    :param places: what the environment says about where files are looked for; empty if nothing.
    """

    via: str
    url: str | None
    token: str | None
    data_folder: str
    places: str

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Reach:
        """Read what the environment says about it, and nothing else.

        :param env: variables, by default the process's.
        :raises InvalidRequestError: ``NPL_VIA`` is none of :data:`WAYS`.
        """
        variables = os.environ if env is None else env
        via = variables.get("NPL_VIA") or WAYS[0]
        if via not in WAYS:
            raise InvalidRequestError(f"NPL_VIA={via!r} is not known", hint=f"use one of {', '.join(WAYS)}")
        return cls(
            via=via,
            url=variables.get("NPL_MCP_URL") or None,
            token=variables.get("NPL_MCP_TOKEN") or None,
            data_folder=variables.get("NPL_MCP_DATA_DIR") or user_data(variables),
            places="\n".join(f"{name}={variables[name]}" for name in PLACES if variables.get(name)),
        )


def user_data(variables: Mapping[str, str]) -> str:
    """Return the folder where this program keeps a user's data.

    On Linux it is what the XDG Base Directory Specification says, elsewhere what platformdirs does.
    """
    if sys.platform in ("darwin", "win32"):
        from platformdirs import user_data_dir

        return user_data_dir("npl-mcp", appauthor=False)
    # Every command needs it, and platformdirs takes longer to import than the rest of a short command.
    given = variables.get("XDG_DATA_HOME", "")
    base = given if given.startswith("/") else os.path.expanduser("~/.local/share")  # noqa: PTH111
    return f"{base}/npl-mcp"
