"""A server of one's own for one command, over standard streams."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from npl_mcp import __version__
from npl_mcp.cli.commands import worklog
from npl_mcp.cli.transports.direct import Direct
from npl_mcp.cli.transports.stdio import Stdio
from npl_mcp.cli.transports.wire import WireError


def test_over_standard_streams(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A server of its own for one command; all it says is the tool's answer."""
    assert worklog.main(["init", "--id", "n", "--via", "stdio"]) == 0
    assert capsys.readouterr().out == "n\n"
    assert Direct().call("worklog_current")["data"] == {"session_id": "n"}


ANSWERING = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    print("a remark", flush=True)
    print('{"jsonrpc": "2.0", "method": "notifications/message", "params": {}}', flush=True)
    print('{"jsonrpc": "2.0", "id": %d, "method": "ping"}' % asked["id"], flush=True)
    if asked["method"] == "initialize":
        answer = {"result": {"serverInfo": {"name": "npl", "version": VERSION}}}
    else:
        answer = ANSWER
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


def answering(version: str = __version__, answer: object = None) -> str:
    good = {"result": {"content": [{"type": "text", "text": '{"success": true, "data": 1}'}]}}
    script = ANSWERING.replace("VERSION", repr(version))
    return script.replace("ANSWER", repr(good if answer is None else answer))


def spoken(script: str, start: float = 30.0, answer: float = 30.0) -> dict[str, Any]:
    server = Stdio([sys.executable, "-c", script], start=start, answer=answer)
    try:
        return server.ask("x", {"a": "ü"})
    finally:
        server.close()


def test_a_talkative_server_is_understood() -> None:
    """Lines that are no answer are passed over."""
    assert spoken(answering()) == {"success": True, "data": 1}


ENDING = "import sys\nfor line in sys.stdin:\n    {}\n"


@pytest.mark.parametrize(
    ("script", "problem", "sent"),
    [
        ("", "ended without an answer", False),
        (ENDING.format("sys.exit(3)"), "ended without an answer", False),
        (answering("99.0.0"), "has version 99.0.0", False),
        (answering().replace("'npl'", "'other'").replace('"npl"', '"other"'), "is no server of npl", False),
        (answering(answer={"error": {"code": -32602, "message": "no"}}), "no answer of a tool", True),
        (answering(answer={"result": {"content": []}}), "no answer of a tool", True),
        (
            answering().replace("answer = {'result': {'content'", "sys.exit() or {'result': {'content'"),
            "ended",
            True,
        ),
    ],
    ids=["silent", "gone", "newer", "stranger", "error", "empty", "gone half-way"],
)
def test_a_server_of_ones_own_that_fails(script: str, problem: str, sent: bool) -> None:
    """The same failures as over HTTP; the process has ended afterwards."""
    with pytest.raises(WireError, match=problem) as raised:
        spoken(script)
    assert raised.value.sent is sent


def test_a_server_of_ones_own_that_hangs_is_ended() -> None:
    """At the start, and in a call; ending it does not take long either."""
    with pytest.raises(WireError, match=r"does not answer within 0\.2 s") as raised:
        spoken("import time\ntime.sleep(60)", start=0.2)
    assert not raised.value.sent
    hanging = answering().replace("answer = {'result'", "import time; time.sleep(60); answer = {'result'")
    with pytest.raises(WireError, match=r"does not answer within 0\.2 s") as raised:
        spoken(hanging, answer=0.2)
    assert raised.value.sent
    with pytest.raises(WireError, match="cannot be started"):
        Stdio(["/nowhere/npl"]).ask("x", {})
