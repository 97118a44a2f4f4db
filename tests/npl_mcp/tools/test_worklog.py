"""Promises of the worklog tools, as an MCP client sees them."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.config.settings import Settings
from tests.conftest import Call, Connect, calls, cases, client_of, envelope

LOG = ("worklog_log", {"agent_id": "a-1", "action": "found", "summary": "text"})
INIT = ("worklog_init", {"session_id": "s1"})


def data(settings: Settings, *requests: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    answers = calls(settings, list(requests))
    assert all(answer["success"] for answer in answers), answers
    return [answer["data"] for answer in answers]


# Four entries by a-1, a-1, b-1, a-1, the last logged after the first two reads; what the predecessor's
# command line printed for the same steps.
READS: list[tuple[dict[str, Any], list[int], int]] = cases("npl_mcp/tools/worklog")


async def test_reading_follows_the_cursor(settings: Settings) -> None:
    """Each agent gets what it has not seen; ``since`` and ``peek`` keep their former meaning."""
    async with client_of(settings) as client:
        await client.call_tool(*INIT)
        for _ in range(3):
            await client.call_tool(*LOG)
        seen = []
        for step, _, _ in READS:
            arguments = {"agent_id": "r", **step}
            if arguments.pop("log", False):
                await client.call_tool(*LOG)
            answer = envelope(await client.call_tool("worklog_read", arguments))["data"]
            seen.append(([entry["seq"] for entry in answer["items"]], answer["cursor"]))
        assert seen == [(seqs, cursor) for _, seqs, cursor in READS]


def test_an_entry_comes_back_as_it_was_logged(settings: Settings) -> None:
    """All given fields come back, empty tags and text beyond ASCII included."""
    given = {
        "agent_id": "scout-1",
        "action": "found",
        "summary": "zwei\nZeilen „ü“ 🙂",
        "data": {"k": [1, 2.5, None, "é"], "z": {"a": False}},
        "tags": ["x", "y", "", "y"],
        "refs": {"files": ["a.py:3"]},
        "agent_type": "scout",
    }
    reads = [("worklog_read", {"agent_id": "r", **more}) for more in ({}, {"since": 9})]
    _, first, _, read, beyond = data(settings, INIT, ("worklog_log", given), LOG, *reads)
    assert read["items"][0] == {**given, "seq": 1, "ts": first["ts"]}
    assert first == {"session_id": "s1", "seq": 1, "ts": first["ts"]}
    assert {*read["items"][1]} == {"seq", "ts", "agent_id", "agent_type", "action", "summary"}
    assert read["items"][1]["agent_type"] == "unknown"
    assert (read["remaining"], beyond["remaining"], beyond["offset"], beyond["total"]) == (0, 0, 2, 2)


@pytest.mark.parametrize("value", [0, False, "", "null", [], {}, 1.5, [None]])
def test_data_may_be_any_json(settings: Settings, value: object) -> None:
    name, arguments = LOG
    *_, read = data(settings, (name, {**arguments, "data": value}), ("worklog_read", {"agent_id": "r"}))
    assert read["items"][0]["data"] == value
    assert type(read["items"][0]["data"]) is type(value)


def test_closing_is_for_good(settings: Settings) -> None:
    """It refuses entries under any name, which go into no other session; it can be read and closed again."""
    name, arguments = LOG
    by_id = {"session_id": "s1"}
    close, end = ("worklog_close", {}), ("worklog_close", by_id)
    late = [LOG, (name, {**arguments, **by_id}), INIT]
    read = ("worklog_read", {"agent_id": "r", **by_id})
    gone = [close, ("worklog_status", {}), ("worklog_read", {"agent_id": "r"})]
    answers = calls(settings, [INIT, LOG, close, end, *late, read, *gone])
    closed, again = answers[2]["data"], answers[3]["data"]
    assert closed == again
    assert (closed["status"], closed["entry_count"]) == ("closed", 1)
    codes = [answer.get("error_code") for answer in answers[4:]]
    assert codes == ["OPERATION_FAILED"] * 3 + [None] + ["SESSION_NOT_FOUND"] * 3
    assert all("Session s1 is closed" in late["error"] for late in answers[4:7])
    assert "worklog init" in answers[4]["error"]
    assert answers[8]["error"].startswith("No active session")
    assert len(answers[7]["data"]["items"]) == 1


def test_a_new_session_comes_before_an_archived_one_with_its_id(settings: Settings) -> None:
    """The archived one has a name in the archive."""
    new = ("worklog_init", {"session_id": "s1", "task": "new"})
    names = ("s1", "archive/s1")
    seen = [("worklog_status", {"session_id": name}) for name in names]
    answers = data(settings, INIT, ("worklog_close", {"archive": True}), new, *seen)
    assert [answer.get("task") for answer in answers[3:]] == ["new", None]


def test_two_readers_of_one_agent_share_the_entries(call: Call) -> None:
    call.do(*INIT[:1], **INIT[1])
    for _ in range(30):
        call.do(LOG[0], **LOG[1])
    read = partial(call.do, "worklog_read", agent_id="r", limit=3)
    with ThreadPoolExecutor(4) as pool:
        pages = pool.map(lambda _: read()["items"], range(12))
    assert sorted(entry["seq"] for page in pages for entry in page) == list(range(1, 31))


def test_a_day_can_have_several_sessions(settings: Settings) -> None:
    """An open one is resumed, as the answer says; after its close the next one is made."""
    init, close = ("worklog_init", {}), ("worklog_close", {})
    first, _, second, again, _, third, _, other, back = data(
        settings, init, close, init, init, close, init, LOG, ("worklog_init", {"session_id": "other"}), init
    )
    today = first["session_id"]
    made = [(answer["session_id"], answer["new"]) for answer in (first, second, again, third, back)]
    assert made == [
        (today, True),
        (f"{today}-2", True),
        (f"{today}-2", False),
        (f"{today}-3", True),
        (f"{today}-3", False),
    ]
    assert other["session_id"] == "other"
    current, log = data(settings, ("worklog_status", {}), LOG)
    assert current["session_id"] == log["session_id"] == f"{today}-3"


def test_a_number_that_was_closed_before_is_not_used_again(settings: Settings) -> None:
    """Names of sessions that only begin like the day's do not count."""
    (first,) = data(settings, ("worklog_init", {}))
    today = first["session_id"]
    close = ("worklog_close", {})
    named = [("worklog_init", {"session_id": f"{today}-{end}"}) for end in ("2", "notes", "22")]
    *_, made = data(
        settings, close, *(step for init in named for step in (init, close)), ("worklog_init", {})
    )
    assert made["session_id"] == f"{today}-3"


BAD: list[tuple[str, dict[str, Any], str]] = [
    *cases("npl_mcp/tools/worklog_bad")["bad"],
    ("worklog_init", {"session_id": "x" * 10_000_000}, "INVALID_PARAMETER"),
    ("worklog_log", {"agent_id": "x" * 10_000_000}, "INVALID_PARAMETER"),
    ("worklog_log", {"summary": "x" * 65_537}, "INVALID_PARAMETER"),
    ("worklog_log", {"data": "x" * 300_000}, "INVALID_PARAMETER"),
    ("worklog_status", {"session_id": "x" * 10_000_000}, "INVALID_PARAMETER"),
]


def test_bad_arguments_change_nothing(settings: Settings) -> None:
    """Each gets its code; the only session still has its only entry."""
    nested: Any = "x"
    for _ in range(40):
        nested = [nested]
    bad = [*BAD, ("worklog_log", {"data": nested}, "INVALID_PARAMETER")]
    requests = [
        (tool, {**LOG[1], **arguments} if tool == "worklog_log" else arguments) for tool, arguments, _ in bad
    ]
    _, _, *answers, status = calls(settings, [INIT, LOG, *requests, ("worklog_status", {})])
    for (tool, arguments, code), answer in zip(bad, answers, strict=True):
        assert answer.get("error_code") == code, (tool, str(arguments)[:80], answer)
        assert len(answer["error"]) < 1000
    assert (status["data"]["session_id"], status["data"]["entry_count"]) == ("s1", 1)
    assert list(settings.cwd.iterdir()) == []


def test_a_wrong_id_gets_near_names(settings: Settings) -> None:
    """The message has the predecessor's words, and the probable id."""
    init = ("worklog_init", {"session_id": "retry-audit"})
    answer = calls(settings, [init, ("worklog_status", {"session_id": "retry-adit"})])[1]
    assert answer["error"] == "Session not found: retry-adit; near: retry-audit"


def test_a_worklog_makes_no_folder(settings: Settings) -> None:
    read = ("worklog_read", {"agent_id": "b-1"})
    assert calls(settings, [read])[0]["error_code"] == "SESSION_NOT_FOUND"
    data(settings, INIT, LOG, read, ("worklog_close", {"archive": True}))
    assert list(settings.cwd.iterdir()) == []


def test_servers_of_different_folders_share_a_project(settings: Settings, tmp_path: Path) -> None:
    """A project is a folder's path, even of a missing folder."""
    (tmp_path / "elsewhere").mkdir()
    for project in (tmp_path / "absent", settings.cwd):
        own = replace(settings, project=project)
        other = replace(own, cwd=tmp_path / "elsewhere")
        data(own, INIT, LOG)
        (seen,) = data(other, ("worklog_read", {"agent_id": "b-1"}))
        assert (seen["session_id"], len(seen["items"])) == ("s1", 1)
        assert list(other.cwd.iterdir()) == []
    assert not (tmp_path / "absent").exists()


def entry(agent: str, **more: Any) -> dict[str, Any]:
    return {"agent_id": agent, "action": "did", "summary": "x", **more}


def test_the_session_started_last_is_everybodys(settings: Settings, connect: Connect) -> None:
    """Another one is named; a closed one is replaced by a new one only on request."""
    ann, bo = (connect(settings) for _ in range(2))
    assert ann("worklog_init", session_id="a")["success"]
    assert bo("worklog_init", session_id="b")["success"]
    assert ann("worklog_log", **entry("ann"))["data"]["session_id"] == "b"
    assert ann("worklog_log", **entry("ann", session_id="a"))["data"]["session_id"] == "a"
    assert ann("worklog_close")["data"]["session_id"] == "b"
    assert bo("worklog_log", **entry("bo"))["error_code"] == "OPERATION_FAILED"
    assert bo("worklog_read", agent_id="bo")["error_code"] == "SESSION_NOT_FOUND"
    assert bo("worklog_init", session_id="a")["data"]["current"]
    assert ann("worklog_log", **entry("ann"))["data"]["session_id"] == "a"
