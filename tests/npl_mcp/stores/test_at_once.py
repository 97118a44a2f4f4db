"""Three replicas on one PostgreSQL write the same things at the same moment."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests import engines
from tests.npl_mcp.http.http_server import Running, call
from tests.npl_mcp.stores.writer import SESSION, examine
from tests.replicas import REPLICAS, Balancer, replicas

pytestmark = pytest.mark.engine("postgres")

TURNS = 8
"""Calls of each replica."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("at_once")
    (made / "project").mkdir()
    return made


@pytest.fixture(scope="module")
def servers(place: Path) -> Iterator[list[Running]]:
    for number in range(REPLICAS):  # all work for one project, whose worklog they share
        (place / f"replica{number}").mkdir()
        (place / f"replica{number}" / "work").symlink_to(place / "project")
    with replicas(place, engines.address(place / "data") or "") as running:
        yield running


@pytest.fixture
def balancer(servers: Sequence[Running]) -> Balancer:
    return Balancer(servers)


def at_once(servers: Sequence[Running], tool: str, arguments: Callable[[int], dict[str, Any]]) -> list[Any]:
    """Call a tool on all replicas at once, several times each; return the bodies of the answers."""

    def work(number: int) -> Any:
        return call(servers[number % len(servers)], tool, arguments(number)).data

    with ThreadPoolExecutor(2 * len(servers)) as pool:
        return list(pool.map(work, range(TURNS * len(servers))))


def test_revisions_are_numbered_without_gap_and_none_is_lost(
    servers: Sequence[Running], balancer: Balancer
) -> None:
    """Each number has the content of its answer."""
    made = balancer.do("artifact_create", name="a", artifact_type="text", filename="a.txt", content="-")
    file = {"artifact_id": (artifact := made["artifact_id"]), "filename": "a.txt"}
    bodies = at_once(
        servers, "artifact_add_revision", lambda number: {**file, "content": f"content {number}"}
    )
    numbers = {body["data"]["revision_num"]: number for number, body in enumerate(bodies)}
    assert sorted(numbers) == list(range(1, len(bodies) + 1))
    for revision, number in numbers.items():
        artifact_revision = balancer.do("artifact_get", artifact_id=artifact, revision=revision)
        assert artifact_revision["content"] == f"content {number}"


def test_appends_are_numbered_without_gap_and_none_is_lost(
    servers: Sequence[Running], balancer: Balancer
) -> None:
    """Appends are entries of a worklog and messages of a room."""
    balancer.do("worklog_init", session_id=SESSION)
    logged = at_once(
        servers, "worklog_log", lambda number: {"agent_id": "ann", "action": "did", "summary": f"{number}"}
    )
    entries = balancer.do("worklog_read", agent_id="reader", peek=True)["items"]
    assert [entry["seq"] for entry in entries] == list(range(1, len(logged) + 1))
    answered = sorted((body["data"]["seq"], f"{number}") for number, body in enumerate(logged))
    assert [(entry["seq"], entry["summary"]) for entry in entries] == answered
    room = balancer.do("chat_create_room", name="r", members=["ann", "ben"])["room_id"]
    sent = at_once(
        servers,
        "chat_send_message",
        lambda number: {"room_id": room, "persona": "ann", "message": f"@ben {number}"},
    )
    feed = balancer.do("chat_get_feed", room_id=room, limit=100)["items"]
    said = [(event["id"], event["data"]["message"]) for event in feed if event["event_type"] == "message"]
    assert said == sorted((body["data"]["event_id"], f"@ben {at}") for at, body in enumerate(sent))
    inbox = balancer.do("chat_get_notifications", persona="ben", limit=100)
    assert inbox["total"] == len(sent)


def test_one_of_the_creators_of_the_same_has_it(servers: Sequence[Running]) -> None:
    """All others are told that it exists, without an error of the database."""
    bodies = at_once(servers, "session_create", lambda number: {"session_id": f"s{number // 6}"})
    made = Counter(body["data"]["session_id"] for body in bodies if body["success"])
    assert made == Counter({f"s{number}": 1 for number in range(len(bodies) // 6)})
    assert {body["error_code"] for body in bodies if not body["success"]} == {"ALREADY_EXISTS"}


def test_one_of_the_claimers_of_a_todo_has_it(servers: Sequence[Running], balancer: Balancer) -> None:
    """The others are told whose it is, and all replicas agree."""
    names = [f"p{number}" for number in range(TURNS * len(servers))]
    room = balancer.do("chat_create_room", name="one todo", members=names)["room_id"]
    todo = balancer.do("chat_create_todo", room_id=room, persona="p0", description="d")["event_id"]
    bodies = at_once(servers, "chat_claim_todo", lambda number: {"event_id": todo, "persona": names[number]})
    (winner,) = (name for name, body in zip(names, bodies, strict=True) if body["success"])
    refused = [body for body in bodies if not body["success"]]
    assert all(f"is in_progress, {winner}'s" in body["error"] for body in refused)
    for server in servers:
        (listed,) = call(server, "chat_list_todos", {"room_id": room}).data["data"]["items"]
        assert listed["assigned_to"] == winner


def test_each_todo_is_claimed_once(servers: Sequence[Running], balancer: Balancer) -> None:
    """Many claimers, each on one server, take the next ready todo until none is left."""
    names = [f"c{number}" for number in range(12)]
    room = balancer.do("chat_create_room", name="work", members=names)["room_id"]
    todos = [
        balancer.do("chat_create_todo", room_id=room, persona=names[0], description="do it")["event_id"]
        for _ in range(60)
    ]

    def claim(number: int) -> list[int]:
        own, claimed = Balancer([servers[number % len(servers)]]), []
        while "todo" in (made := own.do("chat_claim_todo", room_id=room, persona=names[number])):
            claimed.append(made["todo"]["event_id"])
            own.do("chat_update_todo", event_id=claimed[-1], persona=names[number], status="done")
        return claimed

    with ThreadPoolExecutor(len(names)) as pool:
        claims = pool.map(claim, range(len(names)))
    assert sorted(todo for claimed in claims for todo in claimed) == todos


def test_everything_is_in_order_afterwards(servers: Sequence[Running], place: Path) -> None:
    """Counts are those of the rows, and no reference is broken."""
    at_once(servers, "session_create", lambda number: {"session_id": f"later{number % 5}"})
    assert [problem for problems in examine(place).values() for problem in problems] == []
