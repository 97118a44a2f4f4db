"""Ask: what an answer takes and leaves is seen, opened, compared, copied and saved."""

from __future__ import annotations

import re
import secrets
import shutil
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Page, expect

from tests.browser.conftest import Tab

QUESTION = f"/ask?context={quote('turn the barrels')}&file=cellar&budget=300"


def rows(page: Page) -> dict[str, list[str]]:
    """Return the marks of the sections that are shown, by title."""
    found = {}
    for row in page.locator(".tree .node").all():
        marks = row.locator("svg[role=img]")
        found[row.locator("a").inner_text()] = [str(one.get_attribute("aria-label")) for one in marks.all()]
    return found


def test_a_question_is_asked(tab: Tab) -> None:
    """Files with a match are open, every section has its mark, and the answer stands beside them."""
    page = tab.open("/ask")
    page.get_by_label("Context").fill("turn the barrels")
    page.get_by_label("Files").fill("cellar")
    tab.follow(page.get_by_role("button", name="Ask", exact=True))
    expect(page.locator(".sum").first).to_contain_text("of 450 tokens")
    tab.check()
    marks = rows(page)
    assert marks["Turning barrels"] == ["cut"]
    assert "Corks" not in marks
    assert page.locator(".answer").inner_text().startswith('{"success":true')
    tab.follow(page.get_by_role("link", name="cellar/bottles.md"))
    assert rows(page)["Corks"] == []
    tab.follow(page.get_by_role("link", name=re.compile("^markdown")))
    expect(page.locator(".answer")).to_contain_text("<!-- cellar/barrels.md")
    assert "Corks" in rows(page)
    tab.follow(page.get_by_role("link", name="Only files with a match"))
    expect(page.get_by_role("link", name="Show all files")).to_be_visible()
    assert "Corks" not in rows(page)


def test_a_section_is_opened(tab: Tab) -> None:
    """Its score by parts, its text, and what of it was taken; what it says stays text."""
    page = tab.open(QUESTION)
    assert rows(page)["Turning barrels"] == ["cut"]
    tab.follow(page.locator(".tree").get_by_role("link", name="Turning barrels"))
    tab.check()
    opened = page.get_by_role("region", name="Turning barrels")
    expect(opened.get_by_role("row", name=re.compile("^name"))).to_be_visible()
    expect(opened.locator("pre").first).to_contain_text("In week 39")
    taken = opened.locator("pre").nth(1).inner_text()
    assert 0 < len(taken) < len(opened.locator("pre").first.inner_text())
    page = tab.open(f"{QUESTION}&section={quote('## Bung & barrel')}")
    opened = page.get_by_role("region", name="Bung & barrel")
    expect(opened.locator("pre").first).to_contain_text("<script>alert(1)</script>")
    tab.follow(opened.get_by_role("link", name="Close"))
    expect(opened).to_have_count(0)


def test_two_requests_side_by_side(tab: Tab) -> None:
    """What another budget changes is listed, with the marks of both."""
    page = tab.open(QUESTION)
    tab.follow(page.get_by_role("button", name="Compare with another request"))
    expect(page.locator(".sum").first).to_contain_text("0 sections became something else")
    second = page.get_by_role("group", name="Second request")
    second.get_by_label("no limit").check()
    tab.follow(page.get_by_role("button", name="Compare"))
    tab.check()
    row = page.get_by_role("row", name="Turning barrels")
    expect(row).to_contain_text("cut")
    expect(row).to_contain_text("taken")
    expect(page.get_by_role("heading", name="Second answer")).to_be_visible()
    tab.follow(page.get_by_role("link", name="Only the first"))
    expect(page.get_by_role("heading", name="What the agent gets")).to_be_visible()


def test_a_question_is_saved(tab: Tab) -> None:
    page = tab.open(QUESTION)
    page.get_by_label("Right: Turning barrels").check()
    page.get_by_label("More of them").fill("cellar/rules > ## Bung & barrel")
    page.get_by_label("List").fill("cellar")
    tab.follow(page.get_by_role("button", name="Save question"))
    expect(page.get_by_role("status")).to_contain_text("2 right sections")
    tab.check()
    command = page.locator("pre").inner_text()
    assert Path(command.split()[-1]).is_file()
    tab.follow(page.get_by_role("link", name="Back to the question"))
    expect(page.get_by_label("Context")).to_have_value("turn the barrels")


def test_ticks_are_kept(tab: Tab) -> None:
    """From page to page of a long list and beside an opened section, until the question is saved."""
    folder = tab.site.docs / f"ledger-{secrets.token_hex(4)}"
    folder.mkdir()
    try:
        lines = "".join(f"## Entry {number}\n\nA barrel was sold.\n\n" for number in range(1, 260))
        (folder / "ledger.md").write_text(f"# Ledger\n\n{lines}", encoding="utf-8")
        page = tab.open(f"/ask?context=barrel&file={folder.name}")
        page.get_by_label("Right: Entry 3", exact=True).check()
        page.get_by_label("Right: Entry 5", exact=True).check()
        page.get_by_label("Right: Entry 5", exact=True).uncheck()
        keep(tab)
        tab.follow(page.locator(".tree").get_by_role("link", name="Entry 4", exact=True))
        expect(page.get_by_role("region", name="Entry 4")).to_be_visible()
        expect(page.get_by_label("Right: Entry 3", exact=True)).to_be_checked()
        expect(page.get_by_label("Right: Entry 5", exact=True)).not_to_be_checked()
        tab.follow(page.get_by_role("link", name="Next"))
        expect(page.get_by_role("group", name="Ticked elsewhere").get_by_role("checkbox")).to_be_checked()
        tab.check()
        page.get_by_label("Right: Entry 250", exact=True).check()
        keep(tab)
        page.reload()
        expect(page.get_by_label("Right: Entry 250", exact=True)).to_be_checked()
        page.get_by_role("textbox", name="List").fill("ledger")
        tab.follow(page.get_by_role("button", name="Save question"))
        expect(page.get_by_role("status")).to_contain_text("2 right sections")
    finally:
        shutil.rmtree(folder)


def keep(tab: Tab) -> None:
    """Keep what is ticked, which the script does by itself."""
    button = tab.page.get_by_role("button", name="Keep the ticks")
    if tab.script:
        expect(button).to_have_count(0)
    else:
        tab.follow(button)


def test_nothing_found_is_said(tab: Tab) -> None:
    page = tab.open("/ask?context=a&file=nowhere.md", 404)
    expect(page.get_by_role("alert")).to_contain_text("nowhere.md")


def test_the_slider_asks_again(scripted: Tab) -> None:
    """Moving it sends the form; the address says the budget, and the same is copied."""
    scripted.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = scripted.open(QUESTION)
    with scripted.arriving():
        page.get_by_role("slider").press("ArrowRight")
    assert "budget=350" in page.url
    page.get_by_text("command line", exact=True).click()
    page.get_by_role("button", name="Copy command line").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "npl-load tailored --file cellar --budget 350 --format json -- 'turn the barrels'"


def test_arrows_walk_the_tree(scripted: Tab) -> None:
    page = scripted.open(QUESTION)
    page.locator(".tree summary").first.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".tree .node a").first).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".tree .node a").first).to_be_hidden()
