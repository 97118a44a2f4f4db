"""Shared code of the team benchmarks: servers on one database, and their callers over HTTP.

Each server is ``npl-mcp-server`` with one more tool, ``noop``, which does nothing in a worker thread, where
tools that ask the database run as well: the floor of a call over the same way.

    python -m benchmarks.team [options of npl-mcp-server]
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npl_mcp.app.app import App
from npl_mcp.calls import invoking
from npl_mcp.cli.commands import serving
from npl_mcp.config.server_state import read_state
from npl_mcp.tools.contract.spec import ToolSpec

TICK = os.sysconf("SC_CLK_TCK")


IDLE_SECONDS = 2.0
"""After this a connection is opened again: a server closes those that are idle for longer."""


class Caller:
    """One connection to a server; one that was idle is opened again.

    :param port: of the server.
    """

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._used = time.perf_counter()

    def send(self, tool: str, **arguments: Any) -> None:
        """Send a call."""
        if time.perf_counter() - self._used > IDLE_SECONDS:
            self._connection.close()
        headers = {"Content-Type": "application/json"}
        self._connection.request("POST", f"/mcp/tools/{tool}", json.dumps(arguments), headers)

    def receive(self) -> Any:
        """Return the answer to the last call."""
        answer = json.loads(self._connection.getresponse().read())
        self._used = time.perf_counter()
        if not answer["success"]:
            raise RuntimeError(answer["error"])
        return answer["data"]

    def call(self, tool: str, **arguments: Any) -> Any:
        """Make a call."""
        self.send(tool, **arguments)
        return self.receive()

    def timed(self, tool: str, **arguments: Any) -> float:
        """Make a call and return its milliseconds."""
        began = time.perf_counter()
        self.call(tool, **arguments)
        return (time.perf_counter() - began) * 1000

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@contextmanager
def callers(*ports: int) -> Iterator[list[Caller]]:
    """Open a connection to each of some servers, and close them."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Caller(port))) for port in ports]


@dataclass(frozen=True, slots=True)
class Replica:
    """A server.

    :param port: where it is called.
    :param pid: its process.
    """

    port: int
    pid: int


@contextmanager
def replicas(folder: Path, number: int = 1, *flags: str, **variables: str) -> Iterator[list[Replica]]:
    """Run servers that work in one folder; each has a data folder of its own, as on another machine.

    :param folder: the data folders are ``data0``, ``data1`` and so on in it, the working folder is ``work``.
    :param flags: of ``npl-mcp-server``.
    :param variables: of the environment, such as ``NPL_DATABASE_URL``.
    """
    work = folder / "work"
    work.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NPL_")}
    kept["PYTHONPATH"] = str(Path(__file__).parents[1])
    with ExitStack() as stack:
        started = []
        for one in range(number):
            own = {
                "NPL_MCP_DATA_DIR": str(folder / f"data{one}"),
                "NPL_MCP_PORT": "0",
                "NPL_MCP_NO_TOKEN": "1",
            }
            command = [sys.executable, "-m", "benchmarks.team", "--log-level", "ERROR", *flags]
            process = subprocess.Popen(
                command,
                cwd=work,
                env={**kept, **own, **variables},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            started.append((process, folder / f"data{one}"))
        yield [_listening(*one) for one in started]


def _listening(process: subprocess.Popen[bytes], data: Path) -> Replica:
    while (state := read_state(data)) is None or state.pid != process.pid or state.url is None:
        if process.poll() is not None:
            raise RuntimeError("a server has not started")
        time.sleep(0.02)
    return Replica(int(state.url.rpartition(":")[2]), process.pid)


def cpu(*processes: int) -> float:
    """Return the seconds that processes have computed."""
    return sum(_fields(process)[1] for process in processes) / TICK


def family(parent: int) -> list[int]:
    """Return a process and its children."""
    numbers = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
    return [number for number in numbers if number == parent or _fields(number)[0] == parent]


def machine() -> tuple[float, float]:
    """Return the seconds that all cores were at work, and those that went by for all cores."""
    parts = [int(part) for part in Path("/proc/stat").read_text(encoding="ascii").split("\n")[0].split()[1:9]]
    idle = parts[3] + parts[4]
    return (sum(parts) - idle) / TICK, sum(parts) / TICK


def _fields(process: int) -> tuple[int, int]:
    """Return the parent of a process and its ticks; zeros if it is gone."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0, 0
    fields = text.rpartition(")")[2].split()
    return int(fields[1]), int(fields[11]) + int(fields[12])


def noop(app: App) -> dict[str, str]:  # noqa: ARG001
    """Do nothing."""
    return {}


def _serve(arguments: Sequence[str]) -> int:
    listed = invoking.shown_tools
    invoking.shown_tools = lambda *given: (*listed(*given), ToolSpec(noop))  # type: ignore[assignment]
    return serving.main(arguments)


if __name__ == "__main__":
    sys.exit(_serve(sys.argv[1:]))
