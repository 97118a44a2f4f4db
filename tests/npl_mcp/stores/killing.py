"""Kills what writes, again and again, and looks what is left.

``python -m tests.npl_mcp.stores.killing --kills 200`` does it for long and prints what it found: on SQLite
with processes that share a data folder, on PostgreSQL with replicas that answer their clients over HTTP.
"""

import argparse
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from npl_mcp.app.app import App
from tests import engines
from tests.npl_mcp.http.http_server import Running, call
from tests.npl_mcp.stores.writer import Acknowledged, Examination, Writer, caller, examine, settings_in
from tests.replicas import kill, replica

WRITERS = 3
ROUNDS = 5
"""Rounds on one data folder. The first, third, … folder begins without a database: its first round interrupts
the making of one.
"""

LONGEST = 0.8
"""Maximum seconds of a writer's life."""


def write(place: Path, name: str, *, empty: bool) -> None:
    """Write until killed; each line on standard output is a call that had returned.

    :param empty: whether the writers make the database.
    """
    # Else most of a short life would be spent on loading it.
    importlib.import_module("yaml")
    writer = Writer(caller(App(settings_in(place, empty=empty))), name)
    os.write(1, b"{}\n")
    sys.stdin.readline()
    os.write(1, _line(writer.first()))
    while True:
        os.write(1, _line(writer.next()))


def _line(said: Acknowledged) -> bytes:
    return json.dumps(said).encode() + b"\n"


@dataclass(slots=True)
class Outcome:
    """The result of killing writers.

    :param kills: processes that were killed.
    :param acknowledged: calls that had returned.
    :param ended: what writers said that ended before they were killed.
    :param broken: by promise, how it was broken.
    """

    kills: int = 0
    acknowledged: int = 0
    ended: list[str] = field(default_factory=list)
    broken: Examination = field(default_factory=dict)


class Life:
    """A writer as a process of its own; it waits until it is told to begin.

    :param empty: the database is made by the writers.
    """

    def __init__(self, place: Path, name: str, *, empty: bool = False) -> None:
        (place / "project").mkdir(parents=True, exist_ok=True)
        self._empty = empty
        self._said = place / f"{name}.out"
        self._errors = place / f"{name}.err"
        with self._said.open("wb") as said, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.npl_mcp.stores.killing"),
                    *("--write", str(place), name, *(["--empty"] if empty else [])),
                ],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=errors,
            )

    def begin(self) -> None:
        """Wait until it can begin and let it, until its first answer where it finds a database."""
        self._wait_for(lines=1)
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        if not self._empty:
            self._wait_for(lines=2)

    def _wait_for(self, lines: int) -> None:
        while self._said.read_bytes().count(b"\n") < lines and self._process.poll() is None:
            time.sleep(0.005)

    def end(self) -> str | None:
        """Kill it.

        :returns: its standard error if it had failed, even where the kill came before its end.
        """
        self._process.kill()
        with self._process:
            pass
        errors = self._errors.read_text()
        return errors if errors or self._process.returncode != -signal.SIGKILL else None

    def acknowledged(self) -> list[Acknowledged]:
        lines = self._said.read_bytes().split(b"\n")[1:-1]
        return [json.loads(line) for line in lines]


class Replica:
    """A server, and a client that writes over HTTP; it waits until it is told to begin. See :class:`Life`."""

    def __init__(self, place: Path, name: str, *, empty: bool = False) -> None:
        # All replicas work for one project, as agents on a shared checkout do.
        (place / "project").mkdir(parents=True, exist_ok=True)
        self._folder = place / name
        self._folder.mkdir()
        address = engines.empty_address if empty else engines.address
        self._address, self._name = address(place / "data") or "", name
        self._begins = threading.Event()
        self._server: Future[Running] = Future()
        self._said: list[Acknowledged] = []
        self._refused: str | None = None
        at = self._folder / "replica0"
        at.mkdir()
        (at / "work").symlink_to(place / "project")
        self._thread = threading.Thread(target=self._live)
        self._thread.start()

    def begin(self) -> None:
        """Wait until it can begin and let it; its first answers come slowly on a busy machine."""
        self._server.result()
        self._begins.set()
        while len(self._said) < 2 and self._thread.is_alive():
            time.sleep(0.005)

    def end(self) -> str | None:
        """Kill the server.

        :returns: what was wrong if it had ended by itself, or refused a call.
        """
        kill(self._server.result())
        self._begins.set()
        self._thread.join()
        by_itself = self._server.result().process.returncode != -signal.SIGKILL
        return self._server.result().log if by_itself else self._refused

    def acknowledged(self) -> list[Acknowledged]:
        return self._said

    def _live(self) -> None:
        try:
            with replica(self._folder, self._address, 0) as running:
                self._server.set_result(running)
                self._begins.wait()
                writer = Writer(self._call, self._name)
                self._said.append(writer.first())
                while True:
                    self._said.append(writer.next())
        except BaseException as error:
            if not self._server.done():
                self._server.set_exception(error)
            elif not isinstance(error, _GoneError):
                self._refused = repr(error)

    def _call(self, tool: str, **arguments: Any) -> Any:
        try:
            answer = call(self._server.result(), tool, arguments)
            body = json.loads(answer.body, object_hook=lambda values: SimpleNamespace(**values))
        except (OSError, AssertionError, ValueError) as error:  # no whole answer
            raise _GoneError from error
        if answer.status != 200:
            raise ValueError(answer.body)
        return body.data


class _GoneError(Exception):
    """The server did not answer: it was killed."""


LIVES: Mapping[str, type[Life] | type[Replica]] = {"sqlite": Life, "postgres": Replica}
"""The killed processes by engine."""


def kill_writers(folder: Path, kills: int, seed: int = 0) -> Outcome:
    """Let writers write at once into one database, kill each at a random moment, and look what is left.

    :param folder: for the data folders.
    :param kills: processes to kill, at least.
    """
    chance = random.Random(seed)
    outcome = Outcome()
    said: list[Acknowledged] = []
    number = 0
    while outcome.kills < kills:
        place = folder / str(number // ROUNDS)
        if number % ROUNDS == 0:
            said = []
        empty = number % (2 * ROUNDS) == 0
        lives = [
            LIVES[engines.ENGINE](place, f"w{number}-{writer}", empty=empty) for writer in range(WRITERS)
        ]
        _live_and_die(lives, chance, outcome)
        new = [line for life in lives for line in life.acknowledged()]
        said += new
        outcome.acknowledged += len(new)
        for promise, problems in examine(place, said).items():
            outcome.broken.setdefault(promise, []).extend(problems)
        number += 1
    return outcome


def _live_and_die(lives: Sequence[Life | Replica], chance: random.Random, outcome: Outcome) -> None:
    ends = [chance.uniform(0, LONGEST) for _ in lives]
    if chance.random() < 0.5:  # all at the same moment, so that no process is left to tidy up
        ends = [max(ends)] * len(lives)
    try:
        for life in lives:
            life.begin()
        began = time.monotonic()
        for end, life in sorted(zip(ends, lives, strict=True), key=lambda pair: pair[0]):
            time.sleep(max(0.0, began + end - time.monotonic()))
            problem = life.end()
            outcome.kills += problem is None
            outcome.ended += [] if problem is None else [problem]
    finally:
        for life in lives:
            life.end()


def main() -> int:
    """Write, or have writers killed."""
    parser = argparse.ArgumentParser(description="Kills writers and looks what is left.")
    parser.add_argument("--kills", type=int, default=200, help="processes to kill")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the moments")
    parser.add_argument("--write", nargs=2, metavar=("FOLDER", "NAME"), help="be a writer")
    parser.add_argument("--empty", action="store_true", help="the writer makes the database")
    given = parser.parse_args()
    if given.write:
        write(Path(given.write[0]), given.write[1], empty=given.empty)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        outcome = kill_writers(Path(folder), given.kills, given.seed)
    report = asdict(outcome) | {
        "engine": engines.ENGINE,
        "seed": given.seed,
        "seconds": round(time.monotonic() - began),
        "broken": {promise: len(problems) for promise, problems in outcome.broken.items()},
        "first": [problem for problems in outcome.broken.values() for problem in problems[:3]],
    }
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    return 1 if outcome.ended or any(outcome.broken.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
