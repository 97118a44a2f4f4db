"""Change requests: board and table, a section and an attribute edited, and what changed meanwhile."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Tab

EDIT = "/changes/HBR-00{}/edit?section=%23%23+2.+Rationale"


def test_a_board_and_a_table(tab: Tab) -> None:
    page = tab.open("/changes")
    expect(page.get_by_role("heading", name="In Progress")).to_be_visible()
    tab.choose(page.get_by_label("Priority"), "Critical")
    tab.choose(page.get_by_label("Shown as"), "table")
    assert "priority=Critical" in page.url
    expect(page.get_by_role("row")).to_have_count(2)
    tab.check()
    tab.follow(page.get_by_role("link", name="HBR-003"))
    expect(page.get_by_role("heading", name="One valve for both basins")).to_be_visible()
    tab.check()


def test_a_section_is_edited_by_two(tab: Tab) -> None:
    page = tab.open(EDIT.format(1))
    tab.site.call(
        "manage_cr_sections", key="HBR-001", operation="append", section="## 2. Rationale", content="Theirs."
    )
    page.get_by_label("Text of the section").fill("Mine.")
    tab.follow(page.get_by_role("button", name="Save"))
    expect(page.get_by_text("Nothing was overwritten")).to_be_visible()
    expect(page.get_by_text("+ Theirs.").first).to_be_visible()
    tab.check_refused()
    tab.follow(page.get_by_role("button", name="Save"))
    expect(page.locator("article").get_by_text("Mine.")).to_be_visible()
    tab.check()


def test_an_attribute_is_edited(tab: Tab) -> None:
    page = tab.open("/changes/HBR-002")
    page.get_by_text("Change attributes").click()
    page.get_by_label("Assignee").fill("ben")
    tab.follow(page.get_by_role("button", name="Save"))
    expect(page.locator("dd", has_text="ben").first).to_be_visible()
    page.get_by_label("Status").select_option("In Progress")
    tab.follow(page.get_by_role("button", name="Set status"))
    expect(page.locator("dd", has_text="In Progress").first).to_be_visible()
    tab.check()
    tab.site.call("update_cr_status", key="HBR-002", status="Approved")
    tab.site.call("update_cr_attrs", key="HBR-002", attributes={"assignee": "ann"})
