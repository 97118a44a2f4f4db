"""The log of calls: a row for each question, its words first, and its outcome; reasons of failures."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Tab
from tests.browser.site import Site
from tests.npl_mcp.http.http_server import call
from tests.until import until


@pytest.fixture(scope="module")
def asked(site: Site) -> Site:
    """Questions with an answer and without one, and a failed call; older calls may be on a later page."""
    site.call("npl_load_tailored", context="siphon lifts water over edge 3", file="siphons.md")
    site.call("npl_load_tailored", context="zzyzx quokka wombat", file="siphons.md")
    site.call("search", query="where is the capstan oiled now")
    failed = {"context": "hoist the yard", "file": "rigging.md"}
    call(site.server, "npl_load_tailored", failed)
    return site


def rows(page: Page, path: str, site: Site, text: str) -> list[str]:
    """Return the first cells of the table, once one of them has a text: the log is written a moment later."""
    cells = page.locator("tbody th")
    until(lambda: page.goto(site.url + path) and cells.filter(has_text=text).count())
    return [one.split("\n")[0].strip() for one in cells.all_inner_texts()]


def numbers(page: Page, column: int) -> list[float]:
    texts = page.locator(f"#rows tbody td:nth-of-type({column})").all_inner_texts()
    return [float(text.replace(",", "")) for text in texts if text]


def test_a_row_begins_with_its_question(tab: Tab, asked: Site) -> None:
    page = tab.page
    found = rows(page, "/usage", asked, "capstan oiled now")
    tab.check()
    assert any(one.startswith("where is the capstan oiled now") for one in found)
    taken = page.locator("details", has_text="siphons.md: ").filter(has_text="## Part").first
    taken.locator("summary").click()
    expect(taken.get_by_text("siphons > ## Part").first).to_be_visible()
    tab.check()


def test_questions_are_on_the_first_screen(tab: Tab, asked: Site) -> None:
    page = tab.open("/usage?show=questions")
    box = page.locator("#rows tbody tr").first.bounding_box()
    assert box is not None
    assert box["y"] + 40 < 800


def test_what_went_wrong_is_chosen(tab: Tab, asked: Site) -> None:
    """Each kind by its tab; what fits no kind is not there."""
    page = tab.page
    nothing = rows(page, "/usage?show=nothing", asked, "quokka")
    assert any(one.startswith("zzyzx quokka wombat") for one in nothing)
    assert not any("capstan" in one for one in nothing)
    failed = page.locator("#rows tbody tr", has_text="hoist the yard")
    tab.follow(page.get_by_label("Kinds of calls").get_by_role("link", name="Failed"))
    expect(failed).to_contain_text("NOT_FOUND")
    expect(failed).to_contain_text("there is no document 'rigging.md'")
    expect(failed).to_contain_text("'file': 'rigging.md'")
    tab.check()


def test_calls_are_sorted(tab: Tab, asked: Site) -> None:
    page = tab.open("/usage?show=questions")
    heads = page.locator("#rows thead")
    tab.follow(heads.get_by_role("link", name="Tokens"))
    assert numbers(page, 1) == sorted(numbers(page, 1), reverse=True) != []
    tab.follow(heads.get_by_role("link", name="ms"))
    found = numbers(page, 2)
    assert found == sorted(found, reverse=True)
    tab.follow(heads.get_by_role("link", name="ms"))
    assert numbers(page, 2) == sorted(found)


def test_a_question_leads_to_ask(tab: Tab, asked: Site) -> None:
    page = tab.page
    rows(page, "/usage?show=questions", asked, "siphon lifts water over edge 1")
    tab.follow(page.get_by_role("link", name="Open in Ask: siphon lifts water over edge 1"))
    expect(page.get_by_label("Context")).to_have_value("siphon lifts water over edge 1")
    expect(page.locator(".card:is(.taken, .cut)").first).to_be_visible()


def test_calls_of_one_tool(tab: Tab) -> None:
    page = tab.open("/usage?tool=create_cr")
    expect(page.locator("#rows tbody th", has_text="create_cr").first).to_be_visible()
    expect(page.locator("#rows tbody th", has_text="siphon")).to_have_count(0)
