"""Todos that are claimed and passed on, as an MCP client sees them."""

from typing import Any

import anyio
import pytest

from npl_mcp.config.settings import Settings
from tests import engines
from tests.conftest import Call, cases, client_of, envelope
from tests.until import soon

TEAM = ["ann", "bo", "cy"]
LONG = 30


@pytest.fixture
def den(call: Call) -> Call:
    """Calls of a server with a room of three members, room 1."""
    call("chat_create_room", name="den", members=TEAM)
    return call


def todo(call: Call, **more: Any) -> int:
    given = {"room_id": 1, "persona": "ann", "description": "do it"} | more
    return int(call.do("chat_create_todo", **given)["event_id"])


def claim(call: Call, persona: str = "bo", **which: Any) -> dict[str, Any]:
    return dict(call.do("chat_claim_todo", persona=persona, **which))


def listed(call: Call, **which: Any) -> list[int]:
    page = call.do("chat_list_todos", **{"room_id": 1} | which)
    assert page["total"] == len(page["items"])
    return [item["event_id"] for item in page["items"]]


def test_a_claim_is_repeated(den: Call) -> None:
    """A claim whose answer was lost is repeated, and tells no member twice."""
    first, two = todo(den), todo(den)
    assert [claim(den, **which)["todo"]["event_id"] for which in ({"room_id": 1}, {"event_id": first})] == [
        first
    ] * 2
    assert claim(den, "cy", room_id=1)["todo"]["event_id"] == two
    assert [kind for kind, _ in notes(den, "ann")] == ["todo_update"] * 2
    den("chat_update_todo", event_id=first, persona="bo", status="done")
    assert not claim(den, room_id=1)["claimed"]
    den("chat_update_todo", event_id=two, persona="ann", status="pending")
    assert claim(den, room_id=1)["todo"]["event_id"] == two


def notes(call: Call, persona: str) -> list[tuple[str, int]]:
    """Return kinds and events of a persona's notifications, oldest first."""
    items = call("chat_get_notifications", persona=persona)["data"]["items"]
    return [(item["notification_type"], item["event_id"]) for item in reversed(items)]


def test_the_former_assignee_of_a_todo_is_told(den: Call) -> None:
    two = todo(den, assigned_to="bo")
    den("chat_update_todo", event_id=two, persona="ann", status="pending", assigned_to="cy")
    assert [kind for kind, _ in notes(den, "bo")] == ["todo_assign", "todo_update"]
    assert [kind for kind, _ in notes(den, "cy")] == ["todo_assign"]
    claim(den, "cy", event_id=two)
    den("chat_update_todo", event_id=two, persona="ann", status="pending")
    assert [kind for kind, _ in notes(den, "cy")] == ["todo_assign", "todo_update"]


def test_todos_are_listed_by_state(den: Call) -> None:
    """A claimed todo is ready for no other agent, an assigned one for its assignee, a freed one for all."""
    free, own, done = todo(den), todo(den, assigned_to="cy"), todo(den)
    den("chat_update_todo", event_id=done, persona="ann", status="done")
    claim(den, event_id=free)
    for persona, ready, mine in (("bo", [], [free]), ("cy", [own], [own])):
        assert listed(den, filter="ready", persona=persona) == ready
        assert listed(den, filter="mine", persona=persona) == mine
    assert (listed(den), listed(den, filter="done")) == ([free, own], [done])
    den("chat_update_todo", event_id=free, persona="cy", status="pending")
    assert listed(den, filter="ready") == [free]
    shown = den("chat_get_feed", room_id=1, since=free - 1, limit=1)["data"]["items"][0]["data"]
    assert (shown["status"], shown["assigned_to"]) == ("pending", None)


def test_an_expected_status_keeps_two_agents_apart(den: Call) -> None:
    event = todo(den)
    start = {"event_id": event, "status": "in_progress", "expect": "pending"}
    assert den("chat_update_todo", persona="bo", assigned_to="bo", **start)["success"]
    before = den("chat_get_feed", room_id=1)
    late = den("chat_update_todo", persona="cy", assigned_to="cy", **start)
    assert (late["error_code"], late["error"]) == (
        "OPERATION_FAILED",
        f"todo {event} is in_progress, bo's; chat_list_todos shows what is ready",
    )
    assert den("chat_get_feed", room_id=1) == before


def test_a_claim_of_an_earlier_version_has_no_end(den: Call, settings: Settings) -> None:
    """It is in progress, or if its assignee claimed it, still assigned."""
    events = [todo(den), todo(den, assigned_to="bo")]
    claim(den, event_id=events[0])
    engines.execute(settings.data_folder, "UPDATE todo SET lease_until = '2020-01-01T00:00:00.000000Z'")
    assert [claim(den, event_id=event)["todo"]["status"] for event in events] == ["in_progress"] * 2
    assert listed(den, filter="ready", persona="cy") == []


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = cases("npl_mcp/tools/chat_todos")


def test_what_cannot_be_claimed(den: Call) -> None:
    assert todo(den, assigned_to="cy") == 4
    assert todo(den) == 5
    den("chat_update_todo", event_id=5, persona="ann", status="done")
    before = den("chat_list_todos", room_id=1)
    for case, (arguments, code, said) in REFUSED.items():
        answer = den("chat_claim_todo", **arguments)
        assert (answer.get("error_code"), said in answer.get("error", "")) == (code, True), (case, answer)
    assert den("chat_list_todos", room_id=1) == before


async def test_a_caller_waits_for_a_todo(settings: Settings) -> None:
    """The first of two waiting callers gets the todo, the second the next."""
    async with client_of(settings) as client:

        async def do(tool: str, **arguments: Any) -> Any:
            return envelope(await client.call_tool(tool, arguments))["data"]

        claimed: list[tuple[str, int]] = []

        async def work(persona: str) -> None:
            made = await do("chat_claim_todo", persona=persona, room_id=1, wait=LONG)
            claimed.append((persona, made["todo"]["event_id"]))

        await do("chat_create_room", name="den", members=TEAM)
        assert await do("chat_claim_todo", persona="bo", room_id=1, wait=0.02) == {"claimed": False}
        async with anyio.create_task_group() as group:
            group.start_soon(work, "bo")
            group.start_soon(work, "cy")
            await anyio.wait_all_tasks_blocked()
            first = (await do("chat_create_todo", room_id=1, persona="ann", description="one"))["event_id"]
            await soon(lambda: claimed)
            assert [event for _, event in claimed] == [first]
            await do("chat_create_todo", room_id=1, persona="ann", description="two")
        assert sorted(persona for persona, _ in claimed) == ["bo", "cy"]
