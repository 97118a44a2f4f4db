"""Two versions on one database: data after a migration, and a server of the version before it."""

import zipfile
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.app.app import App
from npl_mcp.app.maintenance import check
from npl_mcp.config.settings import Settings
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.tools.domains import listed_tools
from tests.conftest import cases
from tests.npl_mcp.stores.test_data_folder import CASE

TOOLS = {spec.name: spec for spec in listed_tools()}


@pytest.fixture
def app(tmp_path: Path) -> Any:
    """A data folder of the first version, opened by this one."""
    with zipfile.ZipFile(CASE / "written.zip") as archive:
        archive.extractall(tmp_path)
    made = App(Settings(cwd=tmp_path / "project", home=tmp_path, data_dir=tmp_path / "data", warm_up=False))
    yield made
    made.close()


def ask(app: App, tool: str, **arguments: Any) -> Any:
    return as_dict(TOOLS[tool](app, **arguments))


def test_what_was_there_can_do_what_is_new(app: App) -> None:
    """Rooms, todos, artifacts and reviews of the former version get the new operations."""
    room = ask(app, "chat_list_rooms")["items"][-1]
    persona = room["members"][0]
    old = ask(app, "chat_create_todo", room_id=room["id"], persona=persona, description="x")["event_id"]
    assert ask(app, "chat_claim_todo", persona=persona, event_id=old)["claimed"]
    total = ask(app, "chat_list_rooms")["total"]
    ask(app, "chat_update_room", room_id=room["id"], persona=persona, action="archive")
    assert ask(app, "chat_list_rooms")["total"] == total - 1
    assert ask(app, "chat_list_rooms", archived=True)["total"] == 1
    kept = ask(app, "artifact_list")["total"]
    ask(app, "artifact_archive", artifact_id=1)
    assert ask(app, "artifact_list")["total"] == kept - 1
    assert check(app.stores).problems == ()


# What a server of the first version does, in its words: it knows no column and no table that came later.
FIRST = cases("npl_mcp/stores/migrations")


def test_a_server_of_the_version_before_works_on(app: App) -> None:
    """It writes before and after the migration, and this version reads its rows."""
    app.stores.database.open()
    with app.stores.database.write() as tx:
        for statement in FIRST:
            tx.run(statement, now="2026-01-31T12:00:00.000000Z")
    assert ask(app, "session_get", session_id="old")["session"]["status"] == "active"
    room = ask(app, "chat_list_rooms", persona="ann")["items"]
    newest = max((event["id"] for event in room), default=ask(app, "chat_list_rooms")["items"][0]["id"])
    made = ask(app, "chat_claim_todo", persona="ann", room_id=newest)
    assert (made["claimed"], made["todo"]["description"]) == (True, "x")
    review = ask(app, "review_list", reviewer_persona="ann")["items"][0]
    assert ask(app, "review_get", review_id=review["id"])["items"][0]["location"] == "line:1"
