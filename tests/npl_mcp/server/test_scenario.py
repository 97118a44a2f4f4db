"""Three agents and a human work on one task, through servers as their clients start them."""

from __future__ import annotations

import base64
import os
import sys
from pathlib import Path
from typing import Any

import anyio
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from tests.conftest import envelope

PLAN = """\
# Release plan

Ship the importer.

## Steps

1. Freeze the branch.
2. Run the migration twice.

## Risks

The migration is slow.
"""


class Workspace:
    """One server, and what a person at it does."""

    def __init__(self, client: Client[Any], task: str) -> None:
        self.client = client
        self.task = task
        self.team = [f"{who}-{task}" for who in ("planner", "coder", "critic", "dana")]

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        body = envelope(await self.client.call_tool(tool, arguments, raise_on_error=False))
        assert body["success"], (tool, body)
        return body["data"]

    async def refused(self, tool: str, **arguments: Any) -> str:
        body = envelope(await self.client.call_tool(tool, arguments, raise_on_error=False))
        assert not body["success"], (tool, body)
        return str(body["error_code"])


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


async def gather_the_team(do: Workspace) -> tuple[str, int, int]:
    planner = do.team[0]
    session = await do("session_create", title=f"Release {do.task}", session_id=f"release-{do.task}")
    room = await do(
        "chat_create_room", name=f"release {do.task}", members=do.team, session_id=session["session_id"]
    )
    plan = await do(
        "artifact_create",
        name=f"plan {do.task}",
        artifact_type="document",
        file_content_base64=encoded(PLAN),
        filename="plan.md",
        created_by=planner,
        session_id=session["session_id"],
    )
    await do("worklog_init", session_id=f"release-{do.task}", task="ship the importer")
    await do("worklog_log", agent_id=planner, action="wrote", summary="first plan")
    return session["session_id"], room["room_id"], plan["artifact_id"]


async def review_the_plan(do: Workspace, room: int, plan: int) -> None:
    planner, coder, critic, dana = do.team
    shared = await do("chat_share_artifact", room_id=room, persona=planner, artifact_id=plan)
    assert [note["persona"] for note in shared["notifications"]] == [coder, critic, dana]
    first = (await do("artifact_history", artifact_id=plan))["items"][0]
    for persona, location, comment in (
        (critic, "line:8", "why twice?"),
        (dana, "line:10-12", "how slow?"),
    ):
        review = await do(
            "review_create", artifact_id=plan, revision_id=first["id"], reviewer_persona=persona
        )
        await do(
            "review_add_comment",
            review_id=review["review_id"],
            location=location,
            comment=comment,
            persona=persona,
        )
        await do("review_complete", review_id=review["review_id"], overall_comment=f"{persona} is done")
        late = {"review_id": review["review_id"], "location": "line:1", "comment": "x", "persona": persona}
        assert await do.refused("review_add_comment", **late) == "OPERATION_FAILED"
        await do("worklog_log", agent_id=persona, action="reviewed", summary=comment)
    annotated = await do("review_generate_annotated", artifact_id=plan, revision_id=first["id"])
    lines = annotated["annotated_content"].splitlines()
    assert lines[7] == f"2. Run the migration twice.[^{critic}-1]"
    assert f"[^{critic}-1]: @{critic}: why twice?" in lines
    assert sorted(annotated["reviewer_files"]) == [critic, dana]
    assert f"{dana} is done" in annotated["reviewer_files"][dana]


async def do_the_work(do: Workspace, room: int, plan: int) -> None:
    _, coder, _, dana = do.team
    asked = await do("chat_send_message", room_id=room, persona=dana, message=f"@{coder} please fix step 2")
    assert asked["mentions"] == [coder]
    todo = await do(
        "chat_create_todo", room_id=room, persona=dana, description="fix step 2", assigned_to=coder
    )
    waiting = await do("chat_get_notifications", persona=coder)
    assert [note["notification_type"] for note in waiting["items"]] == [
        "todo_assign",
        "mention",
        "artifact_share",
    ]
    for note in waiting["items"]:
        await do("chat_mark_read", notification_id=note["id"])
    assert (await do("chat_get_notifications", persona=coder))["total"] == 0
    fixed = PLAN.replace("Run the migration twice.", "Run the migration once, then check it.")
    await do(
        "artifact_add_revision",
        artifact_id=plan,
        file_content_base64=encoded(fixed),
        filename="plan.md",
        created_by=coder,
        purpose="Answer to the review",
    )
    answer = await do(
        "chat_send_message",
        room_id=room,
        persona=coder,
        message="done",
        reply_to_id=asked["event_id"],
    )
    await do("chat_react", event_id=answer["event_id"], persona=dana, emoji="👍")
    await do("chat_update_todo", event_id=todo["event_id"], persona=coder, status="done")
    await do("worklog_log", agent_id=coder, action="fixed", summary="step 2")


async def look_back(do: Workspace, session: str, room: int, plan: int) -> None:
    feed = await do("chat_get_feed", room_id=room, limit=100)
    kinds = [event["event_type"] for event in feed["items"]]
    assert kinds == [
        *["persona_join"] * 4,
        "artifact_share",
        "message",
        "todo_create",
        "message",
        "emoji_reaction",
        "todo_update",
    ]
    assert feed["items"][6]["data"]["status"] == "done"
    assert feed["items"][7]["reactions"] == {"👍": [do.team[3]]}
    assert [event["id"] for event in feed["items"]] == sorted(event["id"] for event in feed["items"])
    again = await do("chat_get_feed", room_id=room, since=feed["cursor"])
    assert again["items"] == []
    found = await do("session_get", session_id=session)
    assert [one["id"] for one in found["chat_rooms"]] == [room]
    assert [(one["id"], one["revision_count"]) for one in found["artifacts"]] == [(plan, 2)]
    for agent in do.team:
        read = await do("worklog_read", agent_id=agent)
        assert [entry["summary"] for entry in read["items"]] == [
            "first plan",
            "why twice?",
            "how slow?",
            "step 2",
        ]
        assert (await do("worklog_read", agent_id=agent))["items"] == []
    tailored = await do("npl_load_tailored", file=f"artifact:{plan}", context="steps of the migration")
    assert "Run the migration once" in tailored["content"]
    before = await do("npl_section_index", file=f"artifact:{plan}@0")
    assert before["file"] == f"artifact:{plan}@0"
    await do("worklog_close", archive=True)
    assert await do.refused("worklog_log", agent_id="coder", action="a", summary="s", session_id=do.task)
    await do("session_update", session_id=session, status="archived")


async def work(data: Path, project: Path, task: str) -> None:
    project.mkdir()
    transport = StdioTransport(
        sys.executable,
        ["-m", "npl_mcp", "--data-dir", str(data)],
        env={**os.environ, "HOME": str(project)},
        cwd=str(project),
        keep_alive=False,
    )
    async with Client(transport) as client:
        do = Workspace(client, task)
        session, room, plan = await gather_the_team(do)
        await review_the_plan(do, room, plan)
        await do_the_work(do, room, plan)
        await look_back(do, session, room, plan)
        log = await do("worklog_read", session_id=f"archive/release-{task}", agent_id="clerk", since=0)
    assert len(log["items"]) == 4


def test_a_team_works_on_two_tasks_at_once(tmp_path: Path) -> None:
    """Two servers on one database, each with a team of its own, see all of their own work and no other."""

    async def both() -> None:
        async with anyio.create_task_group() as group:
            for task in ("alpha", "beta"):
                group.start_soon(work, tmp_path / "data", tmp_path / task, task)

    anyio.run(both)
