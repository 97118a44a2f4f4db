"""Does one thing to a kept set of documents again and again, killed one step later each time.

``python -m tests.npl_mcp.app.kills PLACE publish 1`` (or ``append``) prints what was found after
each kill: the step before which the process died, how many documents the next start had to index, whether it
and the one after it say what a folder says that is read again, and how many documents the latter indexed.

The number says how many steps lie between two kills. A step is a call of the system that changes or opens a
file, or a statement of SQLite that is no query; a run of like ones is one step. The steps are counted from
outside, by the interpreter's audit events and SQLite's own trace.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from npl_index.index.driver import driver
from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from tests.npl_mcp.app.many import fresh, put, settings_in, told, write

EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.chmod", "mmap.__new__", "fcntl.flock"}
FILES = 3
LIKE = 12
"""Number of characters that distinguish statements."""


class Steps:
    """Counts steps from when it is armed, and dies before one of them."""

    def __init__(self) -> None:
        self._left = 0
        self._last = ""
        sys.addaudithook(self._audit)
        self._fsync, os.fsync = os.fsync, self._synced
        self._connect, driver().connect = driver().connect, self._connected

    def die_before(self, step: int) -> None:
        self._left = step

    def _audit(self, event: str, _: Any) -> None:
        if event in EVENTS:
            self._step(event)

    def _synced(self, handle: int) -> None:
        self._step("fsync")
        self._fsync(handle)

    def _connected(self, *arguments: Any, **options: Any) -> Any:
        connection = self._connect(*arguments, **options)
        connection.set_trace_callback(self._traced)
        return connection

    def _traced(self, statement: str) -> None:
        if not statement.startswith(("SELECT", "--")):
            self._step(statement[:LIKE])

    def _step(self, what: str) -> None:
        if self._left and what != self._last:
            self._last = what
            self._left -= 1
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)


def publish(settings: Settings) -> None:
    """Publish a set, or append to one that is known and was changed since."""
    app = App(settings)
    told(app)
    app.close()


def started(settings: Settings) -> tuple[int, list[object]]:
    """Return how many documents a start has to index, and what it says."""
    app = App(settings)
    said = told(app)
    indexed = app.state.sets.built
    app.close()
    return indexed, said


def main() -> None:
    """Kill before the first step, the second and so on, until the work ends first."""
    place, name, every = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    settings = settings_in(place)
    write(settings.roots[0], FILES)
    before = place / "before"
    if name != "publish":
        publish(settings)
        put(settings.roots[0] / "part1" / "page001.md", "# Changed\n\nThe valve is a spoon now.\n", 50)
    settings.data_folder.mkdir(exist_ok=True)
    settings.data_folder.rename(before)
    expected = fresh(settings)
    steps = Steps()
    for step in range(1, 10_000, every):
        shutil.copytree(before, settings.data_folder)
        child = os.fork()
        if not child:
            steps.die_before(step)
            publish(settings)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        indexed, said = started(settings)
        again, said_again = started(settings)
        shutil.rmtree(settings.data_folder)
        print(json.dumps([step, indexed, said == said_again == expected, again]), flush=True)
        if not status:
            return


if __name__ == "__main__":
    main()
