"""Data of agents at work: a session with rooms, artifacts, reviews and a worklog."""

import base64
import struct
import zlib
from typing import Any, Protocol

from tests.conftest import case_text

PLAN = case_text("browser/stores/plan.md")

REVISED = PLAN.replace("closed until the crane is repaired", "open from Monday on").replace(
    "## Tides", "Berth 3 takes boats.\n\n## Tides"
)


class Calls(Protocol):
    """A server of tools."""

    def call(self, tool: str, /, **arguments: Any) -> Any: ...


def picture(width: int = 320, height: int = 200) -> str:
    """Return a PNG of a harbour in base64: sky, water and a mole."""

    def colour(x: int, y: int) -> bytes:
        if y > height * 2 // 3:
            return b"\x1f\x5f\x8f"
        return b"\x6b\x6b\x6b" if y > height // 2 and x > width // 2 else b"\xcf\xe3\xf2"

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = b"".join(b"\0" + b"".join(colour(x, y) for x in range(width)) for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()


def fill(site: Calls) -> None:
    site.call("session_create", session_id="quay-3", title="Open the third quay")
    _rooms(site)
    _artifacts(site)
    _worklog(site)


def _rooms(site: Calls) -> None:
    room = site.call(
        "chat_create_room",
        name="Harbour",
        members=["ann", "ben", "cleo"],
        session_id="quay-3",
        description="Who loads what, and when the tide allows it.",
    )["room_id"]

    def say(who: str, message: str, **more: Any) -> int:
        return int(
            site.call("chat_send_message", room_id=room, persona=who, message=message, **more)["event_id"]
        )

    first = say("ann", "Ready, @ben?")
    say("ben", "Nearly. The crane at berth 2 is slow.", reply_to_id=first)
    site.call("chat_react", event_id=first, persona="cleo", emoji="👀")
    crane = site.call(
        "chat_create_todo", room_id=room, persona="ann", description="Grease the crane at berth 2"
    )["event_id"]
    site.call("chat_claim_todo", event_id=crane, persona="ben")
    site.call("chat_create_todo", room_id=room, persona="ann", description="Tell the pilots")
    say("ben", "I leave at noon; please finish it, @cleo.", reply_to_id=crane)


def _artifacts(site: Calls) -> None:
    plan = site.call(
        "artifact_create",
        name="quay-plan",
        artifact_type="document",
        filename="plan.md",
        content=PLAN,
        created_by="ann",
        session_id="quay-3",
    )
    site.call(
        "artifact_add_revision",
        artifact_id=plan["artifact_id"],
        filename="plan.md",
        content=REVISED,
        created_by="ben",
        purpose="Berths as of Monday",
    )
    _review(site, plan, {"line:5": "The Aurora has 94.", "line:9-10": "Say **who** tells them."})
    view = site.call(
        "artifact_create",
        name="mole",
        artifact_type="image",
        filename="mole.png",
        file_content_base64=picture(),
        created_by="cleo",
        session_id="quay-3",
    )
    _review(site, view, {"@x:220,y:120": "The light is missing here."})
    site.call("chat_share_artifact", room_id=1, persona="cleo", artifact_id=view["artifact_id"])


def _review(site: Calls, artifact: Any, comments: dict[str, str]) -> None:
    review = site.call(
        "review_create",
        artifact_id=artifact["artifact_id"],
        revision_id=artifact["revision_id"],
        reviewer_persona="cleo",
    )["review_id"]
    for location, comment in comments.items():
        site.call("review_add_comment", review_id=review, location=location, comment=comment, persona="cleo")


def _worklog(site: Calls) -> None:
    site.call("worklog_init", session_id="quay-3", task="Open the third quay")
    for who, action, summary, tags in (
        ("surveyor", "started", "Measure the quay wall", ["survey"]),
        ("surveyor", "found", "The wall has a crack near bollard 12", ["survey", "risk"]),
        ("planner", "decided", "Ships over 90 m go to berth 1", ["plan"]),
        ("surveyor", "blocked", "No boat until two o'clock", ["survey"]),
        ("planner", "done", "The plan has a second revision", ["plan"]),
    ):
        site.call("worklog_log", agent_id=who, action=action, summary=summary, tags=tags)
