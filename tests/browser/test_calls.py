"""The log of calls: a row for each question, its words first; its outcome, and what was asked after what."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Tab
from tests.browser.site import Site


@pytest.fixture(scope="module")
def asked(site: Site) -> Site:
    """Questions with an answer, without one, and asked again; older calls may be on a later page."""
    site.call("npl_load_tailored", context="siphon lifts water over edge 3", file="siphons.md")
    site.call("npl_load_tailored", context="zzyzx quokka wombat", file="siphons.md")
    for words in ("where is the capstan oiled today", "where is the capstan oiled now"):
        site.call("search", query=words)
    return site


def rows(page: Page, path: str, site: Site, text: str) -> list[str]:
    """Return the first cells of the table, once one of them has a text: the log is written a moment later."""
    cells = page.locator("tbody th")
    for _ in range(40):
        page.goto(site.url + path)
        if cells.filter(has_text=text).count():
            break
        page.wait_for_timeout(250)
    return [one.split("\n")[0].strip() for one in cells.all_inner_texts()]


def numbers(page: Page, column: int) -> list[float]:
    texts = page.locator(f"#rows tbody td:nth-of-type({column})").all_inner_texts()
    return [float(text.replace(",", "")) for text in texts if text]


def test_a_row_begins_with_its_question(tab: Tab, asked: Site) -> None:
    page = tab.page
    found = rows(page, "/calls", asked, "capstan oiled now")
    tab.check()
    assert any(one.startswith("where is the capstan oiled now") for one in found)
    expect(page.get_by_text("median").first).to_be_visible()
    taken = page.locator("details", has_text="siphons.md: ").filter(has_text="## Part").first
    taken.locator("summary").click()
    expect(taken.get_by_text("siphons > ## Part").first).to_be_visible()
    tab.follow(page.get_by_role("link", name="Figures"))
    expect(page.get_by_role("img", name="Tokens saved")).to_be_visible()
    page.get_by_text("The same as a table").click()
    tab.check()


def test_questions_are_on_the_first_screen(tab: Tab, asked: Site) -> None:
    page = tab.open("/calls?show=questions")
    box = page.locator("#rows tbody tr").first.bounding_box()
    assert box is not None
    assert box["y"] + 40 < 800


def test_what_went_wrong_is_chosen(tab: Tab, asked: Site) -> None:
    """Each kind by its tab; what fits no kind is not there."""
    page = tab.page
    again = rows(page, "/calls?show=again", asked, "oiled now")
    assert any(one.startswith("where is the capstan oiled now") for one in again)
    assert not any(one.startswith("where is the capstan oiled today") for one in again)
    nothing = rows(page, "/calls?show=nothing", asked, "quokka")
    assert any(one.startswith("zzyzx quokka wombat") for one in nothing)
    assert not any("capstan" in one for one in nothing)
    tab.follow(page.get_by_label("Kinds of calls").get_by_role("link", name="Questions"))
    tools = set(page.locator("#rows tbody td:nth-of-type(1)").all_text_contents())
    assert tools == {"npl_load_tailored", "search"}
    tab.check()


def test_calls_are_sorted(tab: Tab, asked: Site) -> None:
    page = tab.open("/calls?show=questions")
    heads = page.locator("#rows thead")
    tab.follow(heads.get_by_role("link", name="Tokens"))
    assert numbers(page, 3) == sorted(numbers(page, 3), reverse=True) != []
    tab.follow(heads.get_by_role("link", name="ms"))
    found = numbers(page, 4)
    assert found == sorted(found, reverse=True)
    tab.follow(heads.get_by_role("link", name="ms"))
    assert numbers(page, 4) == sorted(found)


def test_a_question_leads_to_ask_and_to_the_list(tab: Tab, asked: Site) -> None:
    """One click each."""
    page = tab.page
    rows(page, "/calls?show=questions", asked, "siphon lifts water over edge 1")
    tab.follow(page.get_by_role("link", name="Open in Ask: siphon lifts water over edge 1"))
    expect(page.get_by_label("Context")).to_have_value("siphon lifts water over edge 1")
    expect(page.locator(".card:is(.taken, .cut)").first).to_be_visible()
    page = tab.open("/calls?show=questions")
    tab.follow(page.get_by_role("button", name="Save as question: siphon lifts water over edge 1"))
    expect(page.locator("tr:target")).to_contain_text(re.compile("siphon.*## Part"))
    tab.check()


def test_a_session_is_a_trace(tab: Tab, asked: Site) -> None:
    """Its calls stand in their order, each bar behind the one before."""
    page = tab.page
    rows(page, "/calls?sessions=1", asked, "capstan oiled now")
    tab.check()
    groups = [one.locator(".trace rect").all() for one in page.locator(".traced").all()]
    places = [[box["x"] for bar in group if (box := bar.bounding_box())] for group in groups]
    assert max(map(len, places)) >= 2
    assert all(one == sorted(one) for one in places)


def test_calls_of_one_tool(tab: Tab) -> None:
    page = tab.open("/calls?tool=create_cr&span=hour")
    expect(page.locator("#rows tbody th", has_text="create_cr").first).to_be_visible()
    expect(page.locator("#rows tbody th", has_text="siphon")).to_have_count(0)
