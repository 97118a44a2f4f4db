"""Todos that are claimed for a time and wait for others, as an MCP client sees them."""

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


def end_leases(settings: Settings) -> None:
    over = "UPDATE todo SET lease_until = '2020-01-01T00:00:00.000000Z' WHERE lease_until > ''"
    engines.execute(settings.data_folder, over)


def test_a_renewal_prolongs_and_tells_no_member(den: Call) -> None:
    """It adds no event and no notification, only time."""
    event = todo(den)
    first = claim(den, event_id=event, lease=60)["todo"]["lease_until"]
    events = den("chat_list_rooms")["data"]["items"][0]["event_count"]
    assert claim(den, event_id=event, lease=600)["todo"]["lease_until"] > first
    assert den("chat_list_rooms")["data"]["items"][0]["event_count"] == events


def test_a_claim_is_repeated(den: Call, settings: Settings) -> None:
    """A claim whose answer was lost is repeated; after its end the next todo comes."""
    first, two = todo(den), todo(den)
    assert [claim(den, room_id=1)["todo"]["event_id"] for _ in range(2)] == [first, first]
    assert claim(den, "cy", room_id=1)["todo"]["event_id"] == two
    den("chat_update_todo", event_id=first, persona="bo", status="done")
    assert not claim(den, room_id=1)["claimed"]
    end_leases(settings)
    assert claim(den, room_id=1)["todo"]["event_id"] == two


def notes(call: Call, persona: str) -> list[tuple[str, int]]:
    """Return kinds and events of a persona's notifications, oldest first."""
    items = call("chat_get_notifications", persona=persona)["data"]["items"]
    return [(item["notification_type"], item["event_id"]) for item in reversed(items)]


def test_the_former_holder_of_a_todo_is_told(den: Call, settings: Settings) -> None:
    """It is told when another agent gets the todo, not when its claim ends."""
    event = todo(den)
    claim(den, event_id=event)
    assert notes(den, "bo") == []
    end_leases(settings)
    assert notes(den, "bo") == []
    claim(den, "cy", event_id=event)
    assert [kind for kind, _ in notes(den, "bo")] == ["todo_update"]
    two = todo(den, assigned_to="bo")
    den("chat_update_todo", event_id=two, persona="ann", status="pending", assigned_to="cy")
    assert [kind for kind, _ in notes(den, "bo")][1:] == ["todo_assign", "todo_update"]
    assert [kind for kind, _ in notes(den, "cy")] == ["todo_assign"]


async def test_a_call_wakes_when_a_claim_ends(settings: Settings) -> None:
    """No commit wakes it; a caller that waits for the room or the todo gets it."""
    async with client_of(settings) as client:

        async def do(tool: str, **arguments: Any) -> Any:
            return envelope(await client.call_tool(tool, arguments))["data"]

        await do("chat_create_room", name="den", members=TEAM)
        for which in ("room_id", "event_id"):
            event = (await do("chat_create_todo", room_id=1, persona="ann", description="x"))["event_id"]
            where = {which: event if which == "event_id" else 1}
            await do("chat_claim_todo", persona="bo", event_id=event, lease=1)
            claimed = (await do("chat_claim_todo", persona="cy", **where, wait=LONG))["todo"]
            assert (claimed["event_id"], claimed["assigned_to"]) == (event, "cy")
            await do("chat_update_todo", event_id=event, persona="cy", status="done")


async def test_a_caller_that_waits_for_a_todo_gets_it_when_it_is_free(settings: Settings) -> None:
    """It is released, or its last blocker done; a todo that is never free is refused at once."""
    async with client_of(settings) as client:

        async def ask(tool: str, **arguments: Any) -> Any:
            return envelope(await client.call_tool(tool, arguments, raise_on_error=False))

        await ask("chat_create_room", name="den", members=TEAM)
        given = {"room_id": 1, "persona": "ann", "description": "x"}
        first = (await ask("chat_create_todo", **given))["data"]["event_id"]
        second = (await ask("chat_create_todo", **given, blocked_by=[first]))["data"]["event_id"]
        await ask("chat_claim_todo", persona="bo", event_id=first)
        for event, status in ((first, "pending"), (second, "done")):
            answers = []

            async def wait(event: int = event, answers: list[Any] = answers) -> None:
                answers.append(await ask("chat_claim_todo", persona="cy", event_id=event, wait=LONG))

            async with anyio.create_task_group() as group:
                group.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                assert answers == []
                who = "bo" if event == first else "cy"
                await ask("chat_update_todo", event_id=first, persona=who, status=status)
            assert answers[0]["data"]["todo"]["event_id"] == event
        done = await ask("chat_claim_todo", persona="bo", event_id=first, wait=LONG)
        assert "is done" in done["error"]
        late = await ask("chat_claim_todo", persona="bo", event_id=second, wait=0.05)
        assert "is cy's until" in late["error"]


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = cases("npl_mcp/tools/chat_todos")


def test_what_cannot_be_claimed(den: Call) -> None:
    assert todo(den, assigned_to="cy") == 4
    assert todo(den, blocked_by=[4]) == 5
    assert todo(den) == 6
    den("chat_update_todo", event_id=6, persona="ann", status="done")
    before = den("chat_list_todos", room_id=1)
    for case, (arguments, code, said) in REFUSED.items():
        answer = den("chat_claim_todo", **arguments)
        assert (answer.get("error_code"), said in answer.get("error", "")) == (code, True), (case, answer)
    assert den("chat_list_todos", room_id=1) == before


def test_a_todo_waits_for_others_of_its_room_and_never_for_itself(den: Call) -> None:
    """Blockers may form no circle. A change without blockers keeps them; an empty list removes them."""
    den("chat_create_room", name="other", members=TEAM)
    first, elsewhere = todo(den), todo(den, room_id=2)
    two = todo(den, blocked_by=[first])
    three = todo(den, blocked_by=[two])
    before = den("chat_list_todos", room_id=1)
    for blocker in (first, three, elsewhere, 1, 999):
        answer = den(
            "chat_update_todo", event_id=first, persona="ann", status="pending", blocked_by=[blocker]
        )
        assert (answer.get("error_code"), answer.get("parameter")) == ("INVALID_PARAMETER", "blocked_by")
    assert den("chat_list_todos", room_id=1) == before
    assert listed(den, filter="ready") == [first]
    den("chat_update_todo", event_id=first, persona="ann", status="done")
    den("chat_update_todo", event_id=three, persona="ann", status="pending")
    assert listed(den, filter="ready") == [two]
    den("chat_update_todo", event_id=three, persona="ann", status="pending", blocked_by=[])
    assert listed(den, filter="ready") == [two, three]
    assert listed(den, filter="done") == [first]


def test_after_its_time_a_claim_is_as_if_it_had_never_been(den: Call, settings: Settings) -> None:
    """It shows in no list or feed; another may claim the todo, and then the first is too late."""
    event = todo(den)
    claim(den, event_id=event)
    end_leases(settings)
    assert listed(den, filter="ready") == [event]
    assert listed(den, filter="mine", persona="bo") == []
    shown = den("chat_list_todos", room_id=1)["data"]["items"][0]
    assert (shown["status"], "assigned_to" in shown, "lease_until" in shown) == ("pending", False, False)
    entry = den("chat_get_feed", room_id=1, since=event - 1, limit=1)["data"]["items"][0]
    assert (entry["data"]["status"], entry["data"]["assigned_to"]) == ("pending", None)
    assert claim(den, "cy", room_id=1)["todo"]["assigned_to"] == "cy"
    told = den("chat_get_notifications", persona="bo")["data"]["items"][0]
    assert (told["notification_type"], told["event_persona"]) == ("todo_update", "cy")
    late = den("chat_update_todo", event_id=event, persona="bo", status="done")
    assert late["error_code"] == "OPERATION_FAILED"


@pytest.mark.parametrize("renewed", [False, True])
def test_an_assignment_outlives_the_claim(den: Call, settings: Settings, renewed: bool) -> None:
    """After its time the todo is its assignee's alone, who may claim it again; another may be assigned."""
    event = todo(den, assigned_to="bo")
    for _ in range(1 + renewed):
        assert claim(den, event_id=event)["todo"]["status"] == "in_progress"
    assert den("chat_list_todos", room_id=1)["data"]["items"][0]["status"] == "in_progress"
    assert listed(den, filter="ready", persona="bo") == []
    end_leases(settings)
    shown = den("chat_list_todos", room_id=1)["data"]["items"][0]
    assert (shown["status"], shown["assigned_to"], "lease_until" in shown) == ("pending", "bo", False)
    entry = den("chat_get_feed", room_id=1, since=event - 1, limit=1)["data"]["items"][0]
    assert (entry["data"]["status"], entry["data"]["assigned_to"]) == ("pending", "bo")
    assert not claim(den, "cy", room_id=1)["claimed"]
    assert den("chat_claim_todo", persona="cy", event_id=event)["error_code"] == "OPERATION_FAILED"
    for persona, ready in (("bo", [event]), ("cy", [])):
        assert listed(den, filter="mine", persona=persona) == ready
        assert listed(den, filter="ready", persona=persona) == ready
    assert claim(den, room_id=1)["todo"]["status"] == "in_progress"
    end_leases(settings)
    den("chat_update_todo", event_id=event, persona="ann", status="pending", assigned_to="cy")
    assert claim(den, "cy", room_id=1)["todo"]["assigned_to"] == "cy"


def test_a_todo_that_no_other_claimed_may_be_ended_late(den: Call, settings: Settings) -> None:
    """The work counts although the claim had ended."""
    event = todo(den)
    claim(den, event_id=event)
    end_leases(settings)
    done = den("chat_update_todo", event_id=event, persona="bo", status="done")["data"]
    assert (done["status"], done["assigned_to"]) == ("done", "bo")


def test_a_todo_is_done_by_one(den: Call, settings: Settings) -> None:
    """Other agents are told of the claim and of the finished work; its doer may repeat the call."""
    event = todo(den)
    claim(den, event_id=event)
    end_leases(settings)
    claim(den, "cy", event_id=event)
    for _ in range(2):
        assert den("chat_update_todo", event_id=event, persona="cy", status="done")["success"]
    before = den("chat_get_feed", room_id=1)
    late = den("chat_update_todo", event_id=event, persona="bo", status="done")
    assert late.get("error_code") == "OPERATION_FAILED"
    assert f"todo {event} is done, by cy" in late["error"]
    assert den("chat_get_feed", room_id=1) == before
    assert den("chat_update_todo", event_id=event, persona="bo", status="pending")["success"]
    assert den("chat_update_todo", event_id=event, persona="bo", status="done")["success"]
    assert den("chat_update_todo", event_id=event, persona="ann", status="done")["success"]


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
