"""A server of one's own for one command, spoken to over its standard streams.

What agents' clients do, so this is the way to see what they see. Messages are lines of JSON-RPC 2.0.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from npl_mcp import __version__
from npl_mcp.cli.transports.servers import ANSWER, check_version
from npl_mcp.cli.transports.wire import LONGEST_BODY, WireError

START = 30.0
"""Seconds a server has to start."""

END = 5.0
"""Seconds a server has to end by itself when its input ends."""

PROTOCOL = "2025-06-18"
COMMAND = (sys.executable, "-m", "npl_mcp", "--log-level", "ERROR")
"""What it warns of it answers as well."""


class Stdio:
    """A server that runs until :meth:`close`.

    :param command: starts it.
    :param start: seconds it has for that.
    :param answer: seconds a tool may take.
    """

    def __init__(
        self, command: Sequence[str] = COMMAND, *, start: float = START, answer: float = ANSWER
    ) -> None:
        self._command, self._start, self._seconds = command, start, answer
        self._process: subprocess.Popen[bytes] | None = None
        self._number = 0
        self.name = "the server over standard streams"

    def ask(self, tool: str, arguments: dict[str, object]) -> dict[str, Any]:
        """Call a tool.

        :returns: its envelope.
        :raises WireError: there is no answer, or none of a tool.
        """
        if self._process is None:
            self._greet()
        reply = self._exchange("tools/call", {"name": tool, "arguments": arguments}, self._seconds)
        try:
            body = json.loads(reply["result"]["content"][0]["text"])
        except (KeyError, IndexError, TypeError, ValueError, RecursionError):
            body = None
        if not isinstance(body, dict) or "success" not in body:
            raise WireError("sent what is no answer of a tool", sent=True)
        return body

    def close(self) -> None:
        """End the server: by the end of its input, or else by force."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            process.stdin.close()
        try:
            process.wait(END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def _greet(self) -> None:
        # In a session of its own, so that Ctrl-C reaches this program alone, which then ends the server.
        try:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            raise WireError(f"cannot be started: {error.strerror}") from None
        me = {"name": "npl", "version": __version__}
        params = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": me}
        reply = self._exchange("initialize", params, self._start)
        result = reply.get("result")
        info = result.get("serverInfo") if isinstance(result, dict) else None
        named = isinstance(info, dict) and info.get("name") == "npl"
        check_version(str(info.get("version")) if named and isinstance(info, dict) else None)
        self._write({"method": "notifications/initialized"})

    def _exchange(self, method: str, params: Mapping[str, object], seconds: float) -> dict[str, Any]:
        """Send a request and wait for its answer; a server that takes longer is ended."""
        process = self._process
        assert process is not None
        self._number += 1
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, end)
        timer.start()
        sent = False
        try:
            self._write({"id": self._number, "method": method, "params": params})
            sent = method == "tools/call"
            return self._answer(process)
        except (OSError, EOFError):
            problem = f"does not answer within {seconds:g} s" if late.is_set() else "ended without an answer"
            raise WireError(problem, sent=sent) from None
        finally:
            timer.cancel()

    def _write(self, message: dict[str, object]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode("ascii") + b"\n")
        self._process.stdin.flush()

    def _answer(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        """Read lines up to the answer; others are remarks."""
        assert process.stdout is not None
        while line := process.stdout.readline(LONGEST_BODY):
            if not line.endswith(b"\n"):
                if len(line) == LONGEST_BODY:
                    raise WireError(f"answers with more than {LONGEST_BODY >> 20} MiB", sent=True)
                break
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(message, dict) and message.get("id") == self._number and "method" not in message:
                return message
        raise EOFError
