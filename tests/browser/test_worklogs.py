"""Worklogs show their entries, also those that are logged while the page is open."""

import secrets

from playwright.sync_api import expect

from tests.browser.conftest import Tab


def test_entries_have_their_data(tab: Tab) -> None:
    page = tab.open("/worklogs")
    tab.follow(page.get_by_role("link", name="Open the third quay"))
    expect(page.get_by_text("The wall has a crack near bollard 12")).to_be_visible()
    tab.check()


def test_what_is_logged_meanwhile_shows(scripted: Tab) -> None:
    name = f"watch-{secrets.token_hex(4)}"
    scripted.site.call("worklog_init", session_id=name)
    page = scripted.open(f"/worklogs/{name}")
    given = {"session_id": name, "agent_id": "pilot", "action": "found"}
    scripted.site.call("worklog_log", summary="A ship at the bar", **given)
    expect(page.get_by_text("A ship at the bar")).to_be_visible()
