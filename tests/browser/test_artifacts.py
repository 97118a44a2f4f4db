"""Comments on lines and spots of artifacts, differences between revisions, and the end of reviews."""

import secrets

from playwright.sync_api import expect

from tests.browser.conftest import Tab


def made(tab: Tab) -> int:
    """An artifact that no other test uses."""
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
    tab.follow(page.get_by_role("link", name="Revision 0", exact=True))
    expect(page.locator("#L5")).to_contain_text("The Aurora has 94.")
    tab.check()
    tab.follow(page.get_by_role("link", name="Text", exact=True))
    expect(page.get_by_role("heading", name="Berths")).to_be_visible()
    tab.check()


def choose_line(tab: Tab, number: int) -> None:
    line = tab.page.get_by_role("link", name=f"Comment on line {number}", exact=True)
    line.click() if tab.script else tab.follow(line)
    expect(tab.page.locator("#write [name=location]")).to_have_value(f"line:{number}")


def test_a_person_comments_at_the_line_and_gives_a_verdict(tab: Tab) -> None:
    number = made(tab)
    page = tab.open(f"/artifacts/{number}?view=source")
    choose_line(tab, 3)
    line, box = page.locator("#L3").bounding_box(), page.get_by_label("Comment", exact=True).bounding_box()
    assert line is not None
    assert box is not None
    assert abs(box["y"] - line["y"]) < 250
    page.locator("#write").get_by_label("Your name").fill("dora")
    page.get_by_label("Comment", exact=True).fill("How <i>calm</i>?")
    tab.follow(page.get_by_role("button", name="Comment", exact=True))
    expect(page.locator("#L3")).to_contain_text("How <i>calm</i>?")
    tab.check()
    page.get_by_label("About the whole").fill("Short.")
    tab.follow(page.get_by_role("button", name="Request changes"))
    expect(page.get_by_role("status")).to_have_text("Sent: changes requested.")
    tab.follow(page.get_by_role("complementary").get_by_role("link", name="Review "))
    expect(page.get_by_text("Short.")).to_be_visible()
    tab.check()


def test_a_typed_comment_moves_with_the_chosen_line(scripted: Tab) -> None:
    number = made(scripted)
    page = scripted.open(f"/artifacts/{number}?view=source")
    choose_line(scripted, 1)
    page.get_by_label("Comment", exact=True).fill("Half a thought")
    choose_line(scripted, 3)
    expect(page.locator("#L3").get_by_label("Comment", exact=True)).to_have_value("Half a thought")
    page.reload()
    choose_line(scripted, 1)
    expect(page.get_by_label("Comment", exact=True)).to_have_value("Half a thought")


def test_a_person_comments_in_the_difference(tab: Tab) -> None:
    number = made(tab)
    tab.site.call("artifact_add_revision", artifact_id=number, filename="log.md", content="# Log\n\nStorm.\n")
    page = tab.open(f"/artifacts/{number}/compare")
    choose_line(tab, 3)
    page.locator("#write").get_by_label("Your name").fill("dora")
    page.get_by_label("Comment", exact=True).fill("Since when?")
    tab.follow(page.get_by_role("button", name="Comment", exact=True))
    assert "/compare" in page.url
    expect(page.locator("tr", has_text="Since when?").first).to_be_visible()
    tab.check()


def test_a_click_on_a_picture_is_the_place_of_a_comment(tab: Tab) -> None:
    page = tab.open("/artifacts/2")
    expect(page.get_by_role("link", name="Comment 1")).to_be_visible()
    tab.follow(page.get_by_role("link", name="Mark a spot"))
    tab.check()
    page.get_by_alt_text("Click where the comment belongs").click(position={"x": 40, "y": 30})
    expect(page.locator("#write [name=location]")).to_have_value("@x:40,y:30")
    expect(page.get_by_label("Comment", exact=True)).to_be_visible()


def test_two_revisions_are_compared(tab: Tab) -> None:
    page = tab.open("/artifacts/1/compare?from=0&to=1")
    expect(page.get_by_text("Berth 2 is closed until the crane is repaired.")).to_be_visible()
    expect(page.get_by_text("Berth 2 is open from Monday on.")).to_be_visible()
    tab.check()


def test_a_file_is_saved(tab: Tab) -> None:
    page = tab.open("/artifacts/1")
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download").click()
    assert saved.value.suggested_filename == "plan.md"
