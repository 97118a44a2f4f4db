"""A pooler of connections to a PostgreSQL server, as PgBouncer is one in transaction mode, at its worst.

Each client has connections to the server in turn: no transaction runs on the one that the one before ran on.
"""

import select
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.postgres_server import NOBODY

_TURNS = 2
_CHUNK = 1 << 16
_GREETING = b"K"
_READY, _IN_NONE = b"Z", b"I"
_ANSWERED = (b"Q", b"S")
"""Requests whose answer ends with the server's readiness: a query, and the end of a batch."""


class Pooler:
    """Takes clients at a Unix socket in a folder of its own; used by ``with pooler(...)``.

    :param folder: of its socket.
    :param server: the server's Unix socket.
    """

    def __init__(self, folder: Path, server: Path) -> None:
        self._folder, self._server = folder, server
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / server.name))
        self._listening.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def address(self, database: str) -> str:
        """Return the address of a database as a client of the pooler reaches it."""
        return f"postgresql://{NOBODY}@/{database}?host={self._folder}"

    def close(self) -> None:
        """Take no more clients; those that are there end by themselves."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with ExitStack() as opened, suppress(OSError):
            opened.enter_context(client)
            head = _exactly(client, 4)
            start = head + _exactly(client, int.from_bytes(head, "big") - 4)
            servers = [opened.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(_TURNS)]
            for server in servers:
                server.connect(str(self._server))
                server.sendall(start)
                greeting = _greeting(server)
            client.sendall(greeting)
            _carry(client, servers)


def _carry(client: socket.socket, servers: list[socket.socket]) -> None:
    """Carry messages until either side ends, to the next connection after each transaction."""
    requests, answers = _Messages(), _Messages()
    expected = 0
    while True:
        server = servers[0]
        readable, _, _ = select.select([client, server], [], [])
        if client in readable:
            data = client.recv(_CHUNK)
            expected += sum(kind in _ANSWERED for kind, _ in requests.read(data))
            server.sendall(data)
        if server in readable:
            data = server.recv(_CHUNK)
            client.sendall(data)
            for kind, body in answers.read(data):
                if kind == _READY:
                    expected -= 1
                    if expected == 0 and body == _IN_NONE:
                        servers.append(servers.pop(0))


class _Messages:
    """A divider of a stream into messages: a letter, the length of the rest, the rest."""

    def __init__(self) -> None:
        self._left = b""

    def read(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Return the messages that are complete with some more bytes.

        :raises OSError: there are none: the stream has ended.
        """
        if not data:
            raise ConnectionResetError
        self._left += data
        while len(self._left) > 4 and len(self._left) > (size := int.from_bytes(self._left[1:5], "big")):
            yield self._left[:1], self._left[5 : size + 1]
            self._left = self._left[size + 1 :]


def _greeting(server: socket.socket) -> bytes:
    """Return all that the server says until it is ready, in the name of another."""
    said = b""
    while True:
        kind, size = _exactly(server, 1), _exactly(server, 4)
        body = _exactly(server, int.from_bytes(size, "big") - 4)
        if kind == _GREETING:
            body = bytes(len(body))
        said += kind + size + body
        if kind == _READY:
            return said


def _exactly(stream: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = stream.recv(size - len(data))
        if not more:
            raise ConnectionResetError
        data += more
    return data


@contextmanager
def pooler(address: str) -> Iterator[Pooler]:
    """Put a pooler before the server of an address, as :mod:`tests.engines` gives them."""
    with tempfile.TemporaryDirectory(prefix="npl-pool-") as folder:
        made = Pooler(Path(folder), Path(address.rpartition("host=")[2]) / ".s.PGSQL.5432")
        try:
            yield made
        finally:
            made.close()
