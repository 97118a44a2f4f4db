"""Sessions of one process: equal answers, own documents and permissions, and no loss when something dies."""

import fcntl
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.config import sessions
from npl_mcp.config.programs import SERVER
from npl_mcp.server.startup import MAX_BYTES
from tests.messages import READY, asking, calling, hello
from tests.npl_mcp.http.http_server import environment
from tests.npl_mcp.server.speaking import Speaker, started
from tests.until import until

FILES = {
    "a/fruit.md": "# Apples\n\nApples keep for weeks.\n",
    "b/tools.md": "# Hammers\n\nHammers hit nails.\n",
}

SCRIPT = [
    hello(),
    READY,
    asking(1, "tools/list"),
    calling(2, "npl_load_tailored", context="apples"),
    calling(3, "npl_load_tailored", file="none.md"),
    calling(4, "npl_load_tailored", contxt="apples"),
    b"{not JSON",
    asking(5, "no/method"),
    asking(6, "resources/templates/list"),
    calling(7, "chat_create_room", name="general", members=["ann"]),
]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with documents, for sessions of one server, which ends afterwards."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text, encoding="utf-8")
    yield tmp_path
    if (server := shown(tmp_path)) is not None:
        os.kill(server["process"], signal.SIGKILL)


def shown(folder: Path) -> dict[str, Any] | None:
    return sessions.ask(str(folder / "data"))


def pid_of(folder: Path) -> int:
    server = shown(folder)
    assert server is not None
    return int(server["process"])


def session(stack: ExitStack, folder: Path, root: str, *flags: str, **variables: str) -> Speaker:
    words = ("--root", str(folder / root), "--shared", *flags)
    return stack.enter_context(started(folder, *words, **variables))


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    module = "npl_mcp.cli.commands.serving" if words[0] in ("status", "stop") else "npl_mcp"
    return subprocess.run(
        [sys.executable, "-m", module, *words],
        env=environment(folder),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )


def is_waiting(client: Speaker) -> bool:
    """Return whether a pipe has passed all that was sent to it."""
    unread = fcntl.ioctl(client.stdin, termios.FIONREAD, bytes(4))
    state = Path(f"/proc/{client.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    return not any(unread) and state == "S"


def text_of(answer: Any) -> str:
    return str(answer["content"][0]["text"])


def test_sessions_of_one_process_are_like_processes_of_their_own(folder: Path) -> None:
    """Those that start at once share one server; each sees and writes what its own flags allow."""
    with ExitStack() as stack:
        first = session(stack, folder, "a", "--write")
        second = session(stack, folder, "b", "--format", "markdown")
        place = {"NPL_MCP_DATA_DIR": str(folder / "own")}
        own = stack.enter_context(started(folder, "--root", str(folder / "a"), "--write", **place))
        answers = []
        for speaker in (own, first):
            speaker.send(*SCRIPT)
            answers.append(sorted(speaker.stdout.readline() for _ in SCRIPT[1:]))
        assert answers[0] == answers[1]
        third = session(stack, folder, "b", cwd="w\x1b[2J", NPL_LOG_CALLS="on")
        for speaker in (second, third):
            speaker.shake_hands()
            assert "hit nails" in text_of(speaker.call("npl_load_tailored", context="hammers"))
        # One session's documents, form and permission are not another's.
        for file in (str(folder / "a/fruit.md"), "fruit.md", "../a/fruit.md"):
            assert second.call("npl_load_tailored", file=file)["isError"]
        assert "keep" not in text_of(second.call("npl_load_tailored", context="apples"))
        edit = {"operation": "append", "content": "More."}
        assert not first.call("npl_update_section", file="fruit.md", selector="# Apples", **edit)["isError"]
        for file in ("tools.md", str(folder / "a/fruit.md")):
            assert second.call("npl_update_section", file=file, selector="# Hammers", **edit)["isError"]
        process = pid_of(folder)
        reason = "a process of its own, because the process of the others has another value of log_calls"
        for command in ("status", "doctor"):
            told = run(folder, command).stdout
            assert f"2 in process {process}" in told
            assert f"serves {folder / 'a'}, writes: process " in told
            assert f"in {folder}/w\\x1b[2J: {reason}" in told
        assert run(folder, "stop").stdout == f"stopped: 2 sessions (process {process})\n"
        # The next message starts the next server, which knows the client.
        assert "More." in text_of(first.call("npl_load_tailored", context="apples"))
        assert pid_of(folder) != process
        assert [speaker.end() for speaker in (first, second, third)] == [0, 0, 0]


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir])
def test_another_file_in_place_of_the_socket_leaves_each_session_its_own_process(
    folder: Path, make: Any
) -> None:
    """No server is tried, and doctor names the file."""
    (folder / "data").mkdir()
    make(folder / "data" / sessions.SOCKET)
    with ExitStack() as stack:
        client = session(stack, folder, "a")
        client.shake_hands()
        assert "keep for weeks" in text_of(client.call("npl_load_tailored", context="apples"))
    assert not (folder / "data" / sessions.LOG).exists()
    told = run(folder, "doctor").stdout
    assert f"each has a process of its own: {folder}/data/{sessions.SOCKET} is not a socket" in told


def test_what_a_killed_server_has_not_answered_is_asked_again_or_refused(folder: Path) -> None:
    """A call is repeated if it only reads or has an id; the socket of a killed server is replaced."""
    with ExitStack() as stack:
        client = session(stack, folder, "a")
        client.shake_hands()
        client.call("chat_create_room", name="general", members=["ann"])
        server = pid_of(folder)
        os.kill(server, signal.SIGSTOP)
        message = {"room_id": 1, "persona": "ann"}
        client.send(
            calling(1, "npl_load_tailored", context="apples"),
            calling(2, "chat_send_message", **message, message="lost"),
            calling(3, "chat_send_message", **message, message="kept", request_id="0123456789abcdef"),
            calling(4, "chat_send_message", **message, message="cancelled", request_id="0123456789abcdee"),
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4}},
            asking(5, "ping"),
        )
        until(lambda: is_waiting(client))
        os.kill(server, signal.SIGKILL)
        answers = {answer["id"]: answer for answer in (client.receive() for _ in range(4))}
        assert "keep for weeks" in text_of(answers[1]["result"])
        assert answers[2]["error"]["message"].startswith("the server ended before it answered")
        assert not answers[3]["result"]["isError"]
        assert answers[5]["result"] == {}
        assert pid_of(folder) != server
        # The same id again: one message.
        again = client.call("chat_send_message", **message, message="kept", request_id="0123456789abcdef")
        assert again == answers[3]["result"]
        feed = text_of(client.call("chat_get_feed", room_id=1))
        assert [feed.count(word) for word in ("lost", "kept", "cancelled")] == [0, 1, 0], feed
        # An answer of any length is no sign of a dead server.
        (folder / "a/long.md").write_text("# Long\n\n" + ('"' * 99 + "\n") * 60_000, encoding="utf-8")
        server = pid_of(folder)
        long = client.call("npl_load_tailored", file="long.md", selectors=["# Long"], token_budget=0)
        assert len(json.dumps(long)) > 16 << 20
        assert pid_of(folder) == server
        # Both die at once.
        os.kill(pid_of(folder), signal.SIGKILL)
        client.process.kill()
        other = session(stack, folder, "a")
        other.shake_hands()
        assert "kept" in text_of(other.call("chat_get_feed", room_id=1))
        # Half a message, and its sender dies: its session ends, and no other.
        half = session(stack, folder, "b")
        half.shake_hands()
        half.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "meth')
        half.stdin.flush()
        half.process.kill()
        until(lambda: shown(folder)["sessions"] == 1)
        assert other.ask("ping")["result"] == {}


def test_a_server_that_is_told_to_end_first_answers_calls_of_less_than_a_second(folder: Path) -> None:
    """Longer ones are told, and messages that come meanwhile get the next server."""
    with ExitStack() as stack:
        client = session(stack, folder, "a")
        client.shake_hands()
        client.call("worklog_init")
        for agent, seconds in enumerate((0.7, 60)):
            client.send(calling(agent, "worklog_read", agent_id=f"agent {agent}", wait=seconds))
        client.ask("ping")
        server = pid_of(folder)
        os.kill(server, signal.SIGTERM)
        until(lambda: (shown(folder) or {}).get("process") != server)
        client.send(asking(2, "ping"))
        answers = {answer["id"]: answer for answer in (client.receive() for _ in range(3))}
        assert not answers[0]["result"]["isError"]
        assert answers[1]["error"]["message"].startswith("the server ended before it answered")
        assert answers[2]["result"] == {}
        assert pid_of(folder) != server


def test_a_server_without_sessions_ends_and_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile a call can be cancelled and tells of its progress, and old clients write headers."""
    idle = "from npl_mcp.config import sessions as s; s.SESSIONS = s.SESSIONS.replace('()', '(idle=0.5)')"
    command = [sys.executable, "-c", f"import sys; {idle}; {SERVER}", "--root", str(folder / "a"), "--shared"]
    for name in ("work", "data"):
        (folder / name).mkdir()
    log = folder / "data" / sessions.LOG
    log.write_bytes(bytes(MAX_BYTES + 1))
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(folder), cwd=folder / "work"
    ) as process:
        client = Speaker(process)
        client.shake_hands()
        client.call("create_session")  # a former name, of which the log, already too long, tells
        until(lambda: b"'create_session' is deprecated" in log.read_bytes()[:200])
        client.call("chat_create_room", name="general", members=["ann"])
        seen = json.loads(text_of(client.call("chat_get_feed", room_id=1)))["data"]["cursor"]
        waiting = calling(1, "chat_get_feed", room_id=1, since=seen, wait=60)
        waiting["params"]["_meta"] = {"progressToken": "p"}
        client.send(waiting)
        told = client.receive()
        assert (told["method"], told["params"]["progressToken"]) == ("notifications/progress", "p")
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        client.send(asking(2, "ping"))
        while (answer := client.receive()).get("method"):
            pass
        assert answer == {"jsonrpc": "2.0", "id": 2, "result": {}}
        server = pid_of(folder)
        # With too many open files, the sessions go on.
        monkeypatch.chdir(folder / "data")
        files = resource.prlimit(server, resource.RLIMIT_NOFILE)
        resource.prlimit(server, resource.RLIMIT_NOFILE, (1, files[1]))
        with socket.socket(socket.AF_UNIX) as late:
            late.connect(sessions.SOCKET)
            assert client.ask("ping")["result"] == {}
            resource.prlimit(server, resource.RLIMIT_NOFILE, files)
        assert pid_of(folder) == server
        with ExitStack() as stack:
            old = session(stack, folder, "a")
            body = json.dumps(asking(1, "ping")).encode()
            old.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            old.stdin.flush()
            assert old.stdout.readline().startswith(b"Content-Length: ")
            assert shown(folder)["sessions"] == 2
        assert client.end() == 0
    until(lambda: not Path(f"/proc/{server}").exists())
    assert shown(folder) is None
    assert not (folder / "data" / sessions.SOCKET).exists()
