"""Start shows live what waits for a person and which agents are at work."""

import secrets

from playwright.sync_api import expect

from tests.browser.conftest import Tab


def choose(tab: Tab, name: str) -> None:
    inbox = tab.page.locator("#inbox")
    inbox.get_by_label("Your name").fill(name)
    tab.follow(inbox.get_by_role("button", name="Use it"))


def test_what_waits_for_a_person_is_listed_until_it_is_done(tab: Tab) -> None:
    who = f"reader-{secrets.token_hex(4)}"
    room = tab.site.call("chat_create_room", name=f"Lock of {who}", members=["ann", who])["room_id"]
    tab.site.call("chat_send_message", room_id=room, persona="ann", message=f"The gate, @{who}!")
    tab.site.call(
        "chat_create_todo", room_id=room, persona="ann", description="Shut the gate", assigned_to=who
    )
    revision = tab.site.call("artifact_get", artifact_id=1)["revision_id"]
    tab.site.call("review_create", artifact_id=1, revision_id=revision, reviewer_persona=who)
    page = tab.open("/")
    choose(tab, who)
    inbox = page.locator("#inbox")
    expect(inbox.get_by_text(f"The gate, @{who}!")).to_be_in_viewport()
    expect(inbox.get_by_text("Shut the gate").first).to_be_visible()
    expect(inbox.get_by_role("link", name="of artifact 1")).to_be_visible()
    tab.check()
    tab.follow(inbox.get_by_role("button", name="as read"))
    expect(inbox.get_by_role("button", name="as read")).to_have_count(0)
    tab.follow(inbox.get_by_role("link", name="Shut the gate"))
    tab.site.call("chat_update_todo", event_id=room_todo(tab, room), persona=who, status="done")
    tab.open("/")
    expect(inbox.get_by_text("Shut the gate")).to_have_count(0)


def room_todo(tab: Tab, room: int) -> int:
    return int(tab.site.call("chat_list_todos", room_id=room)["items"][0]["event_id"])


def test_agents_at_work_and_what_they_did_last_are_live(scripted: Tab) -> None:
    page = scripted.open("/")
    who = f"smith-{secrets.token_hex(4)}"
    expect(page.locator("#now").get_by_role("listitem").first).to_be_visible()
    scripted.site.call("worklog_log", agent_id=who, action="done", summary="Forged a hinge")
    expect(page.locator("#now").get_by_role("listitem").filter(has_text=who)).to_contain_text(
        "Forged a hinge"
    )


def test_a_page_looks_again_when_it_is_shown_however_long_it_was_open(scripted: Tab) -> None:
    """Repeated looks add no further listener."""
    page = scripted.page
    page.clock.install()
    page.add_init_script(
        "const add = document.addEventListener.bind(document); window.added = [];"
        "document.addEventListener = (kind, ...rest) => { window.added.push(kind); add(kind, ...rest); };"
    )
    scripted.open("/")
    for _ in range(3):
        with page.expect_response(scripted.site.url + "/"):
            page.clock.run_for(4_000)
    assert page.evaluate("added.filter((kind) => kind === 'visibilitychange').length") == 1
