"""Rooms: messages appear while the page is open, and a person can do what a member does."""

import secrets
from datetime import datetime, timezone

from playwright.sync_api import Locator, expect

from tests.browser.conftest import Tab


def made(tab: Tab, todo: bool = False) -> tuple[int, int]:
    """A room with a message or a todo, which no other test uses."""
    name = f"Pier {secrets.token_hex(4)}"
    room = tab.site.call("chat_create_room", name=name, members=["ann", "ben"])["room_id"]
    if todo:
        event = tab.site.call("chat_create_todo", room_id=room, persona="ann", description="Paint the buoy")
    else:
        event = tab.site.call("chat_send_message", room_id=room, persona="ann", message="Ready, @ben?")
    return room, event["event_id"]


def place(box: Locator) -> tuple[int, int, int, int]:
    """Return where a box is on the screen, in pixels."""
    bounds = box.bounding_box()
    assert bounds is not None
    return round(bounds["x"]), round(bounds["y"]), round(bounds["width"]), round(bounds["height"])


def write_as(tab: Tab, name: str) -> None:
    """Choose a name once, for all pages."""
    page = tab.page
    page.get_by_role("banner").get_by_text("Choose a name").click()
    page.get_by_role("banner").get_by_label("Your name").fill(name)
    tab.follow(page.get_by_role("banner").get_by_role("button", name="Use it"))
    expect(page.get_by_role("banner").get_by_text(name, exact=True)).to_be_visible()


def send(tab: Tab, message: str) -> None:
    """Send a message by the keyboard; without the script by the button."""
    box = tab.page.get_by_role("textbox", name="Message")
    box.fill(message)
    if tab.script:
        box.press("Control+Enter")
    else:
        tab.follow(tab.page.get_by_role("button", name="Send"))
    expect(box).to_have_value("")


def test_a_message_is_sent_once(scripted: Tab) -> None:
    room, _ = made(scripted)
    page = scripted.open(f"/rooms/{room}")
    write_as(scripted, "ben")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    send(scripted, "Yes")
    expect(page.get_by_text("Yes", exact=True)).to_be_visible()
    assert [url.rpartition("/")[2] for url in sent] == ["messages"]


def test_a_person_answers(tab: Tab) -> None:
    room, _ = made(tab)
    page = tab.open(f"/rooms/{room}")
    write_as(tab, "ben")
    send(tab, "Yes <b>now</b>, **at once**")
    expect(page.get_by_text("Yes <b>now</b>, at once")).to_be_visible()
    send(tab, "Take the rope.")
    expect(page.get_by_text("Take the rope.")).to_be_visible()
    tab.check()
    tab.context.clear_cookies()
    tab.open(f"/rooms/{room}")
    write_as(tab, "ann")
    row = page.get_by_role("listitem").filter(has_text="Take the rope.").first
    reply = row.get_by_role("link", name="Reply to event")
    reply.click() if tab.script else tab.follow(reply)
    expect(page.locator("#write")).to_contain_text("ben: Take the rope.")
    send(tab, "I have it.")
    answer = page.get_by_role("listitem").filter(has_text="I have it.")
    expect(answer.get_by_role("link", name="ben: Take the rope.")).to_be_visible()
    tab.check()


def test_a_person_reacts_and_joins_by_that(tab: Tab) -> None:
    room, event = made(tab)
    page = tab.open(f"/rooms/{room}")
    write_as(tab, "dora")
    row = page.locator(f"#event-{event}")
    button = row.get_by_role("button", name="React with a heart")
    button.click() if tab.script else tab.follow(button)
    expect(row.get_by_label("Reactions")).to_contain_text("♥ 1")
    expect(page.locator("#who")).to_contain_text("dora")
    tab.check()


def test_a_person_ticks_a_todo_where_it_stands(tab: Tab) -> None:
    room, event = made(tab, todo=True)
    page = tab.open(f"/rooms/{room}")
    write_as(tab, "ben")
    row, aside = page.locator(f"#event-{event}"), page.get_by_role("complementary")
    for button, shown in (("Claim", "claimed by ben"), ("Done", "done")):
        pressed = aside.get_by_role("button", name=f"{button}: Paint the buoy")
        pressed.click() if tab.script else tab.follow(pressed)
        expect(row).to_contain_text(shown)
    expect(aside.get_by_text("Paint the buoy")).to_have_count(0)
    page.get_by_label("New todo").fill("Dry the brush")
    tab.follow(page.get_by_role("button", name="Add todo"))
    expect(page.get_by_role("complementary").get_by_role("link", name="Dry the brush")).to_be_visible()


def test_a_person_joins_and_leaves(tab: Tab) -> None:
    room, _ = made(tab)
    page = tab.open(f"/rooms/{room}")
    write_as(tab, "dora")
    tab.follow(page.get_by_role("button", name="Join"))
    expect(page.get_by_text("dora joined")).to_be_visible()
    tab.follow(page.get_by_role("button", name="Leave"))
    expect(page.get_by_text("dora left")).to_be_visible()


def test_the_box_stays_where_it_is_and_keeps_its_draft(scripted: Tab) -> None:
    """The draft survives messages of others, a reload and a change of name."""
    room, _ = made(scripted)
    for number in range(30):
        scripted.site.call("chat_send_message", room_id=room, persona="ann", message=f"Wave {number}.")
    page = scripted.open(f"/rooms/{room}#end")
    write_as(scripted, "ben")
    box = page.get_by_role("textbox", name="Message")
    box.fill("Half a sentence")
    before = place(box)
    for number in range(5):
        text = f"Two lines\nof number {number}"
        scripted.site.call("chat_send_message", room_id=room, persona="ann", message=text)
    expect(page.get_by_text("of number 4")).to_be_in_viewport()
    assert place(box) == before
    page.reload()
    expect(box).to_have_value("Half a sentence")
    page.get_by_role("banner").get_by_text("ben", exact=True).click()
    page.get_by_role("banner").get_by_label("Your name").fill("cleo")
    scripted.follow(page.get_by_role("banner").get_by_role("button", name="Use it"))
    expect(box).to_have_value("Half a sentence")
    box.press("Control+Enter")
    expect(page.get_by_text("Half a sentence")).to_be_in_viewport()
    page.reload()
    expect(box).to_have_value("")


def test_a_reader_of_earlier_messages_is_told_of_new_ones(scripted: Tab) -> None:
    """The page does not scroll; one click leads to the end. The todos next to it are live as well."""
    room, first = made(scripted)
    for number in range(40):
        scripted.site.call("chat_send_message", room_id=room, persona="ann", message=f"Wave {number}.")
    page = scripted.open(f"/rooms/{room}#event-{first}")
    expect(page.locator(f"#event-{first}")).to_be_in_viewport()
    for number in range(3):
        scripted.site.call("chat_send_message", room_id=room, persona="ann", message=f"Late {number}.")
    told = page.get_by_role("link", name="3 new")
    expect(told).to_be_in_viewport()
    expect(page.locator(f"#event-{first}")).to_be_in_viewport()
    scripted.site.call("chat_create_todo", room_id=room, persona="ann", description="Sound the horn")
    expect(page.get_by_role("complementary").get_by_text("Sound the horn")).to_be_visible()
    page.get_by_role("link", name="4 new").click()
    expect(page.get_by_text("Late 2.")).to_be_in_viewport()
    expect(page.get_by_role("link", name=" new")).to_have_count(0)


def test_what_is_said_on_another_day_stands_below_its_date(tab: Tab) -> None:
    room, _ = made(tab)
    page = tab.open(f"/rooms/{room}")
    expect(page.locator(".day")).to_have_count(1)
    expect(page.locator(".day")).to_have_text(f"{datetime.now(timezone.utc):%-d %B %Y}")


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


def test_what_changed_meanwhile_takes_its_own_place(scripted: Tab) -> None:
    """A changed todo and reactions appear once, in place; a row of an earlier page is not appended here."""
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
