"""Servers in processes of their own, as the benchmarks start and ask them."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from tests.npl_mcp.http.http_server import Running

TICK = os.sysconf("SC_CLK_TCK")


def environment(home: str, **variables: str) -> dict[str, str]:
    """Return the variables of a process that sees no settings of npl on this machine."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("NPL_")}
    return {**others, "HOME": home, **variables}


@asynccontextmanager
async def client_of(
    command: Sequence[str], home: str | None = None, **variables: str
) -> AsyncIterator[Client[Any]]:
    """Start a server of MCP, and connect to it over standard input and output.

    :param home: of the process and its working folder; by default an empty one, which is deleted at the end.
    :param variables: of its environment.
    """
    with TemporaryDirectory(ignore_cleanup_errors=True) as empty:
        place = home or empty
        program, *flags = command
        transport = StdioTransport(
            program,
            flags,
            env=environment(place, **variables),
            cwd=place,
            keep_alive=False,
            log_file=Path(os.devnull),
        )
        async with Client(transport) as client:
            yield client


class Cost(NamedTuple):
    """Milliseconds of a call: elapsed, and of processors."""

    elapsed: float
    processor: float


class PipeServer:
    """A running server of an installation over standard input and output; the caller waits for each answer.

    :param program: ``npl-mcp``.
    """

    def __init__(self, program: Sequence[str], root: Path, data: Path, *flags: str) -> None:
        self._data = data
        command = [*program, "--root", str(root), "--data-dir", str(data), *flags]
        start = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=root,
            env=environment(str(data.parent)),
        )
        about = {"name": "benchmark", "version": "1"}
        self._request("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about)
        self.start = Cost(1000 * (time.perf_counter() - start), processor_ms(self._process.pid))
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _request(self, method: str, **parameters: Any) -> Any:
        assert self._process.stdout is not None
        self._send({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters})
        for line in self._process.stdout:
            answer = json.loads(line)
            if answer.get("id") == 1:
                return answer["result"]
        raise RuntimeError("the server ended")

    def _cost(self, method: str, **parameters: Any) -> Cost:
        before, start = processor_ms(self._process.pid), time.perf_counter()
        result = self._request(method, **parameters)
        elapsed = 1000 * (time.perf_counter() - start)
        assert not result.get("isError"), result
        return Cost(elapsed, processor_ms(self._process.pid) - before)

    def ask(self, question: str, budget: int | None, file: str = ".") -> Cost:
        """Return the cost of a question."""
        room = {} if budget is None else {"token_budget": budget}
        arguments = {"context": question, "file": file, **room}
        return self._cost("tools/call", name="npl_load_tailored", arguments=arguments)

    def ping(self) -> Cost:
        """Return the cost of a request that does nothing."""
        return self._cost("ping")

    def private(self) -> float:
        """Return its private memory in megabytes, with that of its workers."""
        return private_megabytes(self._data)

    def close(self) -> None:
        """End the server."""
        self._process.kill()
        self._process.communicate()


class Caller:
    """A connection to a server over HTTP; one that was idle is opened again."""

    IDLE_SECONDS = 2.0

    def __init__(self, server: Running) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        self._used = time.perf_counter()

    def send(self, tool: str, **arguments: Any) -> None:
        """Send a call."""
        if time.perf_counter() - self._used > self.IDLE_SECONDS:
            self._connection.close()  # the server closes it soon
        headers = {"Content-Type": "application/json"}
        self._connection.request("POST", f"/mcp/tools/{tool}", json.dumps(arguments), headers)

    def receive(self) -> Any:
        """Return the answer to the last call.

        :raises RuntimeError: it is an error.
        """
        answer = json.loads(self._connection.getresponse().read())
        self._used = time.perf_counter()
        if not answer["success"]:
            raise RuntimeError(answer["error"])
        return answer["data"]

    def call(self, tool: str, **arguments: Any) -> Any:
        """Make a call."""
        self.send(tool, **arguments)
        return self.receive()

    def get(self, path: str) -> bytes:
        """Get a page.

        :raises RuntimeError: there is none.
        """
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        body = answer.read()
        self._used = time.perf_counter()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status}")
        return body

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@contextmanager
def callers(*servers: Running) -> Iterator[list[Caller]]:
    """Open a connection to each server, and close them."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Caller(server))) for server in servers]


def processor_ms(pid: int) -> float:
    """Return the milliseconds of processors of a process and of the children for which it waited."""
    with suppress(OSError):
        ticks = map(int, _fields(pid)[13:15])
        return 1000 * (sum(ticks) / TICK + time.clock_gettime(~pid << 3 | 2))  # Linux's clock of a process
    return 0.0


def family(parent: int) -> list[int]:
    """Return a process and its children."""
    numbers = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
    found = [parent]
    for number in numbers:
        with suppress(OSError):
            if int(_fields(number)[1]) == parent:
                found.append(number)
    return found


def private_megabytes(folder: Path) -> float:
    """Return the private memory of the servers of a data folder, and of all processes below them."""
    parents, found = {}, set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            number = int(process.name)
            parents[number] = int(_fields(number)[1])
            if number != os.getpid() and str(folder).encode() in (process / "cmdline").read_bytes():
                found.add(number)
    while more := {number for number, parent in parents.items() if parent in found} - found:
        found |= more
    return sum(_memory(process, "Private_Dirty") for process in found) / 1024


def shared_megabytes(pid: int) -> float:
    """Return the memory of a process with its part of shared pages."""
    return _memory(pid, "Pss:") / 1024


def busy() -> tuple[float, float]:
    """Return the seconds in which cores worked, and those of all cores."""
    parts = [int(part) for part in Path("/proc/stat").read_text(encoding="ascii").split("\n")[0].split()[1:9]]
    return (sum(parts) - parts[3] - parts[4]) / TICK, sum(parts) / TICK


def _fields(pid: int) -> list[str]:
    """Return the fields of ``/proc/PID/stat`` behind the name: state, parent and so on."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()


def _memory(pid: int, field: str) -> int:
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(field))
    return 0  # it has ended
