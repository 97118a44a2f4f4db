"""Usage: questions without an answer, failed calls with their reasons, and all calls."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Tab
from tests.browser.site import Site
from tests.npl_mcp.http.http_server import call
from tests.until import until


@pytest.fixture(scope="module")
def asked(site: Site) -> Site:
    """Questions with an answer and without one, and a failed call."""
    site.call("npl_load_tailored", context="siphon lifts water over edge 3", file="siphons.md")
    site.call("npl_load_tailored", context="zzyzx quokka wombat", file="siphons.md")
    failed = {"context": "hoist the yard", "file": "rigging.md"}
    call(site.server, "npl_load_tailored", failed)
    return site


def row(page: Page, text: str) -> Locator:
    return page.locator("#rows tbody tr", has_text=text).first


def opened(tab: Tab, show: str, text: str) -> Page:
    """Open a tab once it has a row with a text: the log is written a moment later."""
    page = tab.page
    until(lambda: page.goto(f"{tab.site.url}/usage?show={show}") and row(page, text).count())
    tab.check()
    return page


def test_a_question_without_an_answer_becomes_a_test(tab: Tab, asked: Site) -> None:
    page = opened(tab, "", "zzyzx quokka wombat")
    expect(row(page, "zzyzx quokka wombat")).to_contain_text("nothing")
    tab.follow(page.get_by_role("link", name="zzyzx quokka wombat"))
    expect(page.get_by_label("Question or task")).to_have_value("zzyzx quokka wombat")


def test_failed_calls_have_their_reasons(tab: Tab, asked: Site) -> None:
    page = opened(tab, "failed", "hoist the yard")
    expect(row(page, "hoist the yard")).to_contain_text("there is no document 'rigging.md'")
    expect(row(page, "hoist the yard")).to_contain_text('"file": "rigging.md"')
    expect(row(page, "siphon")).to_have_count(0)


def test_all_calls_are_narrowed_and_sorted(tab: Tab, asked: Site) -> None:
    page = opened(tab, "all", "siphon lifts water over edge 3")
    row(page, "siphon lifts water over edge 3").locator("summary").click()
    expect(page.get_by_text("siphons > ## Part").first).to_be_visible()
    tab.check()
    if tab.page.viewport_size["width"] > 640:  # type: ignore[index]
        tab.follow(page.locator("#rows thead").get_by_role("link", name="Tokens"))
    else:  # a phone stacks the rows under their names
        tab.open("/usage?show=all&sort=-used")
    texts = page.locator('#rows tbody td[data-title="Tokens"]').all_inner_texts()
    numbers = [float(text.replace(",", "")) for text in texts if text]
    assert numbers == sorted(numbers, reverse=True) != []
    page = tab.open("/usage?show=all&filter=create_cr")
    expect(row(page, "create_cr")).to_be_visible()
    expect(row(page, "siphon")).to_have_count(0)


def test_a_new_call_appears_by_itself(scripted: Tab, asked: Site) -> None:
    page = opened(scripted, "all", "siphon")
    asked.call("search", query="where is the capstan oiled now")
    expect(row(page, "where is the capstan oiled now")).to_be_visible()
