"""A server process for tests, and requests written by hand."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npl_mcp.config.server_state import ServerState, read_state
from tests.folders import fill
from tests.messages import asking, hello
from tests.until import PATIENCE

JSON = {"Content-Type": "application/json"}
BOTH = {**JSON, "Accept": "application/json, text/event-stream"}
"""Headers of a message of the protocol."""

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test-client", "version": "7.1"},
}
"""The client's metadata in each request of the newer protocol."""


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes = field(repr=False)

    @property
    def data(self) -> Any:
        return json.loads(self.body)


@dataclass
class Running:
    process: subprocess.Popen[bytes]
    state: ServerState
    folder: Path

    @property
    def port(self) -> int:
        return int((self.state.url or "").rpartition(":")[2])

    @property
    def log(self) -> str:
        return (self.folder / "stderr.txt").read_text(encoding="utf-8", errors="replace")

    def in_flight(self) -> int:
        """Return the number of calls that a server is answering."""
        owner = {"Authorization": f"Bearer {self.state.token}"}
        text = self.request("GET", "/metrics", headers=owner).body.decode()
        return int(float(text.partition("\nnpl_calls_in_flight ")[2].partition("\n")[0]))

    def connected(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def request(self, verb: str, path: str, body: Any = None, headers: Any = None, host: Any = "") -> Answer:
        """Send one request and read its answer; see :func:`message`."""
        sent = self.message(verb, path, body, {"Connection": "close", **(headers or {})}, host)
        with self.connected() as line:
            # A server that refuses a long body may answer before it has read it.
            with suppress(BrokenPipeError, ConnectionResetError):
                line.sendall(sent)
            return read(line, verb)

    def message(self, method: str, path: str, body: Any = None, headers: Any = None, host: Any = "") -> bytes:
        """Return a request as it is sent.

        :param body: bytes as they are, else JSON.
        :param headers: names may have ``_`` in place of ``-``.
        :param host: the Host header; empty means the right one.
        """
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = {} if host is None else {"Host": host or f"127.0.0.1:{self.port}"}
        if body is not None:
            sent["Content-Length"] = str(len(data))
        sent.update({name.replace("_", "-"): value for name, value in (headers or {}).items()})
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items()), "", ""]
        return "\r\n".join(lines).encode("utf-8", "surrogateescape") + data

    def session_of(self, **headers: str) -> str:
        """Shake hands as a client of the older protocol; return the id of its session."""
        return self.request("POST", "/mcp", hello(), {**BOTH, **headers}).headers["mcp-session-id"]

    def call(self, tool: str, arguments: object, **headers: str) -> Answer:
        """Call a tool by its plain route."""
        return self.request("POST", f"/mcp/tools/{tool}", arguments, {**JSON, **headers})

    def mcp(self, method: str, params: dict[str, Any], **headers: str) -> Answer:
        """Send one request of the newer protocol, which knows no handshake."""
        params = {**params, "_meta": {**META, **params.get("_meta", {})}}
        sent = {**BOTH, "MCP-Protocol-Version": MODERN, "Mcp-Method": method, **headers}
        if "name" in params:
            sent["Mcp-Name"] = params["name"]
        return self.request("POST", "/mcp", asking(1, method, **params), sent)


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """Variables of a process that sees nothing of the machine's settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NPL_", "TIKTOKEN"))}
    home = folder / "home"
    home.mkdir(exist_ok=True)
    # Whether people have accounts on the machine that runs the tests must not matter.
    own = {"HOME": str(home), "NPL_MCP_DATA_DIR": str(folder / "data"), "NPL_MCP_NO_TOKEN": "1"}
    return {**kept, **own, **variables}


def command(*flags: str) -> list[str]:
    return [sys.executable, "-m", "npl_mcp.cli.commands.serving", *flags]


@contextmanager
def serving(
    folder: Path, *flags: str, files: Mapping[str, str | bytes] | None = None, **variables: str
) -> Iterator[Running]:
    """Run a server on a port that the system chooses; it always ends.

    :param files: of its roots, which are the first folders of their paths.
    """
    if files is not None:
        roots = dict.fromkeys(name.partition("/")[0] for name in files)
        flags = (*(f"--root={fill(folder, files) / root}" for root in roots), *flags)
    work = folder / "work"
    work.mkdir(exist_ok=True)
    variables = {"NPL_MCP_PORT": "0", **variables}
    with (folder / "stderr.txt").open("wb") as log:
        streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
        env = environment(folder, **variables)
        process = subprocess.Popen(command(*flags), cwd=work, env=env, **streams)
    try:
        yield Running(process, _listening(process, folder), folder)
    finally:
        # An end takes a quarter of a second; only one that ends by itself can say which of its lines ran.
        measured = any(name.startswith("COVERAGE_") for name in os.environ)
        process.send_signal(signal.SIGTERM if measured else signal.SIGKILL)
        process.wait(PATIENCE)


def _listening(process: subprocess.Popen[bytes], folder: Path) -> ServerState:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        state = read_state(folder / "data")
        if state is not None and state.pid == process.pid:
            return state
        time.sleep(0.02)
    raise AssertionError((folder / "stderr.txt").read_text())


def read(line: socket.socket, verb: str = "GET") -> Answer:
    """Read an answer up to the end of the connection, or its length.

    :raises ConnectionError: the connection ended before.
    """
    answer = http.client.HTTPResponse(line, method=verb)
    try:
        answer.begin()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, headers, answer.read())
    except http.client.HTTPException as error:
        raise ConnectionError(repr(error)) from None


# The methods as functions, for other modules.
call, connected, in_flight = Running.call, Running.connected, Running.in_flight
mcp, message, request, session_of = Running.mcp, Running.message, Running.request, Running.session_of
