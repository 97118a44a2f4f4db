"""``npl-load hook``: names of sections for a prompt, for the hook ``UserPromptSubmit`` of a client.

The client sends JSON with ``prompt`` and ``cwd``, and gives the printed ``additionalContext`` to its model.
Without a running server nothing is printed, nor for a prompt that no section certainly answers. Failures are
silent, because a client would show them at each prompt.

This module runs at each prompt, so it imports the standard library alone.
"""

import json
import os
import socket
import sys
import threading
from contextlib import suppress

from npl_mcp.cli.transports.base import parse_address, reply_of
from npl_mcp.config import sessions
from npl_mcp.config.server_state import running_server
from npl_mcp.config.user_folders import data_folder

EVENT = "UserPromptSubmit"

SECONDS = 0.1
"""Time limit; Python takes up to 50 ms more to start."""

_MAX_BYTES = 1 << 20


def run(seconds: float = SECONDS) -> int:
    """Answer the call of a client on standard input; return the exit code, which is always 0.

    :param seconds: time limit.
    """
    limit = threading.Timer(seconds, os._exit, (0,))
    limit.daemon = True
    limit.start()
    with suppress(OSError, ValueError, RecursionError, AttributeError):  # closed streams are None
        call = json.loads(sys.stdin.buffer.read(_MAX_BYTES))
        if isinstance(call, dict):
            # The working directory of Claude Code may lie deeper than the project.
            folder = os.environ.get("CLAUDE_PROJECT_DIR") or call.get("cwd")
            if hints := _hints(call.get("prompt"), folder):
                output = {"hookEventName": EVENT, "additionalContext": hints}
                sys.stdout.write(json.dumps({"hookSpecificOutput": output}) + "\n")
                sys.stdout.flush()
    limit.cancel()
    return 0


def _hints(prompt: object, folder: object) -> str:
    """Return what the running server answers, else the server of sessions; empty without one.

    :raises OSError: it cannot be reached.
    """
    question = {"context": prompt, "folder": folder}
    state = running_server(data_folder(), only_own=True)
    address = parse_address(state.place) if state else None
    if state is None or address is None:
        return str((sessions.ask(data_folder(), hints=question) or {}).get("hints", ""))
    body = json.dumps(question).encode()
    head = (
        "POST /mcp/tools/npl_hints HTTP/1.0",
        f"Host: {address.host or 'localhost'}:{address.port}",
        f"Authorization: Bearer {state.token}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    )
    if address.path:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(address.path)
    else:
        connection = socket.create_connection((address.host, address.port))
    with connection, connection.makefile("rb") as source:
        connection.sendall("\r\n".join((*head, "", "")).encode() + body)
        reply = reply_of(source.read(_MAX_BYTES).partition(b"\r\n\r\n")[2])
    return str((reply or {}).get("data", ""))
