"""A session of ``npl-mcp --shared``: standard input and output, passed to the server of all sessions.

If that server dies, the next one gets the handshake and the requests without an answer. A process with a pipe
imports the standard library alone.
"""

import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

from npl_mcp.config import sessions
from npl_mcp.config.programs import SERVER, python
from npl_mcp.config.user_folders import data_folder, user_settings

LAST_SECONDS = 60.0
"""Seconds after the end of the input for which a server answers what is in flight."""

CONNECTION_CLOSED = -32000
_LOST = (
    "the server ended before it answered; the call may have been done in part or whole: check, then try again"
)

_ON = ("1", "true", "yes", "on")
_WHOLE = ("-h", "--help", "--version")
_MAX_LINE = 16 << 20
"""Bytes of a message above which it is passed in parts, and not sent again."""


def shared_folder(words: Sequence[str]) -> str | None:
    """Return the data folder whose server serves this session; ``None`` for any other use of the program.

    :param words: command line without the program's name.
    """
    pairs = [*zip(["", *words], words, strict=False)]  # each with the word before it
    is_command = any(word[:1] != "-" and before[:2] != "--" for before, word in pairs)
    if is_command or not sessions.POSSIBLE or not set(words).isdisjoint(_WHOLE):
        return None
    switch = os.environ.get("NPL_SHARED") or str(user_settings().get("shared", ""))
    if "--shared" not in words and switch.lower() not in _ON:
        return None
    if sys.stdin is None or sys.stdin.isatty():  # a person reads how to connect a client
        return None
    folder = None
    for before, word in pairs:
        name, equals, value = word.partition("=")
        folder = value if name == "--data-dir" and equals else word if before == "--data-dir" else folder
    return data_folder(folder)


def run(folder: str, words: Sequence[str]) -> int | None:
    """Pass the messages of a session until its input ends; return the exit code.

    :returns: ``None`` if the session needs a process of its own, and nothing of its input was read.
    """
    pipe = Pipe(folder, words)
    return pipe.run() if pipe.open_shared() else None


class Pipe:
    """A session and its connection to a server.

    :param folder: the data folder.
    :param words: command line of the session.
    """

    def __init__(self, folder: str, words: Sequence[str]) -> None:
        self._folder, self._words = folder, [*words]
        self._connection: socket.socket | None = None
        self._source: BinaryIO | None = None
        self._pending: dict[int | str, bytes] = {}  # requests without an answer, in their order
        self._handshake: list[bytes] = []
        self._repeatable: frozenset[str] = frozenset()
        self._unwanted: object = None  # the id of a repeated handshake
        self._sending = threading.Lock()  # also held while the connection changes
        self._until = float("inf")
        self._framed = False
        self._ended = threading.Event()

    def open_shared(self) -> bool:
        """Connect to the server of all sessions; return whether it takes this session."""
        try:
            for _ in range(2):
                connection = sessions.connect(self._folder) or sessions.start(self._folder, self._words)
                if connection is None:
                    continue
                source = connection.makefile("rb")
                try:
                    connection.settimeout(sessions.START_SECONDS)
                    connection.sendall(sessions.declaration(self._words))
                    answer = json.loads(source.readline(sessions.GREETING_BYTES) or b"null")
                except (ConnectionError, ValueError):
                    answer = None
                connection.settimeout(None)
                if answer is not None and "refused" not in answer:
                    self._connection, self._source = connection, source
                    self._repeatable = frozenset(answer["repeatable"])
                    return True
                source.close()
                connection.close()
                if answer is not None:
                    return False
        except OSError:
            pass
        return False

    def _open_own(self) -> None:
        """Start a server for this session alone."""
        import subprocess

        self._connection, other = socket.socketpair()
        self._source = self._connection.makefile("rb")
        words = [word for word in self._words if word != "--shared"]
        with other:
            environment = {**os.environ, "NPL_SHARED": "0"}
            subprocess.Popen(
                [*python(SERVER), *words], stdin=other.fileno(), stdout=other.fileno(), env=environment
            )

    def run(self) -> int:
        """Pass messages until both sides have ended."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        source: Any = sys.stdin.buffer
        self._framed = source.peek(1)[:1] == b"C"
        self._start_receiving()
        for message, body in _messages(source, framed=self._framed):
            self._send(message, body)
        with self._sending:
            self._until = time.monotonic() + LAST_SECONDS
            self._end_writing()
            if self._connection is None:
                self._ended.set()
        self._ended.wait()
        return 0

    def _send(self, message: bytes, body: bytes) -> None:
        value = _parsed(body)
        with self._sending:
            # The next server would know nothing of what a notification is about.
            if self._connection is None and (value is None or "id" in value):
                self._reopen()
            self._note(message, value)
            if self._connection is not None:
                self._write(message)

    def _write(self, message: bytes) -> None:
        assert self._connection is not None
        with suppress(OSError):  # the thread that receives sees the end
            self._connection.sendall(message)

    def _note(self, message: bytes, value: dict[str, Any] | None) -> None:
        """Remember what a next server needs."""
        method = value and value.get("method")
        if value is None or not isinstance(method, str):
            return
        if method == "initialize":
            self._handshake = [message]
        elif method == "notifications/initialized":
            self._handshake[1:] = [message]
        elif method == "notifications/cancelled" and isinstance(value.get("params"), dict):
            self._pending.pop(value["params"].get("requestId"), None)
        if isinstance(number := value.get("id"), (int, str)):
            self._pending[number] = message

    def _start_receiving(self) -> None:
        threading.Thread(target=self._receive, args=(self._source,), daemon=True).start()

    def _receive(self, source: BinaryIO) -> None:
        """Pass the answers of a server; at its end, open the next one if answers are missing."""
        try:
            for message, body in _messages(source, framed=self._framed):
                value = _parsed(body)
                if value is None:
                    break  # the server died in the middle
                number = value.get("id")
                if "method" not in value and isinstance(number, (int, str)):
                    self._pending.pop(number, None)
                    if number == self._unwanted:
                        self._unwanted = None
                        continue
                self._answer(message)
        except OSError:
            pass
        with self._sending:
            source.close()
            assert self._connection is not None
            self._connection.close()
            self._connection = None
            if self._pending and time.monotonic() < self._until - 1:
                self._reopen()
                self._end_writing()
            elif self._until < float("inf"):
                self._ended.set()

    def _end_writing(self) -> None:
        if self._connection is not None and self._until < float("inf"):
            self._connection.shutdown(socket.SHUT_WR)

    def _reopen(self) -> None:
        """Open the next server, and send it what it needs."""
        if not self.open_shared():
            self._open_own()
        again = []
        for number, message in [*self._pending.items()]:
            if self._may_repeat(message):
                again.append(message)
            else:
                del self._pending[number]
                error = {"code": CONNECTION_CLOSED, "message": _LOST}
                self._answer(self._as_message({"jsonrpc": "2.0", "id": number, "error": error}))
        if self._handshake and self._handshake[0] not in again:
            value = _parsed(_body(self._handshake[0]))
            self._unwanted = value and value["id"]
            again[:0] = self._handshake
        self._start_receiving()
        for message in again:
            self._write(message)

    def _may_repeat(self, message: bytes) -> bool:
        """Return whether a request may be sent again: it only reads, or its answer is stored."""
        value = _parsed(_body(message)) or {}
        method, given = value["method"], value.get("params")
        given = given if isinstance(given, dict) else {}
        if method != "tools/call" and "." not in method:
            return True
        name, arguments = given.get("name"), given.get("arguments")
        if method != "tools/call":
            name, arguments = method, given
        return name in self._repeatable or (isinstance(arguments, dict) and "request_id" in arguments)

    def _as_message(self, value: object) -> bytes:
        body = json.dumps(value).encode()
        return b"Content-Length: %d\r\n\r\n" % len(body) + body if self._framed else body + b"\n"

    def _answer(self, message: bytes) -> None:
        try:
            sys.stdout.buffer.write(message)
            sys.stdout.buffer.flush()
        except ConnectionError:  # the client is gone
            os._exit(0)


def _messages(source: BinaryIO, *, framed: bool) -> Iterator[tuple[bytes, bytes]]:
    """Yield each message as it was sent, and its body; of a message above the limit, its parts."""
    while line := source.readline(_MAX_LINE):
        if not framed:
            yield line, line
            continue
        head, length = line, 0
        while line.strip():
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length" and value.strip().isdigit():
                length = int(value)
            head += (line := source.readline(_MAX_LINE))
        body = source.read(min(length, _MAX_LINE))
        yield head + body, body
        while (length := length - len(body)) and (body := source.read(min(length, _MAX_LINE))):
            yield body, body


def _body(message: bytes) -> bytes:
    return message.partition(b"\r\n\r\n")[2] if message.startswith(b"C") else message


def _parsed(body: bytes) -> dict[str, Any] | None:
    """Return a message; ``None`` for what is none, which the server answers."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
