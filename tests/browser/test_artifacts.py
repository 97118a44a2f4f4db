"""Artifacts: comments at their lines and spots, what changed between revisions, and reviews that end."""

from __future__ import annotations

import secrets

from playwright.sync_api import expect

from tests.browser.conftest import Tab


def made(tab: Tab) -> int:
    """An artifact of this test alone."""
    made = tab.site.call(
        "artifact_create",
        name=f"log {secrets.token_hex(4)}",
        artifact_type="document",
        filename="log.md",
        content="# Log\n\nCalm.\n",
        created_by="ann",
    )
    return int(made["artifact_id"])


def test_comments_stand_at_their_lines(tab: Tab) -> None:
    page = tab.open("/artifacts")
    tab.follow(page.get_by_role("link", name="quay-plan"))
    tab.follow(page.get_by_role("link", name="Revision 0"))
    expect(page.locator("#L5")).to_contain_text("The Aurora has 94.")
    tab.check()
    tab.follow(page.get_by_role("link", name="Rendered"))
    expect(page.get_by_role("heading", name="Berths")).to_be_visible()
    tab.check()


def test_a_person_comments_and_completes_the_review(tab: Tab) -> None:
    number = made(tab)
    page = tab.open(f"/artifacts/{number}")
    tab.follow(page.get_by_role("link", name="Line 3"))
    expect(page.get_by_label("Place")).to_have_value("line:3")
    page.get_by_label("Your name").fill("dora")
    page.get_by_label("Comment", exact=True).fill("How <i>calm</i>?")
    tab.follow(page.get_by_role("button", name="Comment"))
    expect(page.locator("#L3")).to_contain_text("How <i>calm</i>?")
    tab.follow(page.get_by_role("link", name="Review "))
    tab.check()
    page.get_by_label("Place").fill("line:1")
    page.get_by_label("Your name").fill("dora")
    page.get_by_label("Comment", exact=True).fill("Which ship?")
    tab.follow(page.get_by_role("button", name="Comment"))
    expect(page.locator("#L1")).to_contain_text("Which ship?")
    page.get_by_label("About the whole").fill("Short.")
    tab.follow(page.get_by_role("button", name="Complete"))
    expect(page.get_by_text("completed").first).to_be_visible()
    expect(page.get_by_text("Short.")).to_be_visible()
    expect(page.get_by_role("button", name="Comment")).to_have_count(0)
    tab.check()


def test_a_click_on_a_picture_is_the_place_of_a_comment(tab: Tab) -> None:
    page = tab.open("/artifacts/2")
    expect(page.get_by_role("link", name="Comment 1")).to_be_visible()
    tab.follow(page.get_by_role("link", name="Mark a spot"))
    tab.check()
    page.get_by_alt_text("Click where the comment belongs").click(position={"x": 40, "y": 30})
    expect(page.get_by_label("Place")).to_have_value("@x:40,y:30")


def test_two_revisions_are_compared(tab: Tab) -> None:
    page = tab.open("/artifacts/1/compare?from=0&to=1")
    expect(page.get_by_text("Berth 2 is closed until the crane is repaired.")).to_be_visible()
    expect(page.get_by_text("Berth 2 is open from Monday on.")).to_be_visible()
    tab.choose(page.get_by_role("combobox").last, "side by side", "Compare")
    assert "view=split" in page.url
    expect(page.get_by_text("Berth 2 is open from Monday on.")).to_be_visible()
    tab.check()


def test_a_file_is_saved(tab: Tab) -> None:
    page = tab.open("/artifacts/1")
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download").click()
    assert saved.value.suggested_filename == "plan.md"
