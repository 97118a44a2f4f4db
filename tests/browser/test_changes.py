"""Change requests: a table, edits of sections and attributes, and simultaneous changes."""

import secrets

from playwright.sync_api import expect

from tests.browser.conftest import Tab

EDIT = "/changes/HBR-00{}/edit?section=%23%23+2.+Rationale"


def test_a_table_is_filtered(tab: Tab) -> None:
    page = tab.open("/changes")
    tab.choose(page.get_by_label("Priority").first, "Critical")
    assert "priority=Critical" in page.url
    expect(page.get_by_role("row")).to_have_count(2)
    tab.check()
    tab.follow(page.get_by_role("link", name="HBR-003"))
    expect(page.get_by_role("heading", name="One valve for both basins")).to_be_visible()
    tab.check()


def made(tab: Tab, title: str) -> str:
    """A change request of this title, which no other test uses."""
    unique = f"{title} {secrets.token_hex(4)}"
    tab.site.call("create_cr", project="HBR", type="Bug Fix", data={"title": unique, "assignee": "cleo"})
    return unique


def test_the_way_back_keeps_the_filter(tab: Tab) -> None:
    title = made(tab, "The bell is cracked")
    page = tab.open("/changes?assignee=cleo")
    row = page.get_by_role("row").filter(has_text=title)
    tab.follow(row.get_by_role("link").first)
    tab.follow(page.get_by_role("main").get_by_role("link", name="Changes"))
    assert "assignee=cleo" in page.url


def test_a_change_request_is_created(tab: Tab) -> None:
    page = tab.open("/changes")
    page.get_by_text("New change request").click()
    form = page.locator("details.create")
    form.get_by_label("Title").fill("The quay needs a lamp")
    form.get_by_label("Type").select_option("Documentation")
    tab.follow(form.get_by_role("button", name="Create"))
    expect(page.get_by_role("heading", level=1)).to_have_text("The quay needs a lamp")


def test_the_table_shows_what_others_do(scripted: Tab) -> None:
    page = scripted.open("/changes")
    title = made(scripted, "A rope is missing")
    expect(page.get_by_text(title)).to_be_visible()


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
    expect(page.get_by_label("Status")).to_have_value("In Progress")
    tab.check()
    tab.site.call("update_cr_status", key="HBR-002", status="Approved")
    tab.site.call("update_cr_attrs", key="HBR-002", attributes={"assignee": "ann"})
