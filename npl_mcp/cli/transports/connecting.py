"""The connection of a command to the tools, wherever they run.

Each transport is imported when it is chosen: what a command does not use must not slow its start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from npl_index.errors import InvalidRequestError
from npl_mcp.cli.terminal.arguments import UsageError
from npl_mcp.cli.terminal.display import EXIT_CODES
from npl_mcp.cli.terminal.progress import Progress
from npl_mcp.cli.transports.base import Transport, TransportError
from npl_mcp.config.connection import ConnectionSettings

if TYPE_CHECKING:
    from npl_mcp.cli.transports.http import HttpTransport
    from npl_mcp.cli.transports.in_process import InProcess


class Connection:
    """Calls tools through one transport.

    :param transport: to call them with.
    :param replaced: told once when calls go on in this process, because the server failed; by default a
        server is not replaced.
    """

    def __init__(self, transport: Transport, replaced: Callable[[str], object] | None = None) -> None:
        self._transport, self._replaced = transport, replaced

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool; a call that takes long is shown at a terminal.

        :param tool: its name.
        :param arguments: as JSON would hold them; those that are ``None`` are left out.
        :returns: ``{"success": True, "data": …}`` or ``{"success": False, "error": …, "error_code": …}``.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        with Progress("working"):
            try:
                return self._transport.call(tool, given)
            except TransportError as error:
                if self._replaced is None or not _may_run_here(tool, self._transport, error):
                    return _no_reply(self._transport, error)
                self._replaced(f"{self._transport.name} {error.problem}; ran without a server")
                self._transport, self._replaced = _in_process(), None
                return self._transport.call(tool, given)

    def close(self) -> None:
        """Release what the transport holds."""
        self._transport.close()


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
    :raises SystemExit: a server is asked for, and none runs; that was reported.
    """
    try:
        settings = ConnectionSettings.from_env()
    except InvalidRequestError as error:
        raise UsageError(str(error)) from None
    chosen = transport or settings.transport
    if chosen == "stdio":
        from npl_mcp.cli.transports.stdio import StdioTransport

        return Connection(StdioTransport(roots=roots, only=must_see))
    if chosen == "http" and must_see:
        raise UsageError("--root is for this process: a running server searches its own roots; drop --via")
    if chosen == "http":
        server = _server(settings)
        if server is None:
            hint = "start it with npl-mcp-server start, or use --via direct to run without it"
            note(f"a server of this data folder is not running; {hint}")
            raise SystemExit(EXIT_CODES["UNAVAILABLE"])
        return Connection(server)
    server = None if chosen == "direct" or roots else _server(settings, replaceable=True)
    return Connection(server, note) if server else Connection(_in_process(roots, only=must_see))


def _server(settings: ConnectionSettings, *, replaceable: bool = False) -> HttpTransport | None:
    """Return the server that the environment names, or else the one of the data folder, if it runs.

    Only while the server of the data folder runs is the token of its state file for whoever listens there.

    :param replaceable: this process can take its place, and does where the folder's server looks for files
        elsewhere.
    :raises UsageError: ``NPL_MCP_URL`` is no address.
    """
    if settings.url is None and not os.path.exists(settings.state_file):  # noqa: PTH110
        return None
    from npl_mcp.cli.transports.addresses import parse_address
    from npl_mcp.cli.transports.http import HttpTransport
    from npl_mcp.config.server_state import running_server

    state = running_server(settings.data_folder, only_own=True)
    listens = [] if state is None else [state.socket and f"unix:{state.socket}", state.url]
    own = [address for text in listens if text and (address := parse_address(text))]
    if settings.url is None:
        if state is None or not own or (replaceable and state.places != settings.places):
            return None
        # The socket comes first: the mode of its file says who may connect.
        return HttpTransport(own[0], state.token, settings.project)
    address = parse_address(settings.url)
    if address is None:
        hint = "use e.g. http://127.0.0.1:8765, https://name, or unix:/path for a socket"
        raise UsageError(f"NPL_MCP_URL={settings.url!r} is not the address of a server; {hint}")
    own_token = state.token if state is not None and address.same_as(*own) else None
    return HttpTransport(address, settings.token or "" if own_token is None else own_token, settings.project)


def _in_process(roots: Sequence[str] = (), *, only: bool = False) -> InProcess:
    from npl_mcp.cli.transports.in_process import InProcess

    return InProcess(roots=roots, only=only)


def _may_run_here(tool: str, server: Transport, error: TransportError) -> bool:
    """Return whether a call that a server has not answered can be made in this process.

    One that changes nothing always can. Any other must not have been sent, since the server may have carried
    it out; and a server on another machine has other data than this one.
    """
    if server.local and not error.sent:
        return True
    from npl_mcp.tools.domains import tool_named

    return tool_named(tool).read_only


def _no_reply(transport: Transport, error: TransportError) -> dict[str, Any]:
    if error.sent:
        code, hint = "UNCERTAIN", "the call may have succeeded: check before you retry"
    else:
        code = "UNAVAILABLE"
        start = "start it with npl-mcp-server start, or " if error.absent else ""
        hint = f"{start}use --via direct to run without it"
    return {"success": False, "error": f"{transport.name} {error.problem}; {hint}", "error_code": code}
