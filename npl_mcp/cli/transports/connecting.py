"""The connection of a command to the tools, wherever they run.

Each transport is imported when it is chosen: what a command does not use must not slow its start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from npl_index.errors import InvalidRequestError
from npl_mcp.cli.terminal.arguments import UsageError
from npl_mcp.cli.terminal.progress import Progress
from npl_mcp.cli.transports.base import Transport, TransportError
from npl_mcp.config.connection import ConnectionSettings

if TYPE_CHECKING:
    from npl_mcp.cli.transports.http import HttpTransport
    from npl_mcp.cli.transports.in_process import InProcess

FILE_TOOLS = ("items_", "survey_", "npl_", "content_")
"""Prefixes of the tools whose replies depend on where files are looked for."""


class Connection:
    """Calls tools through one transport.

    :param transport: to call them with.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool; a call that takes long is shown at a terminal.

        :param tool: its name.
        :param arguments: as JSON would hold them; those that are ``None`` are left out.
        :returns: ``{"success": True, "data": …}`` or ``{"success": False, "error": …, "error_code": …}``.
        """
        with Progress("working"):
            return self._reply(tool, _without_none(arguments))

    def _reply(self, tool: str, arguments: dict[str, object]) -> dict[str, Any]:
        try:
            return self._transport.call(tool, arguments)
        except TransportError as error:
            return _no_reply(self._transport, error)

    def close(self) -> None:
        """Release what the transport holds."""
        self._transport.close()


class ConnectionWithFallback(Connection):
    """Calls tools on a server, and in this process once the server has failed.

    :param server: to call as long as it answers.
    :param places: where this environment looks for files. The data folder's own server is not asked for files
        if it looks elsewhere.
    :param note: told when the server fails.
    """

    def __init__(self, server: HttpTransport, places: str, note: Callable[[str], object]) -> None:
        super().__init__(server)
        self._server: HttpTransport | None = server
        self._looks_elsewhere = server.state is not None and server.state.places != places
        self._note = note
        self._in_process: InProcess | None = None

    def _reply(self, tool: str, arguments: dict[str, object]) -> dict[str, Any]:
        server = self._server
        if server is not None and not (self._looks_elsewhere and tool.startswith(FILE_TOOLS)):
            try:
                return server.call(tool, arguments)
            except TransportError as error:
                if not _may_run_here(tool, server, error):
                    return _no_reply(server, error)
                self._server = None
                # A stale state file is to be expected: the user need not hear of it.
                if not (error.absent and server.state is not None):
                    self._note(f"{server.name} {error.problem}; ran without a server")
        if self._in_process is None:
            self._in_process = _in_process()
        return self._in_process.call(tool, arguments)

    def close(self) -> None:
        """Release what was opened."""
        if self._in_process is not None:
            self._in_process.close()


class NoServer:
    """Takes the place of the data folder's server if none runs."""

    name = "a server of this data folder"

    def call(self, tool: str, arguments: dict[str, object]) -> dict[str, Any]:  # noqa: ARG002
        """Fail: there is nothing to call."""
        raise TransportError("is not running", absent=True)

    def close(self) -> None:
        """Do nothing."""


def connect(
    transport: str | None,
    note: Callable[[str], object],
    roots: Sequence[str] = (),
    *,
    must_see: bool = False,
) -> Connection:
    """Return a connection to the tools.

    :param transport: one of :data:`~npl_mcp.config.connection.TRANSPORTS`; by default what the environment
        says.
    :param note: told what the user should know beside the replies.
    :param roots: folders to search first. A running server has its own, so that it is asked only if the user
        insists.
    :param must_see: these and no others; a running server cannot be asked at all.
    :raises UsageError: a variable of the environment cannot be used, or a server cannot see the roots.
    """
    try:
        settings = ConnectionSettings.from_env()
    except InvalidRequestError as error:
        raise UsageError(str(error)) from None
    chosen = transport or settings.transport
    alone = settings.url is None and not os.path.exists(settings.state_file)  # noqa: PTH110
    if chosen == "auto" and (alone or roots):
        chosen = "direct"
    if chosen == "direct":
        return Connection(_in_process(roots, only=must_see))
    if chosen == "stdio":
        from npl_mcp.cli.transports.stdio import StdioTransport

        return Connection(StdioTransport(roots=roots, only=must_see))
    if must_see:
        raise UsageError("--root is for this process: a running server searches its own roots; drop --via")
    server = _server(settings)
    if chosen == "auto":
        # A server that was killed leaves its state file.
        return ConnectionWithFallback(server, settings.places, note) if server else Connection(_in_process())
    return Connection(server or NoServer())


def _server(settings: ConnectionSettings) -> HttpTransport | None:
    """Return the server that the environment names, or else the one of the data folder, if it runs.

    Only while the server of the data folder runs is the token of its state file for whoever listens there.

    :raises UsageError: ``NPL_MCP_URL`` is no address.
    """
    from npl_mcp.cli.transports.addresses import parse_address
    from npl_mcp.cli.transports.http import HttpTransport
    from npl_mcp.config.server_state import running_server

    state = running_server(settings.data_folder, only_own=True)
    listens = [] if state is None else [state.socket and f"unix:{state.socket}", state.url]
    own = [address for text in listens if text and (address := parse_address(text))]
    if settings.url is None:
        # The socket comes first: the mode of its file says who may connect.
        return (
            HttpTransport(own[0], state.token, settings.project, state) if own and state is not None else None
        )
    address = parse_address(settings.url)
    if address is None:
        hint = "use e.g. http://127.0.0.1:8765, https://name, or unix:/path for a socket"
        raise UsageError(f"NPL_MCP_URL={settings.url!r} is not the address of a server; {hint}")
    if state is not None and address.same_as(*own):
        return HttpTransport(address, state.token, settings.project)
    return HttpTransport(address, settings.token or "", settings.project)


def _in_process(roots: Sequence[str] = (), *, only: bool = False) -> InProcess:
    from npl_mcp.cli.transports.in_process import InProcess

    return InProcess(roots=roots, only=only)


def _may_run_here(tool: str, server: HttpTransport, error: TransportError) -> bool:
    """Return whether a call that a server has not answered can be made in this process.

    One that changes nothing always can. Any other must not have been sent, since the server may have carried
    it out; and a server on another machine has other data than this one.
    """
    if server.address.local and not error.sent:
        return True
    from npl_mcp.tools.domains import tool_named

    return tool_named(tool).read_only


def _without_none(arguments: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in arguments.items() if value is not None}


UNAVAILABLE = "UNAVAILABLE"
"""Error code of a call that no server took."""

UNCERTAIN = "UNCERTAIN"
"""Error code of a call that a server may have carried out."""


def _no_reply(transport: Transport, error: TransportError) -> dict[str, Any]:
    if error.sent:
        code, hint = UNCERTAIN, "the call may have succeeded: check before you retry"
    else:
        code = UNAVAILABLE
        start = "start it with npl-mcp-server start, or " if error.absent else ""
        hint = f"{start}use --via direct to run without it"
    return {"success": False, "error": f"{transport.name} {error.problem}; {hint}", "error_code": code}
