"""Search: one box on every page, and what it finds in every kind of thing."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Tab


def test_a_word_is_found_everywhere(tab: Tab) -> None:
    page = tab.open("/rooms")
    page.get_by_role("searchbox").fill("capstan")
    with tab.arriving():
        page.get_by_role("searchbox").press("Enter")
    tab.check()
    hits = page.get_by_role("main").get_by_role("listitem")
    for kind in ("document", "message", "worklog", "artifact", "cr"):
        expect(hits.get_by_text(kind, exact=True).first).to_be_visible()
    expect(page.get_by_text("Oil the capstan <i>now</i>.")).to_be_visible()
    tab.follow(page.get_by_label("Kinds").get_by_role("link", name="Messages"))
    tab.check()
    expect(hits).to_have_count(1)
    tab.follow(hits.get_by_role("link"))
    expect(page.get_by_text("Oil the capstan <i>now</i>.").first).to_be_in_viewport()


def test_a_document_opens_at_its_section(tab: Tab) -> None:
    page = tab.open("/search?q=prime+the+siphon&kind=document")
    tab.follow(page.get_by_role("main").get_by_role("link", name="Filling"))
    expect(page.get_by_role("heading", name="Filling")).to_be_visible()
    expect(page.get_by_role("heading", name="Impeller")).to_be_visible()


def test_the_first_page_shows_what_is_new(tab: Tab) -> None:
    page = tab.open("/")
    for title in ("Documents", "Messages", "Worklogs", "Artifacts", "Change requests"):
        expect(page.get_by_role("heading", name=title)).to_be_visible()
    tab.follow(page.get_by_role("main").get_by_role("link", name="docs", exact=True))
    expect(page.get_by_role("heading", name="docs", level=1)).to_be_visible()


def test_nothing_is_said_where_nothing_fits(tab: Tab) -> None:
    page = tab.open("/search?q=zzzxqv")
    expect(page.get_by_text("Nothing fits.")).to_be_visible()
    tab.open("/search")
    tab.open("/search?q=a&kind=none", status=400)


def test_a_slash_leads_to_the_box(scripted: Tab) -> None:
    page = scripted.open("/rooms")
    page.keyboard.press("/")
    page.keyboard.type("capstan")
    with scripted.arriving():
        page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Search", level=1)).to_be_visible()
