"""Worklogs: filters, and what is logged while the page is open."""

from __future__ import annotations

import secrets

from playwright.sync_api import expect

from tests.browser.conftest import Tab


def test_entries_are_chosen_by_agent_action_and_tag(tab: Tab) -> None:
    page = tab.open("/worklogs")
    tab.follow(page.get_by_role("link", name="Open the third quay"))
    tab.check()
    tab.choose(page.locator("select[name=tag]"), "risk")
    assert "tag=risk" in page.url
    expect(page.get_by_text("The wall has a crack near bollard 12")).to_be_visible()
    expect(page.get_by_text("Measure the quay wall")).to_have_count(0)
    tab.check()
    tab.open("/worklogs/quay-3?action=decided")
    expect(page.get_by_text("Ships over 90 m go to berth 1")).to_be_visible()
    tab.choose(page.locator("select[name=who]"), "planner")
    expect(page.get_by_text("1 of 5")).to_be_visible()


def test_what_is_logged_meanwhile_shows(scripted: Tab) -> None:
    name = f"watch-{secrets.token_hex(4)}"
    scripted.site.call("worklog_open", session_id=name)
    page = scripted.open(f"/worklogs/{name}")
    given = {"session_id": name, "agent_id": "pilot", "action": "found"}
    scripted.site.call("worklog_log", summary="A ship at the bar", **given)
    expect(page.get_by_text("A ship at the bar")).to_be_visible()
