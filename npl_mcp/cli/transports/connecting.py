"""The connection of a command to the tools, in this process or on a server; and calls in this process."""

from __future__ import annotations

import logging
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npl_index.errors import InvalidRequestError, NPLError
from npl_mcp.cli.terminal.display import EXIT_CODES, FailedCallError, progress
from npl_mcp.cli.transports.base import WORKLOG_TOOLS, Transport, TransportError, parse_address
from npl_mcp.config.server_state import running_server
from npl_mcp.config.settings import Settings, search_places
from npl_mcp.tools.contract.error_codes import translate
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.tools.domains import tool_named

if TYPE_CHECKING:
    from npl_mcp.app.app import App
    from npl_mcp.app.worklog_context import Worklogs

Note = Callable[[str], object]
"""Function that reports one line to the user."""


class InProcess(Transport):
    """A transport that calls tools in this process.

    :param settings: settings of the tools.
    """

    name, local = "this process", True

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings
        self._app: App | Worklogs | None = None
        # The user sees errors in the replies; the log is for servers.
        logging.getLogger("npl_mcp").addHandler(logging.NullHandler())

    def call(self, tool: str, arguments: dict[str, object]) -> dict[str, Any]:
        """Call a tool; see :meth:`Transport.call <npl_mcp.cli.transports.base.Transport.call>`."""
        try:
            result = tool_named(tool)(self._first_argument(tool), **arguments)
            is_text = arguments.get("format") == "markdown"
            return {"success": True, "data": result.text if is_text else as_dict(result)}
        except (NPLError, OSError) as error:
            failed: dict[str, Any] = as_dict(translate(error, tool))
            return failed

    def _first_argument(self, tool: str) -> App | Worklogs:
        """Return the first argument of a tool. Importing the application takes a quarter of a second."""
        settings = self._settings
        if self._app is None:
            if tool.startswith(WORKLOG_TOOLS):
                from npl_mcp.app.worklog_context import Worklogs

                self._app = Worklogs(settings.data_folder, settings.worklog_project, settings.database_url)
            else:
                from npl_mcp.app.app import App

                self._app = App(replace(settings, warm_up=False))
            self.callback(self._app.close)
        return self._app


class ServerConnection(ExitStack):
    """A connection to the tools through one transport.

    :param transport: transport of the calls.
    :param settings: settings of calls in this process, which replace a server that fails; ``None`` if a
        server is not replaced.
    :param note: function that gets a message when a server is replaced.
    """

    def __init__(self, transport: Transport, settings: Settings | None, note: Note) -> None:
        super().__init__()
        self._transport, self._settings, self._note = self.enter_context(transport), settings, note

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """Call a tool; a terminal shows a long call.

        :param tool: name of the tool.
        :param arguments: JSON values; ``None`` means an absent argument.
        :returns: ``{"success": True, "data": …}`` or ``{"success": False, "error": …, "error_code": …}``.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        with progress():
            try:
                return self._transport.call(tool, given)
            except TransportError as error:
                if self._settings is None or not _may_run_here(tool, self._transport, error):
                    return _no_reply(self._transport, error)
                self._note(f"{self._transport.name} {error.problem}; ran without a server")
                self._transport, self._settings = self.enter_context(InProcess(self._settings)), None
                return self._transport.call(tool, given)

    def ask(self, tool: str, **arguments: object) -> Any:
        """Call a tool and return the data of its reply; see :meth:`call`.

        :raises FailedCallError: the call failed.
        """
        reply = self.call(tool, **arguments)
        if not reply["success"]:
            raise FailedCallError(reply)
        return reply["data"]


def user_settings(given: Namespace, roots: Sequence[str] = ()) -> Settings:
    """Return the settings of a command, which may read all files of its user.

    :param given: arguments of the command.
    :param roots: further folders to search.
    :raises InvalidRequestError: a setting is invalid.
    """
    flags = {name: getattr(given, name, None) for name in ("via", "root")}
    settings = Settings.from_env(flags=flags, search_cwd=True, own_cwd=True, write=True)
    return replace(settings, roots=(*map(Path, roots), *settings.roots))


def connect(given: Namespace, note: Note, roots: Sequence[str] = ()) -> ServerConnection:
    """Return a connection to the tools.

    :param given: arguments of the command. With ``--root``, a running server is never called.
    :param note: function that gets messages for the user besides the replies.
    :param roots: further folders to search. A running server has its own roots, so it is called only with
        ``--via http``.
    :raises InvalidRequestError: a setting is invalid, or a running server would have to see the roots.
    :raises SystemExit: a server is required but does not run; the user was told.
    """
    settings, root = user_settings(given, roots), getattr(given, "root", None)
    own, insists = bool(roots or root), settings.via == "http"
    if settings.via == "stdio":
        from npl_mcp.cli.transports.stdio import StdioTransport

        return ServerConnection(StdioTransport(settings.roots if own else ()), None, note)
    if insists and root:
        raise InvalidRequestError("a running server searches its own roots", hint="drop --root or --via")
    server = None if settings.via == "direct" or (own and not insists) else _server(settings, insists=insists)
    if server is not None:
        return ServerConnection(server, None if insists else settings, note)
    if insists:
        hint = "start it with npl-mcp-server start, or use --via direct to run without it"
        note(f"a server of this data folder is not running; {hint}")
        raise SystemExit(EXIT_CODES["UNAVAILABLE"])
    return ServerConnection(InProcess(settings), None, note)


def _server(settings: Settings, *, insists: bool) -> Transport | None:
    """Return the server that the settings name, else the running server of the data folder, else ``None``.

    Only the server of the data folder gets the token of its state file, and only while it runs.

    :param insists: whether the user requires a server; the folder's server may then search other places.
    :raises InvalidRequestError: ``NPL_MCP_URL`` is not an address.
    """
    state = running_server(settings.data_folder, only_own=True)
    listens = [] if state is None else [state.socket and f"unix:{state.socket}", state.url]
    own = [address for text in listens if text and (address := parse_address(text))]
    if settings.url is None:
        if state is None or not own or not (insists or state.places == search_places()):
            return None
        # The socket comes first: the mode of its file limits the users that can connect.
        address, token = own[0], state.token
    else:
        address = parse_address(settings.url)
        if address is None:
            problem = f"NPL_MCP_URL={settings.url!r} is not the address of a server"
            hint = "use e.g. http://127.0.0.1:8765, https://name, or unix:/path for a socket"
            raise InvalidRequestError(problem, hint=hint)
        # The token goes to the server's own address: another user may listen at ``localhost`` in IPv6.
        same = address.same_in(own) if state else None
        token = state.token if state and same else settings.token or ""
        address = same or address
    from npl_mcp.cli.transports.http import HttpTransport

    return HttpTransport(address, token, settings.worklog_project)


def _may_run_here(tool: str, server: Transport, error: TransportError) -> bool:
    """Return whether this process may repeat a call that a server has not answered.

    A call that only reads may always be repeated. Any other call must not have been sent, because the server
    may have run it, and the server must be on this machine, because others have other data.
    """
    return (server.local and not error.sent) or tool_named(tool).read_only


def _no_reply(transport: Transport, error: TransportError) -> dict[str, Any]:
    if error.sent:
        code, hint = "UNCERTAIN", "the call may have succeeded: check before you retry"
    else:
        code = "UNAVAILABLE"
        start = "start it with npl-mcp-server start, or " if error.absent else ""
        hint = f"{start}use --via direct to run without it"
    return {"success": False, "error": f"{transport.name} {error.problem}; {hint}", "error_code": code}
