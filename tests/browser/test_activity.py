"""Activity: one list by day and agent, and the entries of a session and of a worklog while they grow."""

import secrets

from playwright.sync_api import expect

from tests.browser.conftest import Tab


def test_what_an_agent_did_on_a_day_takes_three_clicks(tab: Tab) -> None:
    page = tab.open("/")
    tab.follow(page.get_by_role("link", name="Team"))
    tab.check()
    tab.follow(page.get_by_role("navigation", name="Days").get_by_role("link").nth(1))
    tab.follow(page.get_by_role("list", name="Agents").get_by_role("link", name="surveyor"))
    rows = page.locator(".feed .event")
    expect(rows.first).to_be_visible()
    assert {row.locator("b").inner_text() for row in rows.all()} == {"surveyor"}
    tab.check()


def test_a_session_leads_to_what_belongs_to_it(tab: Tab) -> None:
    for name in ("quay-plan", "review 1", "worklog"):
        page = tab.open("/sessions/quay-3")
        tab.follow(page.locator("#activity").get_by_role("link", name=name).first)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        tab.check()


def test_what_is_made_meanwhile_shows(scripted: Tab) -> None:
    name = f"dock-{secrets.token_hex(4)}"
    scripted.site.call("session_create", session_id=name)
    page = scripted.open(f"/sessions/{name}")
    expect(page.get_by_text("Nothing here.")).to_be_visible()
    scripted.site.call("chat_create_room", name=f"Room of {name}", members=["ann"], session_id=name)
    expect(page.get_by_role("link", name=f"Room of {name}")).to_be_visible()
    scripted.check()


def test_what_is_logged_meanwhile_shows(scripted: Tab) -> None:
    name = f"watch-{secrets.token_hex(4)}"
    scripted.site.call("worklog_init", session_id=name)
    page = scripted.open(f"/worklogs/{name}")
    given = {"session_id": name, "agent_id": "pilot", "action": "found"}
    scripted.site.call("worklog_log", summary="A ship at the bar", **given)
    expect(page.get_by_text("A ship at the bar")).to_be_visible()
