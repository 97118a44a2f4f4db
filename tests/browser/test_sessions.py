"""Sessions: one timeline, filtered by kind and name, as it was at a time, and taken away as Markdown."""

from __future__ import annotations

import secrets

from playwright.sync_api import expect

from tests.browser.conftest import Tab


def test_all_that_happened_shows_in_one_line(tab: Tab) -> None:
    page = tab.open("/sessions")
    tab.follow(page.get_by_role("link", name="Open the third quay"))
    tab.check()
    happened = page.get_by_role("region", name="What happened")
    for text in ("Ready, @ben?", "quay-plan, revision 1", "The Aurora has 94.", "Measure the quay wall"):
        expect(happened.get_by_text(text).first).to_be_visible()
    tab.choose(page.get_by_label("Who"), "surveyor")
    expect(page.get_by_text("Ready, @ben?")).to_have_count(0)
    expect(happened.get_by_text("Measure the quay wall")).to_be_visible()
    assert "who=surveyor" in page.url
    tab.open("/sessions/quay-3?kind=reviews")
    expect(happened.get_by_text("The Aurora has 94.")).to_be_visible()
    expect(page.get_by_text("Measure the quay wall")).to_have_count(0)


def test_a_slider_goes_back_in_time(tab: Tab) -> None:
    """By keyboard; without the script the form is sent."""
    page = tab.open("/sessions/quay-3")
    slider = page.get_by_role("slider")
    slider.focus()
    with tab.arriving():
        page.keyboard.press("Home")
        if not tab.script:
            page.get_by_role("button", name="Show").click()
    assert "until=" in page.url
    tab.check()
    tab.open("/sessions/quay-3?until=1000")
    expect(page.get_by_text("Nothing happened here yet")).to_be_visible()


def test_a_session_is_saved(tab: Tab) -> None:
    page = tab.open("/sessions/quay-3")
    with page.expect_download() as saved:
        page.get_by_role("link", name="Export as Markdown").click()
    assert saved.value.suggested_filename == "quay-3.md"


def test_what_happens_meanwhile_shows(scripted: Tab) -> None:
    """Of every kind, and where nothing was; a row that changed takes its own place."""
    call, name = scripted.site.call, f"dock-{secrets.token_hex(4)}"
    call("session_create", session_id=name)
    page = scripted.open(f"/sessions/{name}")
    happened = page.get_by_role("region", name="What happened")
    expect(happened.get_by_text("Nothing happened here yet")).to_be_visible()
    room = call("chat_create_room", name=f"Room of {name}", members=["ann"], session_id=name)["room_id"]
    todo = call("chat_create_todo", room_id=room, persona="ann", description="Drain the dock")["event_id"]
    expect(happened.get_by_text("Drain the dock")).to_be_visible()
    expect(happened.get_by_text("Nothing happened here yet")).to_be_hidden()
    file = {"filename": "plan.md", "content": "# Plan", "session_id": name}
    made = call("artifact_create", name=f"plan of {name}", artifact_type="document", **file)
    expect(happened.get_by_text(f"plan of {name}, revision 0")).to_be_visible()
    revision = {"artifact_id": made["artifact_id"], "revision_id": made["revision_id"]}
    review = call("review_create", reviewer_persona="ben", **revision)["review_id"]
    call("review_add_comment", review_id=review, location="line:1", comment="Which dock?", persona="ben")
    expect(happened.get_by_text("Which dock?")).to_be_visible()
    call("worklog_open", session_id=name)
    call("worklog_log", session_id=name, agent_id="pilot", action="found", summary="The gate leaks")
    expect(happened.get_by_text("The gate leaks")).to_be_visible()
    call("chat_update_todo", event_id=todo, persona="ann", status="done")
    row = page.locator(f"#event-{todo}")
    expect(row).to_contain_text("done")
    expect(row).to_have_count(1)
    scripted.check()


def test_news_keep_to_the_filters(scripted: Tab) -> None:
    call, name = scripted.site.call, f"dock-{secrets.token_hex(4)}"
    call("session_create", session_id=name)
    room = call("chat_create_room", name=f"Room of {name}", members=["ann", "ben"], session_id=name)[
        "room_id"
    ]
    page = scripted.open(f"/sessions/{name}?kind=events&who=ben")
    call("chat_send_message", room_id=room, persona="ann", message="Not by ben")
    call("chat_send_message", room_id=room, persona="ben", message="By ben")
    expect(page.get_by_text("By ben", exact=True)).to_be_visible()
    expect(page.get_by_text("Not by ben")).to_have_count(0)


def test_lanes_counts_and_lists_of_a_session_are_live(scripted: Tab) -> None:
    """A reader at the top is told what is new; a click leads to it."""
    name = f"live-{secrets.token_hex(4)}"
    scripted.site.call("session_create", session_id=name)
    room = scripted.site.call("chat_create_room", name=name, members=["ann"], session_id=name)["room_id"]
    for number in range(40):
        scripted.site.call("chat_send_message", room_id=room, persona="ann", message=f"Wave {number}.")
    page = scripted.open(f"/sessions/{name}")
    top = page.get_by_role("heading", level=1)
    expect(top).to_be_in_viewport()
    for number in range(3):
        scripted.site.call("chat_send_message", room_id=room, persona="ann", message=f"Late {number}.")
    made = {"name": name, "artifact_type": "x", "filename": "a.txt", "content": "a", "session_id": name}
    scripted.site.call("artifact_create", **made)
    told = page.get_by_role("link", name="4 new")
    expect(told).to_be_in_viewport()
    expect(top).to_be_in_viewport()
    expect(page.get_by_role("complementary").get_by_role("link", name=name).last).to_be_visible()
    expect(page.get_by_role("img", name="Artifacts: 1")).to_be_visible()
    told.click()
    expect(page.get_by_text("Late 2.")).to_be_in_viewport()


def test_a_list_shows_what_is_new(scripted: Tab) -> None:
    page = scripted.open("/sessions")
    name = f"listed-{secrets.token_hex(4)}"
    scripted.site.call("session_create", session_id=name, title=name)
    expect(page.get_by_role("link", name=name)).to_be_visible()
