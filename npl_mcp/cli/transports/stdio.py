"""A server for one command, called over its standard streams like by an MCP client."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastmcp import Client
from fastmcp.client.transports import StdioTransport as ClientTransport
from mcp import MCPError

from npl_mcp.cli.transports.base import CALL_SECONDS, Transport, TransportError, check_version, reply_of
from npl_mcp.config.child_processes import inherited_environment
from npl_mcp.config.programs import SERVER, python

START_SECONDS = 30.0


class StdioTransport(Transport):
    """A transport that starts a server with the first call.

    :param roots: roots of the server; by default those of the environment.
    :param command: command that starts the server; by default that of this installation.
    """

    name, local = "the server over standard streams", True

    def __init__(self, roots: Sequence[Path] = (), command: Sequence[str] | None = None) -> None:
        super().__init__()
        # Answers contain the warnings of the log as well, and this program reads JSON.
        self._command = [*(command or [*python(SERVER), "--log-level", "ERROR", "--format", "json"])]
        self._command += [word for root in roots for word in ("--root", str(root))]
        self._connected: tuple[BlockingPortal, Client[ClientTransport]] | None = None

    def call(self, tool: str, arguments: dict[str, object]) -> dict[str, Any]:
        """Call a tool; see :meth:`Transport.call <npl_mcp.cli.transports.base.Transport.call>`."""
        self._connected = portal, client = self._connected or self._connect()
        try:
            result: Any = portal.call(client.call_tool_mcp, tool, arguments)
        except MCPError as error:
            raise TransportError(f"gave no reply: {error}", sent=True) from None
        text = getattr(result.content[0], "text", "") if result.content else ""
        if arguments.get("format") == "markdown" and not result.is_error:
            return {"success": True, "data": text}
        reply = reply_of(text)
        if reply is None:
            raise TransportError("sent no reply of a tool", sent=True)
        return reply

    def _connect(self) -> tuple[BlockingPortal, Client[ClientTransport]]:
        # The libraries would log the errors that the reply has.
        for name in ("mcp", "fastmcp", "client"):
            logging.getLogger(name).addHandler(logging.NullHandler())
            logging.getLogger(name).propagate = False
        program, *arguments = self._command
        # Like this process, the server searches the working directory. The default for log_file, sys.stderr,
        # may not be a file that a process can write to.
        variables = inherited_environment({"NPL_SEARCH_CWD": "1", "NPL_PATIENCE": f"{CALL_SECONDS:g}"})
        log = sys.__stderr__
        transport = ClientTransport(program, arguments, env=variables, keep_alive=False, log_file=log)
        client = Client(transport, init_timeout=START_SECONDS, timeout=CALL_SECONDS)
        portal = self.enter_context(start_blocking_portal())
        try:
            self.enter_context(portal.wrap_async_context_manager(client))
        except (MCPError, RuntimeError) as error:
            raise TransportError(f"did not start: {error.__cause__ or error}") from None
        info = client.server_info
        check_version(info.version if info and info.name == "npl" else None)
        return portal, client
