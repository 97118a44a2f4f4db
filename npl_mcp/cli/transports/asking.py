"""The ways to servers: what is sent to whom, and what is done when no answer comes."""

from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Callable
from typing import Any, Protocol

from npl_mcp.cli.terminal.arguments import UsageError
from npl_mcp.cli.transports import servers
from npl_mcp.cli.transports.connecting import Way
from npl_mcp.cli.transports.wire import Address, WireError, address
from npl_mcp.config.connection import Reach


class Server(Protocol):
    """A server that can be asked."""

    name: str

    def ask(self, tool: str, arguments: dict[str, object]) -> dict[str, Any]:
        """Call a tool.

        :returns: its envelope.
        :raises WireError: there is none.
        """
        ...

    def close(self) -> None:
        """End the conversation."""
        ...


class Http:
    """A server that runs.

    :param where: its address.
    :param token: proves who calls; empty for none.
    :param state: what it says of itself in the data folder; ``None`` if it is another's.
    """

    def __init__(self, where: Address, token: str, state: servers.State | None = None) -> None:
        self.where, self._token, self.state = where, token, state
        self.name = f"the server at {where.name}"

    def ask(self, tool: str, arguments: dict[str, object]) -> dict[str, Any]:
        """Call a tool; see :meth:`Server.ask`."""
        headers: dict[str, bytes] = {}
        if self._token:
            if _PRINTABLE.fullmatch(self._token) is None:
                raise WireError("is not asked: its token has characters that no token has")
            headers["Authorization"] = b"Bearer " + self._token.encode("ascii")
        # Another machine has other folders; its server shows its own.
        if self.where.local:
            headers["NPL-Cwd"] = _folder()
        # In ASCII, so that half of a surrogate pair arrives as such and is refused, as it is in this process.
        return servers.call(self.where, tool, json.dumps(arguments).encode("ascii"), headers)

    def close(self) -> None:
        """Do nothing: each call has a connection of its own."""


_PRINTABLE = re.compile("[!-~]+")
_IN_A_HEADER = re.compile(rb"[^\x00-\x20\x7f](?:[^\x00-\x1f\x7f]*[^\x00-\x20\x7f])?")


def _folder() -> bytes:
    """Return the working directory as a header can hold it."""
    try:
        here = os.fsencode(os.getcwd())  # noqa: PTH109 - a path object is not needed
    except OSError:
        raise WireError("is not asked: the working directory is gone") from None
    if _IN_A_HEADER.fullmatch(here) is None:
        raise WireError("is not asked: the name of the working directory has control characters")
    return here


class Nobody:
    """Stands for a server where there is none."""

    name = "a server of this data folder"

    def ask(self, tool: str, arguments: dict[str, object]) -> dict[str, Any]:  # noqa: ARG002 - of no use
        """Say so; see :meth:`Server.ask`."""
        raise WireError("is not running", absent=True)

    def close(self) -> None:
        """Do nothing."""


class Asked:
    """Asks one server and nobody else.

    :param server: to ask.
    """

    def __init__(self, server: Server) -> None:
        self._server = server

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool; see :meth:`Way.call`."""
        try:
            return self._server.ask(tool, _given(arguments))
        except WireError as error:
            return _lost(self._server, error)

    def close(self) -> None:
        """End the conversation."""
        self._server.close()


OF_FILES = ("items_", "survey_", "npl_")
"""How the names of tools begin whose answers depend on where files are looked for."""


class Auto:
    """Asks a server as long as it answers, then calls tools in this process.

    A call that the server may have carried out is repeated only if it changes nothing. A call that changes
    something is not made here in place of another machine, whose data are other data.

    :param server: to ask.
    :param places: where this environment looks for files; the server of the data folder is not asked for any
        if it looks elsewhere.
    :param note: told when the server fails.
    """

    def __init__(self, server: Http, places: str, note: Callable[[str], object]) -> None:
        self._server: Http | None = server
        self._elsewhere = server.state is not None and server.state.places != places
        self._note = note
        self._direct: Way | None = None

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool; see :meth:`Way.call`."""
        server = self._server
        if server is not None and not (self._elsewhere and tool.startswith(OF_FILES)):
            try:
                return server.ask(tool, _given(arguments))
            except WireError as error:
                if (error.sent or not server.where.local) and not _direct().spec_of(tool).read_only:
                    return _lost(server, error)
                self._server = None
                # A server that ended without a farewell is no news.
                if not (error.absent and server.state is not None):
                    self._note(f"{server.name} {error.problem}; done without it")
        if self._direct is None:
            self._direct = _direct().Direct()
        return self._direct.call(tool, **arguments)

    def close(self) -> None:
        """Release what was opened."""
        if self._direct is not None:
            self._direct.close()


def _given(arguments: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in arguments.items() if value is not None}


UNAVAILABLE = "UNAVAILABLE"
"""Error code of a call that no server took."""

UNCERTAIN = "UNCERTAIN"
"""Error code of a call whose answer was lost."""


def _lost(server: Server, error: WireError) -> dict[str, Any]:
    if error.sent:
        code, hint = UNCERTAIN, "the call may have been carried out: look before you repeat it"
    else:
        code = UNAVAILABLE
        start = "start it with npl-mcp-server start, or " if error.absent else ""
        hint = f"{start}do without it by --via direct"
    return {"success": False, "error": f"{server.name} {error.problem}; {hint}", "error_code": code}


def _direct() -> Any:
    """Import what only those wait for who find no server."""
    return importlib.import_module("npl_mcp.cli.transports.direct")


def running(reach: Reach, state_file: str) -> Http | None:
    """Return the server that the environment names, or else the one that has the data folder.

    :param state_file: of the data folder.
    :raises UsageError: ``NPL_MCP_URL`` is no address.
    """
    state = servers.read_state(state_file)
    if reach.url is None:
        where = None if state is None else address(state.place)
        return None if where is None or state is None else Http(where, state.token, state)
    where = address(reach.url)
    if where is None:
        hint = "write e.g. http://127.0.0.1:8765, https://name, or unix:/path of a socket"
        raise UsageError(f"NPL_MCP_URL={reach.url!r} is no address of a server; {hint}")
    own = None
    if state is not None and where.same_as(address(state.url), address(state.place)):
        own = state
    return Http(where, own.token if own else reach.token or "")
