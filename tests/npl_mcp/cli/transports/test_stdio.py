"""A server for one command, over standard streams."""

import sys
from pathlib import Path
from typing import Any

import pytest

from npl_mcp import __version__
from npl_mcp.cli.transports import stdio
from npl_mcp.cli.transports.base import TransportError
from npl_mcp.cli.transports.connecting import InProcess
from npl_mcp.cli.transports.stdio import StdioTransport
from npl_mcp.config.settings import Settings
from tests.programs import Run


def test_over_standard_streams(data: Path, program: Run) -> None:
    """A command starts a server, calls its tool and ends it."""
    assert program("npl-worklog", "init", "--id", "n", "--via", "stdio")[:2] == (0, "n\n")
    assert InProcess(Settings.from_env()).call("worklog_status", {})["data"]["session_id"] == "n"


ANSWERING = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    print("a remark", flush=True)
    if asked["method"] == "initialize":
        server = {"name": NAME, "version": VERSION}
        answer = {"result": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": server}}
    elif asked["method"] == "tools/list":
        answer = {"result": {"tools": []}}
    elif asked["method"] == "tools/call":
        answer = ANSWER
    else:
        answer = {"error": {"code": -32601, "message": "unknown"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""
GOOD = {"result": {"content": [{"type": "text", "text": '{"success": true, "data": 1}'}]}}


def answering(answer: object = GOOD, name: str = "npl", version: str = __version__) -> str:
    """Return a server whose tools answer with some JSON, or with what an expression returns."""
    code = answer if isinstance(answer, str) else repr(answer)
    return ANSWERING.replace("NAME", repr(name)).replace("VERSION", repr(version)).replace("ANSWER", code)


def called(script: str) -> dict[str, Any]:
    with StdioTransport(command=[sys.executable, "-c", script]) as server:
        return server.call("x", {"a": "ü"})


def test_a_server_may_print_remarks(capfd: pytest.CaptureFixture[str]) -> None:
    """Lines that are not messages are skipped, and not logged."""
    assert called(answering()) == {"success": True, "data": 1}
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("script", "problem", "sent"),
    [
        ("", "did not start", False),
        ("import sys\nfor line in sys.stdin:\n    sys.exit(3)\n", "did not start", False),
        (answering(version="99.0.0"), "has version 99.0.0", False),
        (answering(name="other"), "is not an npl server", False),
        (answering({"error": {"code": -32602, "message": "no"}}), "gave no reply: no", True),
        (answering({"result": {"content": []}}), "no reply of a tool", True),
        (answering("sys.exit()"), "gave no reply", True),
    ],
    ids=["silent", "gone", "newer", "stranger", "error", "empty", "gone half-way"],
)
def test_a_server_that_fails(script: str, problem: str, sent: bool) -> None:
    """The failures are those of HTTP."""
    with pytest.raises(TransportError, match=problem) as raised:
        called(script)
    assert raised.value.sent is sent


@pytest.mark.thorough
def test_a_server_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may hang at the start or in a call; a missing program is a failure."""
    with monkeypatch.context() as patch:
        patch.setattr(stdio, "START_SECONDS", 0.2)
        with pytest.raises(TransportError, match="did not start") as raised:
            called("import time\ntime.sleep(60)")
    assert not raised.value.sent
    monkeypatch.setattr(stdio, "CALL_SECONDS", 0.5)
    with pytest.raises(TransportError, match="timed out") as raised:
        called(answering("__import__('time').sleep(60)"))
    assert raised.value.sent
    with pytest.raises(TransportError, match="did not start"):
        StdioTransport(command=["/nowhere/npl"]).call("x", {})
