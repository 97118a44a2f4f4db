"""Rooms: what is said shows, also while the page is open, and a person can do what a member does."""

from __future__ import annotations

import secrets

from playwright.sync_api import expect

from tests.browser.conftest import Tab


def made(tab: Tab, todo: bool = False) -> tuple[int, int]:
    """A room of this test alone, and a message or todo in it."""
    name = f"Pier {secrets.token_hex(4)}"
    room = tab.site.call("chat_create_room", name=name, members=["ann", "ben"])["room_id"]
    if todo:
        event = tab.site.call("chat_create_todo", room_id=room, persona="ann", description="Paint the buoy")
    else:
        event = tab.site.call("chat_send_message", room_id=room, persona="ann", message="Ready, @ben?")
    return room, event["event_id"]


def write_as(tab: Tab, name: str) -> None:
    tab.choose(tab.page.get_by_label("Write as"), name, "Choose")
    assert f"as={name}" in tab.page.url


def test_a_person_answers(tab: Tab) -> None:
    room, _ = made(tab)
    page = tab.open(f"/rooms/{room}")
    write_as(tab, "ben")
    page.get_by_label("Message").fill("Yes <b>now</b>")
    tab.follow(page.get_by_role("button", name="Send"))
    expect(page.get_by_text("Yes <b>now</b>")).to_be_visible()
    page.get_by_label("Message").fill("Take the rope.")
    page.get_by_label("Hand over to").select_option("ann")
    tab.follow(page.get_by_role("button", name="Send"))
    expect(page.get_by_text("hands over to ann")).to_be_visible()
    tab.check()
    tab.follow(
        page.get_by_role("listitem").filter(has_text="Take the rope.").get_by_role("link", name="Answer")
    )
    write_as(tab, "ann")
    page.get_by_label("Answer").fill("I have it.")
    tab.follow(page.get_by_role("button", name="Take it over"))
    expect(page.get_by_text("takes it", exact=True)).to_be_visible()
    tab.check()


def test_a_person_reacts(tab: Tab) -> None:
    room, event = made(tab)
    page = tab.open(f"/rooms/{room}/events/{event}?as=ben")
    tab.follow(page.get_by_role("button", name="React with a heart"))
    expect(page.get_by_label("Reactions")).to_contain_text("♥ 1")
    tab.check()


def test_a_person_claims_and_finishes_a_todo(tab: Tab) -> None:
    room, event = made(tab, todo=True)
    page = tab.open(f"/rooms/{room}/events/{event}?as=ben")
    tab.follow(page.get_by_role("button", name="Claim", exact=True))
    expect(page.locator(f"#event-{event}")).to_contain_text("claimed by ben")
    tab.follow(page.get_by_role("button", name="Done", exact=True))
    expect(page.locator(f"#event-{event}")).to_contain_text("done")
    tab.open(f"/rooms/{room}?as=ben&todos=done")
    expect(page.get_by_role("complementary")).to_contain_text("Paint the buoy")
    page.get_by_label("New todo").fill("Dry the brush")
    tab.follow(page.get_by_role("button", name="Add todo"))
    expect(page.get_by_role("complementary").get_by_role("link", name="Dry the brush")).to_be_visible()


def test_a_person_joins_and_leaves(tab: Tab) -> None:
    room, _ = made(tab)
    page = tab.open(f"/rooms/{room}")
    page.get_by_label("Name").fill("dora")
    tab.follow(page.get_by_role("button", name="Join"))
    expect(page.get_by_text("dora joined")).to_be_visible()
    tab.follow(page.get_by_role("button", name="Leave"))
    expect(page.get_by_text("dora left")).to_be_visible()


def test_what_concerns_somebody_is_listed_until_it_is_read(tab: Tab) -> None:
    who = f"reader-{secrets.token_hex(4)}"
    room = tab.site.call("chat_create_room", name=f"Lock of {who}", members=["ann", who])["room_id"]
    tab.site.call("chat_send_message", room_id=room, persona="ann", message=f"The gate, @{who}!")
    page = tab.open("/rooms")
    page.get_by_label("Name").fill(who)
    tab.follow(page.get_by_role("button", name="Show"))
    expect(page.get_by_text(f"The gate, @{who}!")).to_be_visible()
    tab.check()
    tab.follow(page.get_by_role("button", name="as read"))
    expect(page.get_by_text(f"Nothing unread for {who}.")).to_be_visible()


def test_a_long_room_is_read_by_pages(tab: Tab) -> None:
    room, first = made(tab)
    for number in range(1, 121):
        tab.site.call("chat_send_message", room_id=room, persona="ben", message=f"Wave {number}.")
    page = tab.open(f"/rooms/{room}")
    expect(page.get_by_text("Wave 120.")).to_be_visible()
    expect(page.get_by_text("Wave 20.")).to_have_count(0)
    tab.follow(page.get_by_role("link", name="Older events"))
    expect(page.get_by_text("Wave 20.")).to_be_visible()
    expect(page.get_by_text("Ready, @ben?").first).to_be_visible()
    tab.follow(page.get_by_role("link", name="Newer events"))
    expect(page.get_by_text("Wave 21.")).to_be_visible()
    tab.open(f"/rooms/{room}?event={first}#event-{first}")
    expect(page.locator(f"#event-{first}")).to_be_in_viewport()


def test_what_is_said_meanwhile_shows(scripted: Tab) -> None:
    room, _ = made(scripted)
    page = scripted.open(f"/rooms/{room}")
    scripted.site.call("chat_send_message", room_id=room, persona="ann", message="Cast off.")
    expect(page.get_by_text("Cast off.")).to_be_visible()


def test_what_changed_meanwhile_takes_its_own_place(scripted: Tab) -> None:
    """A todo and reactions, each once; a row of an earlier page does not come to the end of this one."""
    room, event = made(scripted, todo=True)
    page = scripted.open(f"/rooms/{room}")
    scripted.site.call("chat_claim_todo", event_id=event, persona="ben")
    row = page.locator(f"#event-{event}")
    expect(row).to_contain_text("claimed by ben")
    scripted.site.call("chat_react", event_id=event, persona="ben", emoji="!")
    expect(row.get_by_label("Reactions")).to_contain_text("! 1")
    expect(row).to_have_count(1)
    for number in range(1, 121):
        scripted.site.call("chat_send_message", room_id=room, persona="ben", message=f"Wave {number}.")
    scripted.open(f"/rooms/{room}")
    expect(row).to_have_count(0)
    scripted.site.call("chat_update_todo", event_id=event, persona="ben", status="done")
    expect(page.get_by_text("changed a todo")).to_be_visible()
    expect(row).to_have_count(0)
