"""A client of a server over standard streams."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Any

from tests.messages import READY, asking, hello
from tests.npl_mcp.http.http_server import environment


class Speaker:
    """Sends messages to a process and reads its answers, each on a line.

    :param process: the server.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.stdin: IO[bytes] = process.stdin
        self.stdout: IO[bytes] = process.stdout
        self._numbers = count(1_000)

    def send(self, *messages: object) -> None:
        """Send objects as JSON, and bytes as they are."""
        lines = (part if isinstance(part, bytes) else json.dumps(part).encode() for part in messages)
        self.stdin.write(b"".join(line + b"\n" for line in lines))
        self.stdin.flush()

    def receive(self) -> Any:
        return json.loads(self.stdout.readline())

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request, and return its answer, which must come next."""
        number = next(self._numbers)
        self.send(asking(number, method, **params))
        answer = self.receive()
        assert answer["id"] == number, answer
        return answer

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool; return the result."""
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]

    def shake_hands(self, version: str = "2025-06-18") -> None:
        self.send(hello(version))
        answer = self.receive()
        assert (answer["id"], answer["result"]["protocolVersion"]) == (0, version)
        self.send(READY)

    def end(self) -> int:
        """End the input; return the exit code."""
        self.stdin.close()
        return self.process.wait(60)


@contextmanager
def started(folder: Path, *flags: str, cwd: str = "work", **variables: str) -> Iterator[Speaker]:
    """Run a server; its messages for people are in ``stderr.txt`` of the folder.

    :param cwd: its working directory, below the folder.
    """
    (folder / cwd).mkdir(exist_ok=True)
    with (
        (folder / "stderr.txt").open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "npl_mcp", *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment(folder, **variables),
            cwd=folder / cwd,
        ) as process,
    ):
        try:
            yield Speaker(process)
        finally:
            process.kill()


@contextmanager
def spoken_to(folder: Path, *flags: str, cwd: str = "work", **variables: str) -> Iterator[Speaker]:
    """Run a server that has shaken hands; see :func:`started`."""
    with started(folder, *flags, cwd=cwd, **variables) as speaker:
        speaker.shake_hands()
        yield speaker
