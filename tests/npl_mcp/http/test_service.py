"""One server per data folder is started, shown and stopped, and never confused with another process."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from npl_mcp import __version__
from npl_mcp.config import server_state
from npl_mcp.config.server_state import LOCK, STATE_FILE, ServerState, read_state, running_server
from npl_mcp.http import service
from npl_mcp.http.service import hold, write_state
from npl_mcp.server.startup import MAX_BYTES
from tests.conftest import cases
from tests.folders import fill
from tests.messages import asking, calling
from tests.npl_mcp.http.http_server import BOTH, JSON, META, MODERN, command, environment, serving
from tests.npl_mcp.server.speaking import spoken_to
from tests.npl_mcp.web.browsing import Visitor
from tests.until import until

TOKEN = "a-token-of-this-test-alone"


def big() -> dict[str, str]:
    """Return a file that takes long to read."""
    return {"docs/big.md": "Some *words* of [text](x) in a paragraph, and some more of them.\n\n" * 220_000}


def described(url: str | None, socket: str | None) -> ServerState:
    """Return the state of this process as a server."""
    pid = os.getpid()
    return ServerState(url, socket, pid, server_state.process_start(pid), time.time(), __version__, "t")


def run(folder: Path, *flags: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = environment(folder, **{"NPL_MCP_PORT": "0", **variables})
    read: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 90, "check": False}
    return subprocess.run(command(*flags), cwd=folder, env=env, **read)


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[Path]:
    """A folder whose server is ended after the test."""
    yield tmp_path
    state = running_server(tmp_path / "data")
    if state is not None:
        os.kill(state.pid, signal.SIGKILL)


def test_a_server_is_started_shown_and_stopped_once(stopped: Path) -> None:
    """Commands come in a user's order; each repeated one says so."""
    assert run(stopped, "status").returncode == 3
    assert run(stopped, "stop").returncode == 3
    started = run(stopped, "start", "--token", TOKEN)
    assert (started.returncode, started.stdout.split(":")[0]) == (0, "running"), started.stderr
    again = run(stopped, "start")
    assert (again.returncode, again.stdout.split(" (")[0]) == (0, "already running")
    second = run(stopped)
    assert second.returncode == 1
    assert "is running" in second.stderr

    state = read_state(stopped / "data")
    assert state is not None
    assert stat.S_IMODE((stopped / "data" / STATE_FILE).stat().st_mode) == 0o600
    assert TOKEN not in Path(f"/proc/{state.pid}/cmdline").read_text(encoding="utf-8")
    shown = run(stopped, "status")
    assert shown.returncode == 0
    rows = dict(line.split(": ", 1) for line in shown.stdout.splitlines())
    names = ("state", "address", "process", "token needed")
    assert [rows[name] for name in names] == ["running", f"{state.url}/mcp", str(state.pid), "yes"]
    assert state.token not in shown.stdout
    told = json.loads(run(stopped, "status", "--json").stdout)
    assert (told["address"], told["process"], told["token_needed"]) == (f"{state.url}/mcp", state.pid, True)

    ended = run(stopped, "stop")
    assert (ended.returncode, ended.stdout.split(":")[0]) == (0, "stopped")
    assert not (stopped / "data" / STATE_FILE).exists()
    assert run(stopped, "status").returncode == 3


def test_a_start_with_other_flags_fails_and_names_them(stopped: Path) -> None:
    """Otherwise someone would believe that the flags count. Equal ones may be written differently."""
    for name in ("docs", "other"):
        (stopped / name).mkdir()
    assert run(stopped, "start", "--root", "docs", "--web", "off").returncode == 0
    same = run(stopped, "start", "--root", f"{stopped}/docs/", NPL_MCP_WEB="off")
    assert (same.returncode, same.stderr) == (0, "")
    others = run(stopped, "start", "--root", "other", "--web", "read", "--write", "--token", TOKEN)
    assert (others.returncode, others.stdout.split(" (")[0]) == (1, "already running")
    assert "other values of --root, --write, --web, --token: stop it first" in others.stderr


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_working_directory_is_no_root_where_one_is_given(tmp_path: Path, transport: str) -> None:
    """The server starts above its root, as services do in ``/``."""
    work = fill(tmp_path / "work", cases("npl_mcp/http/service")["files_outside"])
    subprocess.run(["git", "init", "--quiet", work], check=True)
    (work / "docs" / "link.md").symlink_to(work / "private" / "diary.md")
    named = [name for path in ("private/diary.md", "private") for name in (path, f"{work}/{path}")]
    named += [f"{work}/private/diary.md".lstrip("/"), "link.md", "docs/link.md", "npl.md", "../private"]
    calls: list[tuple[str, dict[str, object]]] = cases("npl_mcp/http/service")["calls_about_roots"]
    for name in named:
        edit = {"file": name, "selector": "# Diary", "content": "More.", "operation": "append"}
        new = {"file": f"{name}/new.md", "operation": "create", "content": "# N\n"}
        calls += [("npl_load_tailored", {"context": "wombat", "file": name})]
        calls += [("npl_section_index", {"file": name}), ("npl_update_section", edit)]
        calls += [("npl_update_section", new), ("dump_files", {"path": name}), ("git_tree", {"path": name})]

    def texts() -> dict[Path, bytes]:
        outside = (path for path in work.rglob("*.*") if not path.is_relative_to(work / "docs"))
        return {path: path.read_bytes() for path in outside if path.is_file()}

    before = texts()
    with ExitStack() as stack:
        flags = ("--root", str(work / "docs"), "--write")
        if transport == "http":
            server = stack.enter_context(serving(tmp_path, *flags))
            answers = [(tool, given, str(server.call(tool, given).data)) for tool, given in calls]
        else:
            speaker = stack.enter_context(spoken_to(tmp_path, *flags))
            answers = [(tool, given, str(speaker.call(tool, **given))) for tool, given in calls]
    for tool, given, answer in answers:
        assert not re.search(r"OUTSIDE|key\.txt", answer), (tool, given, answer)
    assert texts() == before


@pytest.mark.thorough
def test_servers_started_at_one_moment_are_one(stopped: Path) -> None:
    """Several starts race; one server results, and each start reports it."""
    env = environment(stopped, NPL_MCP_PORT="0", PYTHONHASHSEED="1")  # not forked, so /proc has it
    starts = [
        subprocess.Popen(command("start"), env=env, cwd=stopped, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    words = sorted(start.communicate(timeout=90)[0].rpartition(" (process")[0] for start in starts)
    assert [start.returncode for start in starts] == [0, 0, 0]
    state = running_server(stopped / "data")
    assert state is not None
    assert words == [f"already running (npl-mcp-server stop ends it): {state.url}/mcp"] * 2 + [
        f"running: {state.url}/mcp"
    ]
    # One that came second, and waited, would be the server once the first is stopped.
    assert _processes(stopped / "data") == [state.pid]


def _processes(data: Path) -> list[int]:
    """List the processes whose environment names a data folder."""
    processes = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"NPL_MCP_DATA_DIR={data}\0".encode() in (place / "environ").read_bytes():
                processes.append(int(place.name))
    return processes


@pytest.mark.thorough
def test_a_killed_server_leaves_nothing_that_confuses(tmp_path: Path) -> None:
    """A state file without its server counts for nothing, and the next server replaces it."""
    with serving(tmp_path) as first:
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        assert read_state(tmp_path / "data") is not None
        assert running_server(tmp_path / "data") is None
        assert run(tmp_path, "stop").returncode == 3
    with serving(tmp_path) as second:
        assert running_server(tmp_path / "data") == second.state != first.state


def test_no_other_process_is_stopped(tmp_path: Path) -> None:
    """A state file that names a foreign process leads to no signal."""
    with subprocess.Popen(["sleep", "60"]) as bystander:
        try:
            state = described("http://127.0.0.1:1", None)
            write_state(tmp_path, state._replace(pid=bystander.pid))
            assert service.stop(tmp_path) is None
            with hold(tmp_path):
                write_state(tmp_path, state._replace(pid=bystander.pid))
                assert service.stop(tmp_path) is None
            assert bystander.poll() is None
        finally:
            bystander.kill()


def test_the_state_file_is_whole_and_private(tmp_path: Path) -> None:
    """Its mode is 0600, also after an earlier file, and it reads as written."""
    (tmp_path / STATE_FILE).write_text("old", encoding="utf-8")
    (tmp_path / STATE_FILE).chmod(0o666)
    state = described(None, str(tmp_path / "s"))
    write_state(tmp_path, state)
    assert read_state(tmp_path) == state
    assert stat.S_IMODE((tmp_path / STATE_FILE).stat().st_mode) == 0o600
    assert json.loads((tmp_path / STATE_FILE).read_bytes()) == state._asdict()
    assert "token" not in repr(state)


def test_a_process_is_told_from_a_later_one_of_its_number() -> None:
    """A process's start time does not change; a missing process has none."""
    own = server_state.process_start(os.getpid())
    assert own is not None
    assert own == server_state.process_start(os.getpid())
    assert server_state.process_start(2**22 + 1) is None


def test_a_signal_ends_it_whatever_is_connected(tmp_path: Path) -> None:
    """Idle connections, half-sent requests and waiting streams do not keep it alive."""
    with serving(tmp_path) as server:
        session = {**BOTH, "Mcp-Session-Id": server.session_of()}
        half = server.message("POST", "/mcp", b"{", {**JSON, "Content-Length": "90"})
        parts = (b"", half[:60], half, server.message("GET", "/mcp", None, session))
        lines = [server.connected() for _ in range(8)]
        try:
            for number, line in enumerate(lines):
                line.sendall(parts[number % 4])
            assert lines[3].recv(100).startswith(b"HTTP/1.1 200")
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(timeout=60) == 0
        finally:
            for line in lines:
                line.close()
        assert not (tmp_path / "data" / STATE_FILE).exists()
        assert "Traceback" not in server.log


@pytest.mark.thorough
def test_a_running_call_does_not_keep_it_alive(tmp_path: Path) -> None:
    """A long uninterruptible call ends with the server, which still removes its files."""
    flags = ("--socket", str(tmp_path / "s"), "--port", "0")
    with serving(tmp_path, *flags, files=big(), NPL_TIME_LIMIT="600") as server, server.connected() as line:
        line.sendall(server.message(*ENDING["a call that runs"]))
        until(lambda: server.in_flight() == 1)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=60) == 0
        with suppress(ConnectionResetError):
            assert not line.recv(100).startswith(b"HTTP/1.1 200")  # the call was not waited for
    assert not (tmp_path / "data" / STATE_FILE).exists()
    assert not (tmp_path / "s").exists()


@pytest.mark.thorough
def test_an_address_in_use_is_a_sentence(tmp_path: Path) -> None:
    """Standard error has the reason of a failed start; the exit code is that of unusable settings."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for step in ("run", "start"):
            done = run(tmp_path, step, "--port", port)
            assert done.returncode == 2
            assert f"127.0.0.1:{port} cannot be listened on" in done.stderr
            assert "Traceback" not in done.stderr


def test_the_snippets_name_the_real_address(tmp_path: Path) -> None:
    """The printed entries work as they are; they have the token only on request."""
    with serving(tmp_path, NPL_MCP_TOKEN=TOKEN) as server:
        plain = run(tmp_path, "config", NPL_MCP_TOKEN=TOKEN)
        shown = run(tmp_path, "config", "--show-token", NPL_MCP_TOKEN=TOKEN)
    address = f"{server.state.url}/mcp"
    assert plain.returncode == shown.returncode == 0
    assert f"claude mcp add --transport http npl {address}" in plain.stdout
    assert TOKEN not in plain.stdout
    assert "replace YOUR_TOKEN with a token: --show-token shows the token\n" in plain.stderr
    assert shown.stderr == ""
    blocks = [json.loads(line) for line in shown.stdout.splitlines() if line.startswith("  {")]
    entries = [servers["npl"] for block in blocks for servers in block.values()]
    assert all(address in (entry.get("url"), entry.get("serverUrl")) for entry in entries)
    assert all(entry["headers"] == {"Authorization": f"Bearer {TOKEN}"} for entry in entries)
    assert len(entries) > 4
    assert server.state.token not in plain.stdout + shown.stdout


@pytest.mark.parametrize(
    ("step", "folder"),
    [("run", "/proc"), ("run", "/dev/null/below"), ("start", "/proc/self/new"), ("start", "/dev/null")],
)
def test_a_data_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path, step: str, folder: str) -> None:
    """The message names the folder and the way out, without a traceback."""
    done = run(tmp_path, step, "--data-dir", folder)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.startswith(f"npl-mcp-server: the data folder {folder} cannot be written: ")
    assert "--data-dir" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.thorough
@pytest.mark.parametrize("gone", ["another in its place", "the lock"])
def test_a_server_without_its_data_folder_ends(tmp_path: Path, gone: str) -> None:
    """Otherwise no command could reach it, and a second server would start."""
    data = tmp_path / "data"
    with serving(tmp_path) as server:
        if gone == "the lock":
            (data / LOCK).unlink()
        else:
            data.rename(tmp_path / "moved")
            data.mkdir()
            (data / STATE_FILE).write_text("of another server", encoding="utf-8")
        assert server.process.wait(30) == 2
        assert "was removed while the server ran" in server.log
        assert "Traceback" not in server.log
    if gone == "another in its place":
        assert (data / STATE_FILE).read_text(encoding="utf-8") == "of another server"
    with serving(tmp_path) as second:
        assert second.process.poll() is None


def test_a_server_says_where_it_listens_and_nothing_else(tmp_path: Path) -> None:
    """Standard output has the address; a caller's mistakes leave standard error empty."""
    (tmp_path / "docs").mkdir()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    env = environment(tmp_path, NPL_MCP_PORT="0")
    with subprocess.Popen(command("--root", "docs"), cwd=tmp_path, env=env, **pipes) as process:
        first, pages, serves = (process.stdout.readline().decode() for _ in range(3))
        port = int(first.rpartition(":")[2].partition("/")[0])
        odd = (b"nonsense\r\n\r\n", b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /mcp HTTP/1.1\r\n")
        for data in odd:
            with socket.create_connection(("127.0.0.1", port)) as line:
                line.sendall(data)
                line.shutdown(socket.SHUT_WR)
                line.recv(1000)
        process.terminate()
        rest, errors = process.communicate(timeout=30)
    assert first.startswith("npl-mcp-server: listening on http://127.0.0.1:")
    assert pages == f"pages: http://127.0.0.1:{port}/\n"
    assert serves == f"serves {tmp_path / 'docs'}\n"
    assert (rest, errors) == (b"", b"")


@pytest.mark.thorough
def test_a_start_says_how_to_get_a_token(stopped: Path) -> None:
    """The output names the command; it also says that only the bundled reference is served."""
    log = stopped / "data" / "server.log"
    log.parent.mkdir()
    log.write_bytes(bytes(MAX_BYTES + 1))
    started = run(stopped, "start", NPL_MCP_TOKEN=TOKEN)
    *_, serves, token = started.stdout.splitlines()
    assert serves.startswith("no --root: the server has only the bundled reference")
    assert serves in log.read_text(encoding="utf-8")[:500]
    assert token.startswith("callers of the port need a token: npl-mcp token add")


def test_a_server_serves_the_folder_it_is_started_in(tmp_path: Path) -> None:
    """A call without a file is about its documents."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "siphons.md").write_text("# Siphons\n\nClean each siphon.\n", encoding="utf-8")
    with serving(tmp_path) as server:
        assert server.state.serves.startswith(f"serves the working directory, {tmp_path / 'work'}")
        answer = server.call("npl_load_tailored", {"context": "clean a siphon"}).data["data"]
        assert [row["file"] for row in answer["sections"]] == ["siphons.md"]


BROWSER = """#!/bin/sh
echo "$1" > {}
"""


@pytest.mark.thorough
def test_the_pages_are_told_and_opened(stopped: Path) -> None:
    """The start and ``open`` name the pages; ``open`` starts no server."""
    browser, seen = stopped / "browser", stopped / "seen"
    browser.write_text(BROWSER.format(seen), encoding="utf-8")
    browser.chmod(0o700)
    opened = run(stopped, "open", BROWSER=str(browser))
    assert (opened.returncode, "npl-mcp-server start" in opened.stderr) == (3, True)
    started = run(stopped, "start")
    state = read_state(stopped / "data")
    assert state is not None
    assert started.stdout.splitlines()[1] == f"pages: {state.url}/"
    assert run(stopped, "start").stdout.splitlines()[1] == f"pages: {state.url}/"
    assert f"pages: {state.url}/" in run(stopped, "status").stdout
    assert not seen.exists()
    opened = run(stopped, "open", BROWSER=str(browser))
    assert (opened.returncode, opened.stdout) == (0, f"{state.url}/\n"), opened.stderr
    assert seen.read_text(encoding="utf-8") == f"{state.url}/\n"
    assert state.token not in seen.read_text(encoding="utf-8")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("flags", "variables", "pages"), cases("npl_mcp/http/service")["where_the_pages_are"]
)
def test_where_the_pages_are(
    tmp_path: Path, flags: tuple[str, ...], variables: dict[str, str], pages: str | None
) -> None:
    """The address is the one people reach; without pages it is that of no page."""
    with serving(tmp_path, *flags, **variables) as server:
        assert server.state.pages == pages
        if server.state.url:
            status = server.request("GET", "/sign-in", headers={"Accept": "text/html"}).status
            assert status == (404 if pages is None else 200)
        if pages is None:
            opened = run(tmp_path, "open")
            assert (opened.returncode, "no pages" in opened.stderr) == (1, True)


def test_pages_that_only_show_change_nothing(tmp_path: Path) -> None:
    """They have no forms, and refuse forms of others."""
    with serving(tmp_path, "--web", "read") as server:
        assert server.state.pages == server.state.url
        server.call("chat_create_room", {"name": "Harbour", "members": ["ann"]})
        visitor = Visitor(server)
        page = visitor.open("/rooms/1")
        assert [form for form in page.all("form") if form.get("method") == "post"] == []
        sent = visitor.post("/rooms/1/messages", {"persona": "ann", "message": "x"})
        assert (sent.status, "only show" in sent.text) == (403, True)
        assert server.call("chat_get_feed", {"room_id": 1}).data["data"]["total"] == 1


ENDING: dict[str, tuple[str, str, Any, dict[str, str]]] = {
    "a call that runs": ("POST", "/mcp/tools/npl_section_index", {"file": "big.md"}, JSON),
    "a call that waits": ("POST", "/mcp/tools/chat_get_feed", {"room_id": 1, "since": 1, "wait": 60}, JSON),
    "a message": (
        "POST",
        "/mcp",
        asking(1, "tools/call", name="npl_section_index", arguments={"file": "big.md"}, _meta=META),
        {**BOTH, "MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "npl_section_index"},
    ),
    "a page": ("GET", "/search?q=paragraph", None, {}),
    "half a body": ("POST", "/mcp/tools/session_list", b"{", {**JSON, "Content-Length": "9"}),
}
OF_SESSIONS = {
    7: ("npl_section_index", {"file": "big.md"}),
    "wait": ("chat_get_feed", {"room_id": 1, "since": 1, "wait": 60}),
}
"""Calls whose streams have begun, by the number of the request."""


@pytest.mark.thorough
def test_calls_in_flight_are_told_that_the_server_ends(tmp_path: Path) -> None:
    """The envelope or the last event of the stream says so, for any tool; the log has it once."""
    with serving(tmp_path, files=big(), NPL_TIME_LIMIT="600") as server:
        assert server.call("chat_create_room", {"name": "r", "members": ["a"]}).status == 200
        accept = {**BOTH, "Mcp-Session-Id": server.session_of()}
        with ThreadPoolExecutor(len(ENDING) + len(OF_SESSIONS)) as callers:
            asked = {what: callers.submit(server.request, *of) for what, of in ENDING.items()}
            sent = {number: calling(number, tool, **given) for number, (tool, given) in OF_SESSIONS.items()}
            streams = {
                number: callers.submit(server.request, "POST", "/mcp", body, accept)
                for number, body in sent.items()
            }
            until(lambda: server.in_flight() == 6)
            server.process.send_signal(signal.SIGTERM)
            answers = {what: answer.result(60) for what, answer in asked.items()}
            events = {number: stream.result(60).body for number, stream in streams.items()}
        assert server.process.wait(60) == 0
    for number, event in events.items():
        last = json.loads(event.rpartition(b"data: ")[2].partition(b"\r\n")[0])
        assert (last["id"], "the server is shutting down" in last["error"]["message"]) == (number, True)
    assert {what: answer.status for what, answer in answers.items()} == dict.fromkeys(ENDING, 503)
    assert all(answer.data["error_code"] == "OPERATION_FAILED" for answer in answers.values())
    assert all(answer.headers["npl-unfinished"] == "1" for answer in answers.values())
    assert server.log.count("the server is shutting down") == 1
    assert "Traceback" not in server.log


def test_a_server_that_gets_no_processor_tells_its_callers_all_the_same(tmp_path: Path) -> None:
    """The time for calls in flight counts from the signal."""
    with serving(tmp_path) as server, ThreadPoolExecutor(1) as callers:
        assert server.call("chat_create_room", {"name": "r", "members": ["a"]}).status == 200
        waiting = callers.submit(server.request, *ENDING["a call that waits"])
        until(lambda: server.in_flight() == 1)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.05)  # the signal has arrived; the server has not looked at its connections yet
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(0.7)
        server.process.send_signal(signal.SIGCONT)
        assert waiting.result(60).status == 503
