"""Python programs that tests start are forked from a process that has imported their packages.

A server takes most of its start to import them, and tests start hundreds. So are the workers of
pytest-xdist; each forks its programs by a process of its own. A program with one thread forks what it
starts. Each program is a process of its own all the same, and a child of the one that starts it: with its
own arguments, environment, working directory, pipes and signals. No fork starts a script, code that looks at
the imported modules, or a program whose environment has new variables for Python itself.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from npl_index.index.building import WORKER
from tests.postgres_server import OURS

ROOT = Path(__file__).resolve().parents[1]

_PR_SET_CHILD_SUBREAPER = 36  # of prctl(2)
_LONGEST = 1 << 20
_READ_AT_START = ("PYTHON", "LC_", "LANG", "TZ", "FASTMCP_", "COVERAGE_", "SSL_")
_PACKAGES = ("npl_mcp", "tests.", "benchmarks.")
_NONE = dict.fromkeys(("preexec_fn", "executable", "gid", "gids", "uid"))
_USUAL = {**_NONE, "close_fds": True, "pass_fds": (), "shell": False, "umask": -1}
"""Options of a forked program."""

_WORKER = ["-u", "-c", "import sys;exec(eval(sys.stdin.readline()))"]
"""The words after the interpreter with which pytest-xdist starts a worker."""


class Popen(subprocess.Popen):  # type: ignore[type-arg]
    """A program that is forked where it can be."""

    def _execute_child(self, *args: Any) -> None:
        given = _GIVEN.bind(self, *args).arguments
        if not self._can_be_forked(given):
            super()._execute_child(*args)
            return
        pipes = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        self.pid = self._forked(given, [own if pipe == -1 else pipe for own, pipe in enumerate(pipes)])
        self._child_created = True
        self._close_pipe_fds(*(given[name] for name in _PIPES))

    def _can_be_forked(self, given: dict[str, Any]) -> bool:
        environment = os.environ if given["env"] is None else given["env"]
        return (
            sys.platform == "linux"
            and OURS not in os.environ  # servers that share a database are compared as they are deployed
            and not any(name.startswith("COVERAGE_") for name in environment)
            and isinstance(given["args"], (list, tuple))
            and (given["args"] == [sys.executable, *_WORKER] or _is_known(*given["args"]))
            and all(given.get(name, usual) == usual for name, usual in _USUAL.items())
            and Path(given["cwd"] or ".").is_dir()
            and _read_at_start(environment).items() <= _read_at_start(os.environ).items()
        )

    def _forked(self, given: dict[str, Any], files: list[int]) -> int:
        """Have a program forked, and return its process id."""
        with _one_at_a_time:
            if _Process.running is None:
                _Process.running = _started()
            line = _Process.running.line
            # That process has a child fork, which ends: the program becomes a child of this process.
            _adopt(True)
            try:
                socket.send_fds(line, [json.dumps(_program(given)).encode("utf-8", "surrogateescape")], files)
                return int(line.recv(_LONGEST))
            finally:
                _adopt(False)


class _Child(Popen):
    """A program that a program starts while it has one thread: it forks itself."""

    def _can_be_forked(self, given: dict[str, Any]) -> bool:
        return _threads() == 1 and super()._can_be_forked({**given, "pass_fds": ()})

    def _forked(self, given: dict[str, Any], files: list[int]) -> int:
        sys.stdout.flush()
        if process := os.fork():
            return process
        for number, file in enumerate(files):
            os.dup2(file, number)
        for file in given["pass_fds"]:
            os.dup(file)
        raise _LeaveError(_program(given))


class _LeaveError(BaseException):
    """Leads out of a program, in the process that it forked, to the next one."""


_GIVEN = signature(subprocess.Popen._execute_child)
_one_at_a_time = threading.Lock()
_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")


@contextmanager
def programs() -> Iterator[None]:
    """Let programs be forked that are started meanwhile."""
    started = subprocess.Popen
    subprocess.Popen = Popen  # type: ignore[misc]
    try:
        yield
    finally:
        subprocess.Popen = started  # type: ignore[misc]
        if _Process.running is not None:
            _Process.running.end()


class _Process:
    """The process that forks; it is started for the first program."""

    running: _Process | None = None

    def __init__(self, line: socket.socket, wait: Callable[[], object]) -> None:
        self.line = line
        self._wait = wait

    def end(self) -> None:
        self.line.close()
        self._wait()
        _Process.running = None


def _started() -> _Process:
    line, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # a process with threads is not forked
    for name in [name for name in environment if name.startswith("NPL_")]:
        del environment[name]
    with its:
        command = [sys.executable, "-m", "tests.warm", str(its.fileno())]
        process = Popen.__base__(  # type: ignore[misc]
            command, cwd=ROOT, env=environment, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL
        )
    return _Process(line, process.wait)


def _is_known(program: str, option: str = "", what: str = "", *_: str) -> bool:
    if program != sys.executable:
        return False
    # What a program finds imported is its own, and no other's. Workers are found by their command.
    own = "sys.modules" in what or WORKER in what
    return what.startswith(_PACKAGES) if option == "-m" else option == "-c" and not own


def _read_at_start(environment: Any) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}


def _program(given: dict[str, Any]) -> dict[str, Any]:
    umask = os.umask(0)
    os.umask(umask)
    return {
        "command": [os.fsdecode(word) for word in given["args"][1:]],
        "environment": dict(os.environ if given["env"] is None else given["env"]),
        "folder": str(Path(given["cwd"] or ".").absolute()),
        "umask": umask,
        "session": given["start_new_session"],
        "group": given.get("process_group", -1),
    }


def _threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def _adopt(whether: bool) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(whether), 0, 0, 0)


def main(line: socket.socket) -> None:
    """Fork a program for each message; in it, this returns when the program ends."""
    interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    import_module("tests.lasting").make()
    _keep(list(sys.modules.items()))
    gc.freeze()
    assert _threads() == 1, "a thread would be missing in each program"
    program = _next_program(line)
    if program["command"] == _WORKER:
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        forking = os.fork()
        if forking:
            its.close()
            sys.modules["tests.warm"] = sys.modules["__main__"]
            _Process.running = _Process(mine, partial(os.waitpid, forking, 0))
            program["command"] = _WORKER[1:]
        else:
            mine.close()
            with Path(os.devnull).open("r+b") as nothing:
                os.dup2(nothing.fileno(), 0)
                os.dup2(nothing.fileno(), 1)
            program = _next_program(its)
    signal.signal(signal.SIGINT, interrupted)
    gc.enable()
    if _Process.running is None:
        subprocess.Popen = _Child  # type: ignore[misc]
    while program:
        try:
            _run(**program)
            program = {}
        except _LeaveError as left:
            (program,) = left.args


def _next_program(line: socket.socket) -> dict[str, Any]:
    """Fork a program for each message; in the program, return what the message says of it."""
    while True:
        data, files, _, _ = socket.recv_fds(line, _LONGEST, 3)
        if not data:
            os._exit(0)
        adopted, ready = os.pipe()
        between = os.fork()
        if between == 0:
            if os.fork():
                os._exit(0)
            break
        os.close(adopted)
        for file in files:
            os.close(file)
        os.waitpid(between, 0)
        os.close(ready)
    os.close(ready)
    os.read(adopted, 1)
    line.send(str(os.getpid()).encode())
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(3, max(line.fileno(), adopted, *files) + 1)
    line.detach()
    program: dict[str, Any] = json.loads(data.decode("utf-8", "surrogateescape"))
    return program


def _keep(modules: list[tuple[str, types.ModuleType]]) -> None:
    """Let a program that ends leave what it shares as it is: taking it apart would first copy its memory."""
    for name, module in modules:
        if name not in ("sys", "builtins", "__main__"):
            _shared.append(name)
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(vars(module)))


_shared: list[str] = []


@atexit.register
def _leave() -> None:
    """Run last at the exit: it is registered first."""
    for name in _shared:
        sys.modules.pop(name, None)


def _run(
    command: list[str], environment: dict[str, str], folder: str, umask: int, session: bool, group: int
) -> None:
    if session:
        os.setsid()
    if group != -1:
        os.setpgid(0, group)
    os.umask(umask)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        former = getattr(sys, name)
        stream = open(  # noqa: SIM115
            number,
            "w" if number else "r",
            encoding=former.encoding,
            errors=former.errors,
            buffering=1 if number == 2 or os.isatty(number) else -1,
            closefd=False,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    option, what, *words = command
    sys.argv = [what if option == "-m" else option, *words]
    if option == "-m":
        sys.path[0] = folder
        sys.modules.pop(what, None)
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = ""
        own = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(what, "<string>", "exec"), own.__dict__)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
