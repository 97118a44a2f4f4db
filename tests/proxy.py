"""A network between programs and a PostgreSQL server that can be paused, broken and slow."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path

from tests.postgres_server import NOBODY

_CHUNK = 1 << 16


class Fault(Enum):
    """A fault of a connection at a chosen moment."""

    BREAK = "break"
    PAUSE = "pause"


class Network:
    """Carries bytes between a port of this machine and a server's socket; used by ``with network(...)``.

    :param socket_of: the server's Unix socket.
    """

    def __init__(self, socket_of: Path) -> None:
        self._server = str(socket_of)
        self._changed = threading.Condition()
        self._paused = self._closed = False
        self._passed = 0
        self._plan: tuple[int, bool, Fault] | None = None
        self._lines: dict[socket.socket, socket.socket] = {}
        self._listening = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def address(self, database: str) -> str:
        """Return the address of a database as one behind this network reaches it."""
        port = self._listening.getsockname()[1]
        return f"postgresql://{NOBODY}@127.0.0.1:{port}/{database}?sslmode=disable&gssencmode=disable"

    def pause(self) -> None:
        """Let no byte move, without any sign of it."""
        with self._changed:
            self._paused = True

    def resume(self) -> None:
        """Let bytes move again: those that wait, too."""
        with self._changed:
            self._paused = False
            self._changed.notify_all()

    def sever(self) -> None:
        """Break all connections."""
        with self._changed:
            lines = list(self._lines.items())
        for line in lines:
            _end(*line)

    def plan(self, requests: int, fault: Fault, *, done: bool) -> None:
        """Let a fault happen after some requests.

        :param requests: number of passing requests; the next is lost.
        :param done: whether the answer is lost instead of the request.
        """
        with self._changed:
            self._passed = 0
            self._plan = (requests, done, fault)

    @property
    def passed(self) -> int:
        """The number of requests since a fault was planned."""
        return self._passed

    @property
    def has_happened(self) -> bool:
        """Whether the planned fault has happened."""
        return self._plan is None

    def close(self) -> None:
        """Break everything and take no more connections."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        # Closing alone would not end the call that waits for connections.
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.sever()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wait_until_it_moves()
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self._server)
        except OSError:
            _end(client, server)
            client.close()
            server.close()
            return
        with self._changed:
            self._lines[client] = server
        back = threading.Thread(target=self._carry_answers, args=(server, client), daemon=True)
        back.start()
        self._carry_requests(client, server)
        back.join()
        with self._changed:
            del self._lines[client]
        client.close()
        server.close()

    def _carry_requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(_CHUNK):
                with self._changed:
                    self._passed += 1
                    self._happen(client, server, done=False)
                self._wait_until_it_moves()
                server.sendall(data)
        _end(client, server)

    def _carry_answers(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(_CHUNK):
                with self._changed:
                    self._happen(client, server, done=True)
                self._wait_until_it_moves()
                client.sendall(data)
        _end(client, server)

    def _happen(self, client: socket.socket, server: socket.socket, *, done: bool) -> None:
        """Let the planned fault happen, if this is the moment."""
        if self._plan is None or self._plan[1] is not done or self._passed <= self._plan[0]:
            return
        fault, self._plan = self._plan[2], None
        if fault is Fault.BREAK:
            _end(client, server)
        else:
            self._paused = True

    def _wait_until_it_moves(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._paused or self._closed)


def _end(*sockets: socket.socket) -> None:
    for end in sockets:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def network(address: str) -> Iterator[Network]:
    """Put a network before the server of an address, as :mod:`tests.engines` gives them."""
    folder = Path(address.rpartition("host=")[2])
    made = Network(folder / ".s.PGSQL.5432")
    try:
        yield made
    finally:
        made.close()
