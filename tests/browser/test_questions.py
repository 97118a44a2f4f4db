"""Questions: run in sight, the worst first, edited where they stand."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Tab
from tests.browser.site import Site


@pytest.fixture
def listed(site: Site) -> Iterator[Path]:
    """A file with a question that holds, one that does not, and one that nothing answers."""
    file = site.docs / f"{secrets.token_hex(4)}.questions.md"
    file.write_text(
        "## When are corks soaked?\n\n- bottles > ## Racks\n\n"
        "## When are barrels turned?\n\n- barrels > ## Turning barrels\n\n"
        "## Who feeds the quokka?\n\n- nowhere\n",
        encoding="utf-8",
    )
    yield file
    file.unlink()


def test_questions_are_run_and_the_worst_stands_first(tab: Tab, listed: Path) -> None:
    """Without leaving the page the progress ends; the table then begins with what does not hold."""
    page = tab.open(f"/questions?filter={listed.name}")
    tab.follow(page.get_by_role("button", name="Run all"))
    while not tab.script and page.get_by_role("progressbar").count():
        page.reload()
    expect(page.get_by_role("progressbar")).to_have_count(0)
    expect(page.get_by_role("status")).to_contain_text("mean reciprocal rank")
    tab.check()
    page = tab.open(f"/questions?filter={listed.name}")
    rows = page.locator("#rows tbody tr")
    expect(rows.nth(0)).to_contain_text("When are corks soaked?")
    expect(rows.nth(0)).to_contain_text("Better placed: cellar/bottles.md > ## Corks")
    expect(rows.nth(0).get_by_text("no", exact=True)).to_be_visible()
    expect(rows.nth(2).get_by_text("yes", exact=True)).to_be_visible()
    expect(page.get_by_role("img", name="Held by the first answer")).to_be_visible()
    tab.check()


def test_one_question_is_run_alone(tab: Tab, listed: Path) -> None:
    page = tab.open(f"/questions?filter={listed.name}")
    tab.follow(page.get_by_role("button", name="Run: When are barrels turned?"))
    while not tab.script and page.get_by_role("progressbar").count():
        page.reload()
    expect(page.get_by_role("status")).to_contain_text("1 of 1 held")


def test_a_question_is_written_in_the_browser(browser: Browser, site: Site) -> None:
    """By keys alone: a new one, and its removal."""
    tab = Tab(browser.new_context(viewport={"width": 390, "height": 844}), site, True)
    page = tab.open("/questions")
    tab.follow(page.get_by_role("link", name="New question"))
    tab.check()
    page.get_by_label("Question", exact=True).fill("Where do racks stand?")
    page.keyboard.press("Tab")
    page.keyboard.type("cellar/bottles > ## Racks")
    with tab.arriving():
        page.keyboard.press("Control+Enter")
    expect(page.locator("tr:target")).to_contain_text("cellar/bottles > ## Racks")
    tab.follow(page.locator("tr:target").get_by_role("link", name="Where do racks stand?").first)
    tab.follow(page.get_by_role("button", name="Delete"))
    expect(page.get_by_text("Where do racks stand?")).to_have_count(0)
    tab.close()
