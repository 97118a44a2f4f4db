"""Programs that are started, awaited and reliably ended."""

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_SECONDS = 30.0
STOP_SECONDS = 5.0

_running: set[subprocess.Popen[str]] = set()
_ending = threading.Event()


class CheckError(Exception):
    """A failed check, described in one line."""


@dataclass(frozen=True, slots=True)
class Done:
    """A program that has ended.

    :param code: its exit code.
    :param out: its standard output.
    :param err: its standard error.
    """

    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """Return the beginning and the end of its output, and the lines that name an error."""
        lines = [line.strip()[:200] for line in (self.err.strip() or self.out.strip()).splitlines()]
        errors = (line for line in lines if "Error: " in line)
        return " … ".join(dict.fromkeys((*lines[:2], *errors, *lines[-1:]))) or "it wrote nothing"


def run(command: Sequence[object], env: Mapping[str, str], folder: Path, seconds: float = 120.0) -> Done:
    """Run a program and end all it has started.

    :raises CheckError: it takes too long.
    """
    with _started(command, env, folder, subprocess.PIPE) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise CheckError(f"{Path(str(command[0])).name} takes longer than {seconds:.0f} s") from None
    return Done(process.returncode, out, err)


@contextlib.contextmanager
def serving(
    command: Sequence[object], env: Mapping[str, str], folder: Path, port: int
) -> Iterator[Callable[[], None]]:
    """Keep a server running.

    :returns: waits until it listens on its port, and raises :class:`CheckError` if it does not.
    """
    with (
        (folder / f"{port}.log").open("w+", encoding="utf-8") as log,
        _started(command, env, folder, log) as process,
    ):

        def wait() -> None:
            deadline = time.monotonic() + START_SECONDS
            while not _listens(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise CheckError(f"the server does not listen: {Done(0, log.read(), '').words}")
                time.sleep(0.05)

        yield wait


def end_all() -> None:
    """Ask all programs to end, and start no more."""
    _ending.set()
    for process in tuple(_running):
        _signal(process, signal.SIGTERM)


def free_port() -> int:
    """Find a port of the loopback address that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def _started(
    command: Sequence[object], env: Mapping[str, str], folder: Path, output: Any
) -> Iterator[subprocess.Popen[str]]:
    if _ending.is_set():
        raise CheckError("stopped")
    process = subprocess.Popen(
        [str(part) for part in command],
        env=dict(env),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.PIPE if output is subprocess.PIPE else subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        # A group of its own, so that what it starts can be ended with it.
        start_new_session=True,
    )
    _running.add(process)
    try:
        yield process
    finally:
        _running.discard(process)
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
        _signal(process, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def _signal(process: subprocess.Popen[str], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
