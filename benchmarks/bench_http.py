"""The HTTP server: a warm call compared with a route that does nothing, many clients, and the first answer.

Fair: one run calls both routes of one server in turn over one persistent connection. Processor time is the
server's alone, as the system reports it. The clients are threads on the same machine and use its processors,
so calls per second are a lower bound.

    python benchmarks/bench_http.py [calls] [seconds] [clients]
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import CONTEXTS, percentile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from npl_mcp.cli.commands import serving
from npl_mcp.config.server_state import ServerState, read_state
from npl_mcp.http import listening
from npl_mcp.http.app import create_app

VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def serve(folder: str) -> None:
    """Run the server with one more route that does nothing."""

    async def noop(_: Request) -> Response:
        return JSONResponse({})

    def with_noop(*given: Any) -> Any:
        app = create_app(*given)
        app._app.router.routes.append(Route("/noop", noop, methods=["POST"]))  # type: ignore[attr-defined]
        return app

    listening.create_app = with_noop
    serving.main(["--data-dir", folder, "--port", "0", "--no-token", "--log-level", "ERROR"])


@contextmanager
def server() -> Iterator[ServerState]:
    """Start that server, and end it."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen([sys.executable, __file__, "--serve", folder], cwd=folder)
        try:
            while (state := read_state(Path(folder))) is None:
                assert process.poll() is None, "the server has not started"
                time.sleep(0.02)
            yield state
        finally:
            process.terminate()
            process.wait()


def post(path: str, body: object, name: str = "") -> bytes:
    """Write a request."""
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost:PORT\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {VERSION}\r\n"
        f"Mcp-Method: tools/call\r\nMcp-Name: {name}\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def mcp(tool: str, **arguments: object) -> bytes:
    """Write a call of the newer protocol; all have the same id."""
    params = {"name": tool, "arguments": arguments, "_meta": META}
    return post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, tool)


class Line:
    """A kept connection."""

    def __init__(self, state: ServerState) -> None:
        self.port = int((state.url or "").rpartition(":")[2])
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: bytes) -> bytes:
        """Send a request and read its answer."""
        self.socket.sendall(request.replace(b"PORT", str(self.port).encode(), 1))
        data = self.socket.recv(65536)
        while b"\r\n\r\n" not in data:
            data += self.socket.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), data
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += self.socket.recv(65536)
        return body


def processor_ms(pid: int) -> float:
    """Return the processor time a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / TICK


def memory_mib(pid: int) -> float:
    """Return the memory a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * PAGE / 2**20


def one_caller(state: ServerState, calls: int) -> None:
    """Print what single calls cost."""
    line = Line(state)
    index: dict[str, Any] = {"item": "syntax", "resource_type": "component", "depth": 0}
    ways: dict[str, Callable[[int], bytes]] = {
        "no-op route": lambda _: post("/noop", {}),
        "npl_section_index, MCP": lambda _: mcp("npl_section_index", **index),
        "npl_section_index, plain": lambda _: post("/mcp/tools/npl_section_index", index),
        "npl_load_tailored, MCP": lambda n: mcp(
            "npl_load_tailored", context=f"{CONTEXTS[n % 8]} {n}", token_budget=500
        ),
    }
    for way in ways.values():
        for number in range(50):
            line.ask(way(number))
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(calls):
        for name, way in ways.items():
            request = way(number)
            start = time.perf_counter()
            line.ask(request)
            times[name].append(1000 * (time.perf_counter() - start))
    floor = statistics.median(times["no-op route"])
    for name, way in ways.items():
        before = processor_ms(state.pid)
        for number in range(calls):
            line.ask(way(number))
        cost = (processor_ms(state.pid) - before) / calls
        middle = statistics.median(times[name])
        print(
            f"{name}: p50 {middle:.2f} ms, p95 {percentile(times[name], 0.95):.2f} ms, "
            f"{middle - floor:+.2f} ms to the no-op route; server's processor {cost:.2f} ms"
        )


def many_callers(state: ServerState, seconds: float, clients: int) -> None:
    """Print the calls per second of many clients, and whether each client got its own answers."""
    end = time.monotonic() + seconds
    counts = [0] * clients
    problems: list[str] = []

    def work(client: int) -> None:
        line = Line(state)
        number = 0
        while time.monotonic() < end:
            number += 1
            mark = f"{client}-{number}"
            requests = (
                (mcp("npl_section_index", file=f"none-{mark}.md"), mark),
                (mcp("npl_load_tailored", context=f"{CONTEXTS[number % 8]} {mark}", token_budget=500), ""),
                (mcp("npl_section_index", item="syntax", resource_type="component", depth=0), ""),
                (mcp("session_list", limit=5), ""),
                (mcp("npl_load_components", items="syntax"), ""),
                (mcp("session_create", title=f"bench {mark}") if number % 10 == 0 else None, ""),
            )
            for request, expected in requests:
                if request is None:
                    continue
                body = line.ask(request)
                counts[client] += 1
                wrong = expected and f"'none-{expected}.md'".encode() not in body
                if wrong or (not expected and b'\\"success\\":true' not in body):
                    problems.append(body[:300].decode())

    threads = [threading.Thread(target=work, args=(client,)) for client in range(clients)]
    before, start = processor_ms(state.pid), time.monotonic()
    for thread in threads:
        thread.start()
    memory = []
    while any(thread.is_alive() for thread in threads):
        time.sleep(seconds / 20)
        memory.append(memory_mib(state.pid))
    spent, calls = time.monotonic() - start, sum(counts)
    print(
        f"{clients} clients, {spent:.0f} s: {calls / spent:.0f} calls/s, {len(problems)} wrong or failed, "
        f"server's processor {(processor_ms(state.pid) - before) / calls:.2f} ms per call, memory "
        f"{memory[len(memory) // 4]:.0f} MiB after a quarter, {memory[-1]:.0f} MiB at the end, "
        f"fewest calls of a client {min(counts)}, most {max(counts)}"
    )
    for problem in problems[:3]:
        print(problem)


BARE = """
from fastmcp import FastMCP
server = FastMCP("bare")
@server.tool
def noop() -> str: return ""
server.run(transport="stdio", show_banner=False)
"""


def first_answer(rounds: int) -> None:
    """Print the time from spawn to the first answer, compared with a FastMCP server without our code."""
    ours = ([sys.executable, "-m", "npl_mcp"], "npl_section_index", {"depth": 0})
    bare = ([sys.executable, "-c", BARE], "noop", {})
    times: dict[str, list[float]] = {"npl-mcp": [], "bare FastMCP": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for name, (command, tool, arguments) in (("npl-mcp", ours), ("bare FastMCP", bare)):
                params = {"name": tool, "arguments": arguments, "_meta": META}
                message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
                start = time.perf_counter()
                with subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    cwd=folder,
                ) as process:
                    assert process.stdin is not None
                    assert process.stdout is not None
                    process.stdin.write(json.dumps(message).encode() + b"\n")
                    process.stdin.flush()
                    answer = process.stdout.readline()
                    times[name].append(1000 * (time.perf_counter() - start))
                    assert b'"result"' in answer, answer
                    process.stdin.close()
    floor = statistics.median(times["bare FastMCP"])
    for name, values in times.items():
        middle = statistics.median(values)
        print(f"stdio, spawn to first answer, {name}: {middle:.0f} ms, {middle / floor:.2f} times bare")


def main() -> None:
    given = sys.argv[1:]
    if given[:1] == ["--serve"]:
        serve(given[1])
        return
    calls, seconds, clients = (int(one) for one in (given + ["500", "10", "64"][len(given) :]))
    with server() as state:
        one_caller(state, calls)
        many_callers(state, seconds, clients)
    first_answer(max(3, calls // 100))


if __name__ == "__main__":
    main()
