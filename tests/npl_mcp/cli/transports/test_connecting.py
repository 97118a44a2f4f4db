"""Commands call tools in this process or on a server."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from npl_index.errors import InvalidRequestError
from npl_index.library.locks import lock
from npl_mcp import __version__
from npl_mcp.cli.terminal.display import exit_code
from npl_mcp.cli.transports.connecting import InProcess, connect
from npl_mcp.config.server_state import LOCK, STATE_FILE, process_start
from npl_mcp.config.settings import Settings
from npl_mcp.tools.domains import declared_tools, tool_named
from tests.conftest import Call, cases
from tests.folders import fill
from tests.npl_mcp.cli.stage import DONE, HEALTHY, Play, Stage, heard, message, playing
from tests.programs import Ended, Run, masked

CASES = cases("npl_mcp/cli/worklog")["cases"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    cases("npl_mcp/cli/transports/connecting")["tools_in_this_process_reply_as_the_server_does"],
)
def test_tools_in_this_process_reply_as_the_server_does(
    tool: str, arguments: dict[str, Any], settings: Settings, call: Call
) -> None:
    """Successes and failures have the same envelope."""
    with InProcess(settings) as transport:
        assert transport.call(tool, arguments) == call(tool, **arguments)


def test_every_tool_is_found_by_its_name() -> None:
    assert [tool_named(spec.name) for spec in declared_tools()] == [*declared_tools()]


def test_a_failure_is_told_once(data: Path) -> None:
    """The command prints the message, and the log does not repeat it."""
    line = [sys.executable, "-m", "npl_mcp.cli.commands.load", "schema", "nosuch"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr


LOCKS: list[int] = []


@pytest.fixture(autouse=True)
def locks() -> Iterator[None]:
    yield
    while LOCKS:
        os.close(LOCKS.pop())


def play_server(data: Path, **fields: object) -> None:
    """Hold the lock of a server and write its state, as a running one does; this process is the server."""
    if not LOCKS:
        LOCKS.append(os.open(data / LOCK, os.O_RDWR | os.O_CREAT, 0o600))
        lock(LOCKS[-1], 0)
    leave_state(data, **{"pid": os.getpid(), "started": process_start(os.getpid()), **fields})


def leave_state(data: Path, **fields: object) -> None:
    """Write a state file as a server that is killed leaves it."""
    file = data / STATE_FILE
    state = {"url": None, "socket": None, "pid": 1, "started": None, "since": 0, "version": __version__}
    file.write_text(json.dumps({**state, "token": "own-token", **fields}), encoding="utf-8")
    file.chmod(0o600)


def url(theatre: Stage) -> str:
    return f"http://127.0.0.1:{theatre.port}"


Told = list[str]

NO_SESSION = {"success": True, "data": []}


def call_once(
    transport: str | None, told: Told, tool: str = "worklog_sessions", **arguments: object
) -> dict[str, Any]:
    with connect(Namespace(via=transport), told.append) as connection:
        return connection.call(tool, **arguments)


STALE: dict[str, dict[str, object]] = {
    "no lock": {},
    "another process": {"lock": True},
    "a later process of its number": {"lock": True, "pid": os.getpid(), "started": 1},
    "no process": {"lock": True, "pid": 2**22 + 1, "started": 5},
}


@pytest.mark.parametrize("transport", [None, "http"])
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("case", STALE)
def test_the_port_of_a_server_that_is_gone_learns_nothing(
    case: str,
    named: bool,
    transport: str | None,
    data: Path,
    stage: Callable[[Play], Stage],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a running process that has the lock, a state file gives no token, entry or call away."""
    said: list[bytes] = []
    theatre = stage(lambda line: said.append(line.recv(65536)))
    state = {**STALE[case], "url": url(theatre)}
    if state.pop("lock", False):
        LOCKS.append(os.open(data / LOCK, os.O_RDWR | os.O_CREAT, 0o600))
        lock(LOCKS[-1], 0)
    leave_state(data, **state)
    if named:
        monkeypatch.setenv("NPL_MCP_URL", url(theatre))
    told: Told = []
    gone = transport == "http" and not named
    with pytest.raises(SystemExit) if gone else nullcontext() as ended:
        reply = call_once(transport, told, "worklog_init", session_id="secret")
    if named:
        assert said
        assert all(b"own-token" not in part and b"secret" not in part for part in said)
    else:
        assert said == []
        assert gone or reply["success"]
        assert len(told) == gone
        assert not gone or ended.value.code == 69


def test_a_server_is_asked_with_token_and_folder(data: Path, stage: Callable[[Play], Stage]) -> None:
    """The state file suffices; absent arguments are left out."""
    requests: list[bytes] = []
    play_server(data, url=url(stage(playing(message(HEALTHY), message(DONE), requests=requests))))
    told: Told = []
    assert call_once(None, told, "worklog_status", session_id=None, x="ü") == {
        "success": True,
        "data": {"n": 1},
    }
    head, _, body = requests[1].partition(b"\r\n\r\n")
    assert b"\r\nAuthorization: Bearer own-token" in head
    assert b"\r\nNPL-Cwd: " + os.fsencode(Path.cwd()) in head
    assert json.loads(body).keys() == {"x", "request_id"}
    assert told == []


OTHER = "a-token-of-others"


@pytest.mark.parametrize(
    ("named", "token", "sent"),
    [
        ("{url}", None, b"own-token"),
        ("{url}/mcp/", OTHER, b"own-token"),
        ("http://localhost:{port}", OTHER, b"own-token"),
        ("http://localhost:{port}/other", OTHER, OTHER.encode()),
        ("http://localhost:{port}/other", None, None),
    ],
)
def test_which_token_is_sent(
    named: str,
    token: str | None,
    sent: bytes | None,
    data: Path,
    stage: Callable[[Play], Stage],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The data folder's server gets its own token, which proves whose it is; others get the given one."""
    requests: list[bytes] = []
    theatre = stage(playing(message(HEALTHY), message(DONE), requests=requests))
    play_server(data, url=url(theatre))
    monkeypatch.setenv("NPL_MCP_URL", named.format(url=url(theatre), port=theatre.port))
    if token:
        monkeypatch.setenv("NPL_MCP_TOKEN", token)
    assert call_once("http", [])["success"]
    match = re.search(rb"Authorization: Bearer (\S+)", requests[1])
    assert (match and match[1]) == sent


FAILING: dict[str, tuple[list[bytes], str, bool]] = {
    "gone at once": ([b""], "closed the connection", False),
    "busy": ([message(HEALTHY), message(b"", b"503 Busy")], "refused the call", False),
    "gone half-way": ([message(HEALTHY), b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"], "closed", True),
    "an answer of no tool": ([message(HEALTHY), message(b"null")], "no reply of a tool", True),
}


@pytest.mark.parametrize(("answers", "problem", "sent"), FAILING.values(), ids=FAILING)
def test_a_server_that_fails(
    answers: list[bytes], problem: str, sent: bool, data: Path, stage: Callable[[Play], Stage]
) -> None:
    """If asked for by name, the failure has its own exit code; else the call is made here, with a note. A
    possibly completed change is not repeated.
    """
    play_server(data, url=url(stage(playing(*answers))))
    told: Told = []
    failure = call_once("http", told)
    assert problem in failure["error"]
    assert exit_code(failure) == (76 if sent else 69)
    assert told == []
    assert call_once("auto", told) == NO_SESSION
    assert len(told) == 1
    assert problem in told[0]
    assert told[0].endswith("ran without a server")
    told.clear()
    entry = {"agent_id": "a", "action": "did", "summary": "s"}
    written = call_once("auto", told, "worklog_log", **entry)
    seen = InProcess(Settings.from_env()).call("worklog_sessions", {})["data"]
    if sent:
        assert (written["error_code"], seen, told) == ("UNCERTAIN", [], [])
        assert "check before you retry" in written["error"]
    else:
        assert (written["success"], len(seen), len(told)) == (True, 1, 1)


def test_another_machine_is_not_replaced_for_what_changes_something(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other machine has its own data; only reading calls are made here instead, with a note."""
    with socket.create_server(("127.0.0.2", 0)) as free:
        monkeypatch.setenv("NPL_MCP_URL", f"http://127.0.0.2:{free.getsockname()[1]}")
    told: Told = []
    refused = call_once(None, told, "worklog_init")
    assert (refused["error_code"], told) == ("UNAVAILABLE", [])
    assert "npl-mcp-server start" in refused["error"]
    assert call_once(None, told) == NO_SESSION
    assert len(told) == 1


def test_a_note_is_made_once(data: Path, stage: Callable[[Play], Stage]) -> None:
    """The same command does not ask a failed server again."""
    play_server(data, url=url(stage(playing(b""))))
    told: Told = []
    with connect(Namespace(via=None), told.append) as connection:
        assert all(connection.call("worklog_sessions")["success"] for _ in range(3))
    assert len(told) == 1


def test_files_are_looked_for_where_this_environment_says(
    data: Path, stage: Callable[[Play], Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server with other search places is asked only by name."""
    theatre = stage(playing(message(HEALTHY), message(DONE)))
    play_server(data, url=url(theatre))
    told: Told = []
    arguments = {"items": "syntax"}
    assert call_once(None, told, "npl_load_components", **arguments)["data"] == {"n": 1}
    monkeypatch.setenv("NPL_HOME", "/nowhere")
    assert "content" in call_once(None, told, "npl_load_components", **arguments)["data"]
    assert call_once("http", told, "npl_load_components", **arguments)["data"] == {"n": 1}
    play_server(data, url=url(theatre), places="NPL_HOME=/nowhere")
    assert call_once(None, told, "npl_load_components", **arguments)["data"] == {"n": 1}
    assert told == []


def test_a_folder_that_no_header_can_hold(
    data: Path, stage: Callable[[Play], Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is not sent, since it could be read as a second header."""
    odd = data / "a\r\nX-Evil: 1"
    odd.mkdir()
    monkeypatch.chdir(odd)
    play_server(data, url=url(stage(playing(message(HEALTHY), message(DONE)))))
    told: Told = []
    assert "control characters" in call_once("http", told)["error"]
    assert call_once(None, told) == NO_SESSION


@pytest.mark.parametrize(
    ("name", "value"), [("NPL_VIA", "pigeon"), ("NPL_MCP_URL", "example.org"), ("NPL_MCP_URL", "http://x:y")]
)
def test_variables_that_cannot_be_used(
    name: str, value: str, data: Path, monkeypatch: pytest.MonkeyPatch, program: Run
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidRequestError, match=f"{name}='{value}'"):
        connect(Namespace(via=None), print)
    for words in (["npl-load", "index"], ["npl-worklog", "current"]):
        done = program(*words)
        assert (done.code, f"{name}='{value}'" in done.err) == (2, True)


def test_the_environment_says_how(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPL_VIA", "http")
    told: Told = []
    with pytest.raises(SystemExit) as ended:
        call_once(None, told)
    assert ended.value.code == 69
    assert told[0].startswith("a server of this data folder is not running")
    assert call_once("direct", [])["success"]


def test_where_data_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands and servers use the same folder, the one of platformdirs."""
    places = {"XDG_CONFIG_HOME": "~/.local/share/npl-mcp", "XDG_DATA_HOME": "/else/npl-mcp"}
    places["NPL_MCP_DATA_DIR"] = "/else"
    for name in places:
        monkeypatch.delenv(name, raising=False)
    for name, place in places.items():
        monkeypatch.setenv(name, "/else")
        assert Settings.from_env().data_folder == Path(place).expanduser()


@pytest.fixture
def served_here(served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server of the working folder's data runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NPL_MCP_DATA_DIR", str(served))


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
@pytest.mark.usefixtures("served_here")
def test_a_server_gives_the_same_bytes(
    case: dict[str, Any], program: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPL_VIA", "http")
    for step in case["steps"]:
        done = program("npl-worklog", *step["argv"])
        assert (done.code, masked(done.out)) == (step["exit"], step["stdout"]), step["argv"]
        assert step["stderr"] in (None, masked(done.err)), step["argv"]


@pytest.mark.usefixtures("served_here")
def test_what_is_no_text_is_refused_and_not_changed(program: Run) -> None:
    """Bytes of a command line that are not UTF-8 are refused."""
    for via in ("direct", "http"):
        words = ["log", "--agent", "a", "--action", "did", "--summary", "a\udcff", "--via", via]
        assert program("npl-worklog", *words)[:2] == (2, "")


@pytest.mark.parametrize(
    "words",
    cases("npl_mcp/cli/transports/connecting")["files_of_this_folder_over_http"],
    ids=" ".join,
)
@pytest.mark.usefixtures("served_here")
def test_files_of_this_folder_over_http(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Run
) -> None:
    """The server sees the caller's folder, so output and messages are the same."""
    fill(tmp_path / ".npl" / "npl", {"mine.md": "# Mine\n\n## Part\n\nText.\n"})
    ended = []
    for via in ("direct", "http"):
        monkeypatch.setenv("NPL_VIA", via)
        code, out, err = program("npl-load", *words)
        ended.append(Ended(code, out, re.sub(r"\([a-z0-9_~]+\)", "(counter)", err)))
    assert ended[0] == ended[1]


def test_an_interrupt_while_a_server_works_is_silent(data: Path, stage: Callable[[Play], Stage]) -> None:
    asked: list[bytes] = []

    def play(line: socket.socket) -> None:
        heard(line)
        line.sendall(message(HEALTHY))
        asked.append(heard(line))
        line.recv(1)

    play_server(data, url=url(stage(play)))
    with subprocess.Popen(
        [sys.executable, "-m", "npl_mcp.cli.commands.worklog", "current"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            while not asked:
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (130, b"", b"")
