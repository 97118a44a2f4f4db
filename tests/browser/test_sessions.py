"""The list of sessions, and the contents of one while it grows."""

import secrets

from playwright.sync_api import expect

from tests.browser.conftest import Tab


def test_a_session_leads_to_what_belongs_to_it(tab: Tab) -> None:
    for name in ("quay-plan", "Review 1", "Open the third quay"):
        page = tab.open("/sessions")
        tab.follow(page.get_by_role("link", name="Open the third quay"))
        tab.follow(page.locator("#parts").get_by_role("link", name=name).first)
        expect(page.get_by_role("heading", level=1)).to_contain_text(name.removeprefix("Review 1"))


def test_what_is_made_meanwhile_shows(scripted: Tab) -> None:
    name = f"dock-{secrets.token_hex(4)}"
    scripted.site.call("session_create", session_id=name)
    page = scripted.open(f"/sessions/{name}")
    expect(page.get_by_text("Nothing belongs to this session yet.")).to_be_visible()
    scripted.site.call("chat_create_room", name=f"Room of {name}", members=["ann"], session_id=name)
    expect(page.get_by_role("link", name=f"Room of {name}")).to_be_visible()
    scripted.check()


def test_a_list_shows_what_is_new(scripted: Tab) -> None:
    page = scripted.open("/sessions")
    name = f"listed-{secrets.token_hex(4)}"
    scripted.site.call("session_create", session_id=name, title=name)
    expect(page.get_by_role("link", name=name)).to_be_visible()
