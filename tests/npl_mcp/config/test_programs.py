"""Programs that are started in a stranger's folder run none of its code."""

import json
import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from npl_mcp.app.document_sets import BACKGROUND_BYTES
from npl_mcp.config.child_processes import child_environment
from tests.conftest import cases
from tests.messages import calling, hello

pytestmark = pytest.mark.thorough

BIN = Path(sys.executable).parent

LOADED = """
import json, runpy, sys
before = {name.split(".")[0] for name in sys.modules}
import npl_mcp.__main__, npl_mcp.cli.commands.load, npl_mcp.cli.commands.worklog, npl_mcp.cli.transports.stdio
import npl_index.index.building, npl_mcp.http.listening, npl_mcp.server.server
print(json.dumps([sorted(before), sorted({name.split(".")[0] for name in sys.modules})]))
"""
TREE = calling(2, "git_tree")
SPOKEN = json.dumps(hello()) + "\n"

STARTS: dict[str, list[str]] = cases("npl_mcp/config/programs")


@cache
def module_names() -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of all packages that a program may import, and those that ``-m`` itself needs."""
    shown = subprocess.run(
        [sys.executable, "-I", "-c", LOADED], capture_output=True, text=True, check=True, cwd=BIN
    ).stdout
    before, loaded = (set(names) for names in json.loads(shown))
    own = {"npl_mcp", "npl_index", "sitecustomize", "usercustomize", "readline"}
    return frozenset(loaded | sys.stdlib_module_names | own), frozenset(before)


class Stranger:
    """A folder with programs and with a module of every name, which only leave a mark."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.marker = folder, home / "ran"
        code = f"import io; io.open({str(self.marker)!a}, 'a').write(__name__ + '\\n')\n"
        names, _ = module_names()
        assert {"argparse", "uvicorn", "fastmcp", "npl_index", "sitecustomize"} <= names
        for name in names - {"io"}:
            (folder / f"{name}.py").write_text(code, encoding="utf-8")
        for name in ("git", "npl-mcp", "python", "python3"):
            program = folder / name
            program.write_text(f"#!/bin/sh\necho $0 >> {shlex.quote(str(self.marker))}\n", encoding="utf-8")
            program.chmod(0o755)
        for name in (".env", "fastmcp.json", "logging.conf", "pyvenv.cfg", "uvicorn.env"):
            (folder / name).write_text("FASTMCP_LOG_LEVEL=none\nhome = .\n", encoding="utf-8")
        (folder / "all.pth").write_text(f"import argparse; {code}", encoding="utf-8")
        subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
        (folder / "many").mkdir()
        for number in range(40):
            text = f"# Page {number}\n" + "A line of words.\n" * (BACKGROUND_BYTES // 40 // 16)
            (folder / "many" / f"page{number}.md").write_text(text, encoding="utf-8")
        self.environment = {
            **os.environ,
            **child_environment({}),
            "BROWSER": "git",
            "HOME": str(home),
            "NPL_MCP_DATA_DIR": str(home / "data"),
            "PATH": os.pathsep.join(["", ".", str(BIN), os.environ["PATH"]]),
        }

    def run(
        self, *command: str, spoken: str = "", path: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        environment = self.environment if path is None else {**self.environment, "PATH": path}
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            input=spoken,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def marks(self) -> str:
        return self.marker.read_text(encoding="utf-8") if self.marker.exists() else ""


@pytest.fixture
def stranger(tmp_path: Path) -> Stranger:
    (tmp_path / "cloned").mkdir()
    (tmp_path / "home").mkdir()
    return Stranger(tmp_path / "cloned", tmp_path / "home")


@pytest.mark.parametrize("name", STARTS)
def test_a_program_imports_nothing_from_the_working_directory(stranger: Stranger, name: str) -> None:
    """The table has each program, each transport and their child processes."""
    program, *arguments = STARTS[name]
    done = stranger.run(str(BIN / program), *arguments, spoken=SPOKEN)
    assert (done.returncode, stranger.marks()) == (0, ""), done.stderr


def test_a_server_in_the_background_imports_nothing_from_there(stranger: Stranger) -> None:
    """The commands that call it and the browser import nothing from there either."""
    server = str(BIN / "npl-mcp-server")
    started = stranger.run(server, "start", "--port", "0")
    try:
        assert started.returncode == 0, started.stderr
        called = stranger.run(str(BIN / "npl-load"), "--via", "http", "c", "*")
        assert called.returncode == 0, called.stderr
        opened = stranger.run(server, "open", path=f".:{BIN}")
        assert "no browser could be started" in opened.stderr
    finally:
        assert stranger.run(server, "stop").returncode == 0
    assert stranger.marks() == ""


def test_a_server_in_the_foreground_imports_nothing_from_there(stranger: Stranger) -> None:
    """A container runs such a server."""
    command = [str(BIN / "npl-mcp-server"), "run", "--port", "0"]
    with subprocess.Popen(
        command, cwd=stranger.folder, env=stranger.environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "listening" in process.stdout.readline()
        assert "pages" in process.stdout.readline()
        process.terminate()
        process.stdout.read()
    assert (process.returncode, stranger.marks()) == (0, "")


def test_git_is_not_looked_for_in_a_repository(stranger: Stranger) -> None:
    """Git is run although PATH names the working directory first."""
    with subprocess.Popen(
        [str(BIN / "npl-mcp")],
        cwd=stranger.folder,
        env=stranger.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{SPOKEN}{json.dumps(TREE)}\n")
        process.stdin.flush()
        process.stdout.readline()
        answer = json.loads(process.stdout.readline())
        process.stdin.close()
    assert not answer["result"].get("isError"), answer
    assert stranger.marks() == ""


def without_script(folder: Path) -> Path:
    """Return this interpreter at a path without any of its programs."""
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_bytes((BIN.parent / "pyvenv.cfg").read_bytes())
    (folder / "lib").symlink_to(BIN.parent / "lib")
    (folder / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    return folder / "bin" / "python"


@pytest.mark.parametrize("known", ["on PATH", "next to the interpreter", "nowhere"])
def test_what_is_printed_for_clients_imports_nothing_from_there(
    stranger: Stranger, tmp_path: Path, known: str
) -> None:
    """Each printed command serves in that folder, whether npl-mcp is on PATH or not."""
    python = sys.executable if known != "nowhere" else str(without_script(tmp_path / "moved"))
    path = str(BIN) if known == "on PATH" else "/nowhere"
    commands = {tuple(command) for command in printed(stranger, python, f".:{path}")}
    expected = {
        "on PATH": str(BIN / "npl-mcp"),
        "next to the interpreter": str(BIN / "npl-mcp"),
        "nowhere": python,
    }
    assert {command[0] for command in commands} == {expected[known]}
    for command in commands:
        done = stranger.run(*command, spoken=SPOKEN, path=f".:{path}")
        assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "npl"
    assert stranger.marks() == ""


def printed(stranger: Stranger, python: str, path: str) -> Iterator[Sequence[str]]:
    """Return the command of each client that npl-mcp prints at a terminal."""
    code = (
        f"import sys; sys.path[:] = {[p for p in sys.path if p]!a}; from npl_mcp.__main__ import main; main()"
    )
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [python, "-c", code],
        cwd=stranger.folder,
        env={**stranger.environment, "PATH": path},
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(theirs)
        assert process.stderr is not None
        shown = ""
        while "It now waits" not in shown:
            line = process.stderr.readline()
            assert line, shown
            shown += line
        process.terminate()
    os.close(ours)
    lines = [line.strip() for line in shown.splitlines() if line.startswith("  ")]
    assert len(lines) > 6, shown
    for line in lines:
        if line.startswith("{"):
            yield from in_entry(json.loads(line))
        elif " mcp add " in line:
            _, command = line.split(" npl ", 1)
            yield [word for word in shlex.split(command) if word != "--"]


def in_entry(entry: Mapping[str, object]) -> Iterator[Sequence[str]]:
    """Return the commands below an object of a client's file."""
    command, arguments = entry.get("command"), entry.get("args", [])
    if isinstance(command, str) and isinstance(arguments, list):
        yield [command, *arguments]
    elif isinstance(command, list):
        yield command
    else:
        for inner in entry.values():
            if isinstance(inner, dict):
                yield from in_entry(inner)


def test_the_module_that_a_user_runs_leaves_the_folder_out_as_well(stranger: Stranger) -> None:
    """Python imports the package from there, and the package imports nothing else from there."""
    _, before = module_names()
    for name in (*before, "npl_mcp"):
        (stranger.folder / f"{name}.py").unlink(missing_ok=True)
    done = stranger.run(sys.executable, "-m", "npl_mcp", spoken=SPOKEN)
    assert (done.returncode, stranger.marks()) == (0, ""), done.stderr
