"""Servers that share a PostgreSQL database, as on machines of their own, and a load balancer's turns."""

import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from tests.npl_mcp.http.http_server import Answer, Running, call, serving

REPLICAS = 3


@contextmanager
def replica(folder: Path, address: str, number: int, *flags: str, **variables: str) -> Iterator[Running]:
    """Run one server; its home and data folder are below ``folder/replicaNUMBER``.

    All have one working directory, ``folder/work``: its path says which project a worklog is of.

    :param address: of the database.
    :param flags: of ``npl-mcp-server``.
    :param variables: of its environment.
    """
    place = folder / f"replica{number}"
    place.mkdir(parents=True, exist_ok=True)
    (folder / "work").mkdir(exist_ok=True)
    with suppress(FileExistsError):
        (place / "work").symlink_to(folder / "work")
    with serving(place, *flags, NPL_DATABASE_URL=address, **variables) as running:
        yield running


@contextmanager
def replicas(
    folder: Path, address: str, *flags: str, number: int = REPLICAS, **variables: str
) -> Iterator[list[Running]]:
    """Run several servers, started at one moment and always ended; see :func:`replica`."""
    with ExitStack() as stack, ThreadPoolExecutor(number) as pool:

        def start(number: int) -> Running:
            return stack.enter_context(replica(folder, address, number, *flags, **variables))

        yield list(pool.map(start, range(number)))


def kill(server: Running) -> None:
    """Kill a server, and wait until it is gone."""
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()


class Balancer:
    """A balancer that gives each call to the next server, and skips those that refuse connections.

    :param servers: they may change meanwhile.
    :param headers: of each call, such as ``Authorization``.
    """

    def __init__(self, servers: Sequence[Running], **headers: str) -> None:
        self.servers, self._headers = servers, headers
        self._turns = count()

    def answer(self, tool: str, /, **arguments: Any) -> Answer:
        for _ in self.servers:
            server = self.servers[next(self._turns) % len(self.servers)]
            try:
                return call(server, tool, arguments, **self._headers)
            except ConnectionRefusedError:
                continue
        raise ConnectionRefusedError("no server is left")

    def do(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool on the next server, and return the data of its answer."""
        answer = self.answer(tool, **arguments)
        assert answer.status == 200, answer.data
        return answer.data["data"]
