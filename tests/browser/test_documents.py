"""Documents, from the roots down to a section, its selector and its links."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.conftest import Tab
from tests.browser.site import HOSTILE, running


def test_a_person_goes_from_the_roots_to_a_section(tab: Tab) -> None:
    page = tab.open("/documents")
    tab.follow(page.get_by_role("link", name="docs", exact=True))
    expect(page.get_by_role("heading", name="docs", level=1)).to_be_visible()
    tab.check()
    tab.follow(page.get_by_role("table").get_by_role("link", name="pump.md"))
    tab.check()
    tab.follow(page.get_by_label("Sections").get_by_role("link", name="Filling"))
    assert page.url.endswith("#s-filling")
    expect(page.locator("#s-filling")).to_be_in_viewport()
    tab.follow(page.get_by_label("Views").get_by_role("link", name="Source"))
    expect(page.locator("pre.source", has_text="pump --prime 3")).to_be_visible()
    tab.follow(page.get_by_label("Folders above").get_by_role("link", name="docs"))
    expect(page.get_by_role("table").get_by_role("link", name="pump.md")).to_be_visible()


def test_what_others_wrote_stays_text(tab: Tab) -> None:
    page = tab.open("/documents/pump.md")
    expect(page.get_by_text("Quoted <b>words</b>").first).to_be_visible()
    assert page.locator("main script, main img").count() == 0
    assert page.locator('main a[href^="javascript"]').count() == 0
    assert "\u202e" not in page.content()
    expect(page.get_by_role("link", name="photo")).to_have_attribute("href", "https://example.org/p.png")
    for view in ("Source", "Text"):
        tab.follow(page.get_by_label("Views").get_by_role("link", name=view))
        tab.check()


def test_names_are_text(tab: Tab) -> None:
    page = tab.open("/documents/docs:")
    tab.follow(page.get_by_role("table").get_by_role("link", name=f"{HOSTILE}.md"))
    tab.check()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{HOSTILE}.md")
    assert page.locator("main img").count() == 0
    tab.follow(page.get_by_label("Sections").get_by_role("link").last)
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{HOSTILE}.md")


def test_links_lead_to_documents_and_say_where_they_lead_nowhere(tab: Tab) -> None:
    page = tab.open("/documents/pump.md")
    tab.follow(page.get_by_role("link", name="care", exact=True))
    assert page.url.endswith("care.md#s-cleaning")
    page = tab.open("/documents/docs:")
    health = page.get_by_label("Checks").get_by_role("link").first
    if tab.script:
        expect(health).to_have_text("Broken links 3")
    tab.follow(health)
    tab.check()
    tab.follow(page.get_by_role("row", name="guide/speed.md").get_by_role("link", name="22"))
    expect(page.locator("mark#line")).to_be_in_viewport()
    expect(page.locator("mark#line")).to_contain_text("guide/speed.md")


def test_a_long_file_has_pages(tab: Tab) -> None:
    page = tab.open("/documents/guide/steps.md?offset=30&view=text")
    expect(page.get_by_role("heading", name="Step 30", exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name="Step 2", exact=True)).to_have_count(0)
    tab.follow(page.get_by_role("link", name="From the beginning"))
    expect(page.get_by_role("heading", name="Step 2", exact=True)).to_be_visible()
    tab.open("/documents/empty.md")
    tab.open("/documents/absent.md", status=404)


def test_a_selector_is_copied(scripted: Tab) -> None:
    scripted.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = scripted.open("/documents/pump.md")
    page.locator("#s-filling").get_by_role("button").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "pump ### Filling"


def test_arrows_walk_the_outline(scripted: Tab) -> None:
    page = scripted.open("/documents/pump.md")
    outline = page.get_by_label("Sections")
    outline.get_by_role("link", name="Siphon").focus()
    page.keyboard.press("ArrowDown")
    expect(outline.get_by_role("link", name="Filling")).to_be_focused()


def test_a_table_is_sorted_and_filtered(tab: Tab) -> None:
    """A table is sorted and filtered by its form or while a person types; its state is in the address."""
    page = tab.open("/documents/docs:guide")
    table = page.get_by_role("table")
    tab.follow(table.get_by_role("link", name="Tokens"))
    expect(table.get_by_role("rowheader").first).to_contain_text("steps.md")
    tab.follow(table.get_by_role("link", name="Name"))
    expect(table.get_by_role("rowheader").first).to_contain_text("care.md")
    box = page.get_by_label("Filter all files below by path or title")
    box.press_sequentially("steps")
    if not tab.script:
        tab.follow(page.get_by_role("button", name="Filter"))
    expect(table.get_by_role("rowheader")).to_have_count(1)
    expect(box).to_have_value("steps")
    if tab.script:
        expect(box).to_be_focused()
        expect(page.get_by_role("button", name="Filter")).to_have_count(0)
    assert "filter=steps" in page.url
    tab.check()
    with page.expect_download() as saved:
        page.get_by_role("link", name="CSV").click()
    assert len(saved.value.path().read_text(encoding="utf-8").splitlines()) == 2


def test_a_section_is_edited_where_it_is_read(tmp_path: Path, browser: Browser) -> None:
    """An edit has a preview, and the browser asks before it leaves a text that is not saved."""
    with running(tmp_path, "--write") as site:
        tab = Tab(browser.new_context(viewport={"width": 1280, "height": 800}), site, True)
        page = tab.open("/documents/guide/care.md")
        tab.follow(page.get_by_role("link", name="Edit Cleaning"))
        tab.check()
        box = page.get_by_label("Text of the section")
        expect(box).to_have_value("## Cleaning\n\nRinse it. See [nothing](missing.md).")
        box.fill("## Cleaning\n\nRinse it **twice**.")
        asked: list[str] = []
        page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
        page.get_by_role("link", name="Documents").last.click()
        expect(box).to_have_value("## Cleaning\n\nRinse it **twice**.")
        page.get_by_role("searchbox").first.fill("valve")
        page.keyboard.press("Enter")
        expect(box).to_have_value("## Cleaning\n\nRinse it **twice**.")
        assert asked == ["beforeunload"] * 2
        tab.follow(page.get_by_role("button", name="Preview"))
        expect(page.locator(".preview strong")).to_have_text("twice")
        tab.check()
        tab.follow(page.get_by_role("button", name="Save"))
        expect(page.locator(".markdown strong")).to_have_text("twice")
        text = (site.docs / "guide" / "care.md").read_text(encoding="utf-8")
        assert "Rinse it **twice**.\n\n### Tools" in text
        tab.close()
