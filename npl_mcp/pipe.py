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
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO

from npl_mcp.config import sessions
from npl_mcp.config.programs import SERVER, python
from npl_mcp.config.user_folders import data_folder, user_settings

LAST_SECONDS = 60.0
"""Seconds after the end of the input for which a server answers what is in flight."""

CONNECTION_CLOSED = -32000
_LOST = "the server ended before it answered, and may have done the call in part or whole: check, then retry"

_ON = ("1", "true", "yes", "on")
_WHOLE = ("-h", "--help", "--version")
_MAX_LINE = 16 << 20
"""Bytes of a client's message above which it is passed in parts, and not sent again."""


def run(words: Sequence[str]) -> int | None:
    """Pass the messages of a session until its input ends; return the exit code.

    :param words: command line without the program's name.
    :returns: ``None`` if the whole program must run, and nothing of the input was read.
    """
    folder = shared_folder(words)
    met = None if folder is None else _meet(folder, words)
    return None if folder is None or met is None else Pipe(folder, words, met).run(met.source)


def shared_folder(words: Sequence[str]) -> str | None:
    """Return the data folder whose server serves this session; ``None`` for any other use of the program."""
    pairs = [*zip(["", *words], words, strict=False)]  # each with the word before it
    is_command = any(word[:1] != "-" and before[:2] != "--" for before, word in pairs)
    if is_command or not set(words).isdisjoint(_WHOLE):
        return None
    switch = os.environ.get("NPL_SHARED") or str(user_settings().get("shared", ""))
    # A person at a terminal reads how to connect a client.
    if ("--shared" not in words and switch.lower() not in _ON) or sys.stdin is None or sys.stdin.isatty():
        return None
    flag = "--data-dir="
    folders = [word.removeprefix(flag) for before, word in pairs if flag in (f"{before}=", word[: len(flag)])]
    return data_folder(folders[-1] if folders else None)


def _meet(folder: str, words: Sequence[str]) -> sessions.Meeting | None:
    """Return a connection to the server, which may start now; ``None`` if it does not take this session."""
    with suppress(OSError):
        met = None if sessions.problem(folder) else sessions.start(folder, words)
        if met is not None and met.answer["accepted"]:
            return met
    return None


def _alone(words: Sequence[str]) -> sessions.Meeting:
    """Start a server of one session, and return a connection to it."""
    import subprocess  # most sessions need none

    connection, other = socket.socketpair()
    words = [word for word in words if word != "--shared"]
    environment = {**os.environ, "NPL_SHARED": "0"}
    with other:
        own = other.fileno()
        subprocess.Popen([*python(SERVER), *words], stdin=own, stdout=own, env=environment)
    return sessions.Meeting(connection, connection.makefile("rb"), {})


class Pipe:
    """A session and its connection to a server.

    :param folder: the data folder.
    :param words: command line of the session.
    :param met: its first connection.
    """

    def __init__(self, folder: str, words: Sequence[str], met: sessions.Meeting) -> None:
        self._folder, self._words, self._repeatable = folder, words, frozenset(met.answer["repeatable"])
        self._connection: socket.socket | None = met.connection
        self._sending = threading.Lock()  # also held while the connection changes
        self._pending: dict[int | str, bytes] = {}  # requests without an answer, in their order
        self._handshake: dict[str, bytes] = {}
        self._unwanted: object = None  # the id of a repeated handshake
        self._until = float("inf")
        self._ended = threading.Event()
        # Clients that write headers need no handshake, and their messages are not sent again.
        self._opaque = False

    def run(self, answers: BinaryIO) -> int:
        """Pass messages until both sides have ended.

        :param answers: answers of the first connection.
        """
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        source: Any = sys.stdin.buffer
        self._opaque = source.peek(1)[:1] == b"C"
        threading.Thread(target=self._receive, args=(answers,), daemon=True).start()
        for message in self._messages(source, _MAX_LINE):
            value = self._parsed(message)
            with self._sending:
                # The next server would know nothing of what a notification is about.
                if self._connection is None and (value is None or "id" in value):
                    self._reopen()
                self._note(message, value or {})
                self._write(message)
        with self._sending:
            self._until = time.monotonic() + LAST_SECONDS
            self._write(b"")
            if self._connection is None:
                return 0
        self._ended.wait(LAST_SECONDS)
        return 0

    def _messages(self, source: Any, most: int = -1) -> Any:
        return iter(partial(source.read1 if self._opaque else source.readline, most), b"")

    def _parsed(self, message: bytes) -> dict[str, Any] | None:
        """Return a message; ``None`` for what is none, which the server answers."""
        with suppress(ValueError, RecursionError):
            value = None if self._opaque else json.loads(message)
            return value if isinstance(value, dict) else None
        return None

    def _write(self, message: bytes) -> None:
        if self._connection is not None:
            with suppress(OSError):  # the thread that receives sees the end
                self._connection.sendall(message)
                if self._until < float("inf"):
                    self._connection.shutdown(socket.SHUT_WR)

    def _note(self, message: bytes, value: dict[str, Any]) -> None:
        """Remember what a next server needs."""
        method, number = value.get("method"), value.get("id")
        if method in ("initialize", "notifications/initialized"):
            self._handshake[method] = message
        if method == "notifications/cancelled":
            number = _part(value, "params").get("requestId")
        if method and isinstance(number, (int, str)):
            self._pending.pop(number, None)
            if "id" in value:
                self._pending[number] = message

    def _receive(self, source: BinaryIO) -> None:
        """Pass the answers of a server; at its end, open the next one if answers are missing."""
        with suppress(OSError):
            for message in self._messages(source):
                value = self._parsed(message)
                if value is None and not self._opaque:
                    break  # the server died in the middle
                if value is not None and "method" not in value and value.get("id") is not None:
                    self._pending.pop(value["id"], None)
                    if value["id"] == self._unwanted:
                        self._unwanted = None
                        continue
                self._answer(message)
        with self._sending:
            source.close()
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            if self._pending and time.monotonic() < self._until - 1:
                self._reopen()
            elif self._until < float("inf"):
                self._ended.set()

    def _reopen(self) -> None:
        """Open the next server, one of this session alone if need be, and send it what it needs."""
        met = _meet(self._folder, self._words) or _alone(self._words)
        self._connection = met.connection
        threading.Thread(target=self._receive, args=(met.source,), daemon=True).start()
        lost = [number for number, message in self._pending.items() if not self._may_repeat(message)]
        for number in lost:
            del self._pending[number]
            error = {"code": CONNECTION_CLOSED, "message": _LOST}
            self._answer(json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode() + b"\n")
        again = [*self._pending.values()]
        if self._handshake and self._handshake.get("initialize") not in again:
            self._unwanted = (self._parsed(self._handshake.get("initialize", b"")) or {}).get("id")
            again[:0] = self._handshake.values()
        self._write(b"".join(again))

    def _may_repeat(self, message: bytes) -> bool:
        """Return whether a request may be sent again: it only reads, or its answer is stored."""
        value = self._parsed(message) or {}
        method, given = str(value.get("method")), _part(value, "params")
        if method == "tools/call":
            return str(given.get("name")) in self._repeatable or "request_id" in _part(given, "arguments")
        return "." not in method or method in self._repeatable  # methods of tools have points

    def _answer(self, message: bytes) -> None:
        try:
            sys.stdout.buffer.write(message)
            sys.stdout.buffer.flush()
        except ConnectionError:  # the client is gone
            os._exit(0)


def _part(value: dict[str, Any], name: str) -> dict[str, Any]:
    part = value.get(name)
    return part if isinstance(part, dict) else {}
