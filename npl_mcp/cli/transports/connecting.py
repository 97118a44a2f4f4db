"""Call a tool by its name and get the envelope, wherever the tool runs.

A way is anything with :meth:`Way.call` and :meth:`Way.close`. :mod:`npl_mcp.cli.transports.direct`
calls the tools' own functions in this process; :mod:`npl_mcp.cli.transports.asking` has the ways to servers.
Each is imported when it is taken.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any, Protocol

from npl_index.errors import InvalidRequestError
from npl_mcp.cli.terminal.arguments import UsageError
from npl_mcp.config.connection import Reach

STATE_FILE = "server.json"
"""What a running server writes to its data folder."""


class Way(Protocol):
    """One way to reach the tools."""

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool.

        :param tool: its name.
        :param arguments: as JSON would hold them; those that are ``None`` are left out.
        :returns: ``{"success": True, "data": …}`` or ``{"success": False, "error": …, "error_code": …}``.
        """
        ...

    def close(self) -> None:
        """Release what the way holds."""
        ...


def connect(via: str | None, note: Callable[[str], object]) -> Way:
    """Return a way to the tools.

    :param via: ``auto``, ``http``, ``stdio`` or ``direct``; by default what the environment says.
    :param note: told what the user should know and what is no answer.
    :raises UsageError: a variable of the environment cannot be used.
    """
    try:
        reach = Reach.from_env()
    except InvalidRequestError as error:
        raise UsageError(str(error)) from None
    chosen = via or reach.via
    state_file = os.path.join(reach.data_folder, STATE_FILE)  # noqa: PTH118 - takes less time than a path object
    if chosen == "auto" and reach.url is None and not os.path.exists(state_file):  # noqa: PTH110
        chosen = "direct"
    way: Way
    if chosen == "direct":
        way = _module("direct").Direct()
    elif chosen == "stdio":
        way = _module("asking").Asked(_module("stdio").Stdio())
    else:
        asking: Any = _module("asking")
        server = asking.running(reach, state_file)
        if chosen == "auto" and server is not None:
            way = asking.Auto(server, reach.places, note)
        else:
            way = asking.Asked(server or asking.Nobody())
    return way


def _module(name: str) -> Any:
    return importlib.import_module(f"npl_mcp.cli.transports.{name}")
