"""The page Ask: an answer is seen first, and is tuned, opened and saved in place."""

import json
import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import Tab
from tests.browser.site import Site

QUESTION = f"/ask?context={quote('turn the barrels')}&file=cellar&budget=300"


def card(page: Page, title: str) -> Locator:
    return page.locator(".card").filter(has=page.get_by_role("heading", name=title))


def budget(page: Page) -> Locator:
    return page.get_by_role("spinbutton", name="Budget")


SIZES = [(1440, 900), (390, 844)]


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_the_answer_is_on_the_first_screen(
    browser: Browser, site: Site, width: int, height: int, colours: str
) -> None:
    """The best section shows its place, its words and the beginning of its text above the fixed bar."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=colours)  # type: ignore[arg-type]
    tab = Tab(context, site, True)
    page = tab.open(QUESTION)
    assert page.evaluate("scrollY") == 0
    bar = page.locator(".saving").bounding_box()
    text = card(page, "Turning barrels").locator("pre").bounding_box()
    assert bar is not None
    assert text is not None
    assert text["y"] + 40 < bar["y"] < height
    assert card(page, "Turning barrels").locator("pre mark").all_inner_texts()[:2] == ["Turning", "barrels"]
    tab.close()


def test_a_question_is_asked(tab: Tab) -> None:
    """Cards stand best first, each with its words; below them is the answer as it is sent."""
    page = tab.open("/ask")
    page.get_by_label("Question or task").fill("turn the barrels of gold")
    page.get_by_label("Files").fill("cellar")
    tab.follow(page.get_by_role("button", name="Ask", exact=True))
    expect(page.locator(".sum").first).to_contain_text("of 700 tokens")
    tab.check()
    first = page.locator(".card").first
    expect(first).to_contain_text("Turning barrels")
    expect(first).to_contain_text(re.compile("shortened to [0-9]+ · .* tokens · score [0-9.]+ · has turn"))
    expect(first).to_contain_text("has turn, barrels")
    expect(first).to_contain_text("lacks gold")
    expect(page.get_by_text("No section has: gold.")).to_be_visible()
    page.get_by_text(re.compile("^Use this request")).click()
    expect(page.locator(".copies pre").first).to_contain_text("<!-- cellar/barrels.md")
    tab.check()


def test_the_budget_is_moved_in_place(scripted: Tab) -> None:
    """Moving the budget by keys keeps focus, ticks, opened cards, scroll position and history."""
    scripted.open("/ask")
    page = scripted.open(QUESTION)
    page.get_by_label("Right: Filling").check()
    card(page, "Turning barrels").get_by_role("link", name="Turning barrels").click()
    expect(page.get_by_role("region", name="Turning barrels")).to_be_visible()
    expect(page.locator("#open-1")).to_be_focused()
    entries = page.evaluate("history.length")
    slider = page.get_by_role("slider", name="Budget")
    slider.focus()
    page.evaluate("scrollTo(0, 60)")
    for value in (350, 400, 450):
        slider.press("ArrowRight")
        expect(page.locator(".sum")).to_contain_text(f"of {value} tokens")
        expect(slider).to_be_focused()
    expect(budget(page)).to_have_value("450")
    expect(page.get_by_label("Right: Filling").first).to_be_checked()
    expect(page.get_by_role("region", name="Turning barrels")).to_be_visible()
    assert page.evaluate("[scrollY, history.length]") == [60, entries]
    scripted.check()
    page.reload()
    expect(page.get_by_label("Right: Filling").first).to_be_checked()
    page.go_back()
    expect(page.get_by_label("Question or task")).to_be_empty()


def test_blocks_lead_to_their_cards(tab: Tab) -> None:
    """Blocks of sent sections are filled, those of omitted ones hollow; each links to its card."""
    page = tab.open(f"{QUESTION}&section={quote('cellar/barrels.md > ## Filling')}")
    taken, left = page.locator(".ruler rect.taken").first, page.locator(".ruler a rect:not(.taken)").first
    fill = "one => getComputedStyle(one).fill"
    if tab.script:
        assert left.evaluate(fill) == "rgb(255, 255, 255)" != taken.evaluate(fill)
    page.get_by_role("link", name=re.compile("^Filling: ")).first.click()
    expect(card(page, "Filling")).to_be_in_viewport()
    assert "#card-" in page.url


def test_any_budget_is_typed(tab: Tab) -> None:
    """A budget may lie between two steps of the slider; 0 means no limit."""
    page = tab.open(QUESTION)
    budget(page).fill("1337")
    budget(page).press("Enter")
    expect(page.locator(".sum")).to_contain_text("of 1,337 tokens")
    budget(page).fill("0")
    budget(page).press("Enter")
    expect(page.locator(".sum")).not_to_contain_text(" of ")


def test_another_question_forgets_what_was_done_below_the_former(tab: Tab) -> None:
    page = tab.open(
        f"{QUESTION}&right={quote('cellar/barrels.md > ## Filling')}&section={quote('## Filling')}"
    )
    page.get_by_label("Question or task").fill("soak corks")
    if tab.script:
        with tab.arriving():
            page.get_by_label("Question or task").press("Control+Enter")
    else:
        tab.follow(page.get_by_role("button", name="Ask", exact=True))
    expect(page.locator(".card").first).to_contain_text("Corks")
    assert "right=" not in page.url
    assert "section=" not in page.url


def test_a_section_is_opened(tab: Tab) -> None:
    """An opened card shows the rank, the text and what of it was sent; markup in it stays text."""
    page = tab.open(QUESTION)
    title = card(page, "Turning barrels").get_by_role("link", name="Turning barrels")
    before = title.bounding_box()
    title.click()
    opened = card(page, "Turning barrels").get_by_role("region", name="Turning barrels")
    expect(opened).to_contain_text("Rank 1, score")
    if tab.script:
        assert title.bounding_box() == before
    tab.check()
    expect(opened.locator("pre").first).to_contain_text("In week 39")
    taken = opened.locator("pre").nth(1).inner_text()
    assert 0 < len(taken) < len(opened.locator("pre").first.inner_text())
    page = tab.open(f"/ask?context=corks&file=cellar&section={quote('## Bung & barrel')}")
    opened = page.get_by_role("region", name="Bung & barrel")
    expect(opened.locator("pre").first).to_contain_text("<script>alert(1)</script>")
    opened.get_by_role("link", name="Close").click()
    expect(opened).to_have_count(0)


def test_a_question_is_saved(tab: Tab) -> None:
    """Sections are ticked and saved with one click; the result is shown at once, and Ask shows its ticks."""
    page = tab.open(QUESTION)
    page.get_by_label("Right: Turning barrels").check()
    tab.follow(page.get_by_role("button", name="Save as test"))
    expect(page.get_by_role("heading", level=1)).to_have_text("turn the barrels")
    expect(page.get_by_role("status")).to_contain_text("pass")
    tab.check()
    tab.follow(page.get_by_role("link", name="Open in Ask"))
    expect(page.get_by_label("Question or task")).to_have_value("turn the barrels")
    expect(page.get_by_label("Right: Turning barrels")).to_be_checked()


def test_ticks_are_kept(scripted: Tab) -> None:
    """Ticks survive an opened section and a reload, until the question is saved."""
    page = scripted.open(f"/ask?context={quote('fill the barrels')}&file=cellar")
    page.get_by_label("Right: Turning barrels").check()
    page.get_by_label("Right: Filling").check()
    page.get_by_label("Right: Turning barrels").uncheck()
    card(page, "Filling").get_by_role("link", name="Filling").click()
    expect(page.get_by_role("region", name="Filling")).to_be_visible()
    expect(page.get_by_label("Right: Filling").first).to_be_checked()
    expect(page.get_by_label("Right: Turning barrels")).not_to_be_checked()
    page.reload()
    scripted.follow(page.get_by_role("button", name="Save as test"))
    scripted.follow(page.get_by_role("link", name="Open in Ask"))
    expect(page.get_by_label("Right: Filling").first).to_be_checked()


def test_back_shows_what_was_asked(tab: Tab) -> None:
    page = tab.open(QUESTION)
    page.get_by_label("Question or task").fill("soak corks")
    tab.follow(page.get_by_role("button", name="Ask", exact=True))
    expect(page.get_by_label("Question or task")).to_have_value("soak corks")
    page.go_back()
    expect(page.get_by_label("Question or task")).to_have_value("turn the barrels")
    expect(page.locator(".card").first).to_contain_text("Turning barrels")


def test_errors_stand_at_their_field(tab: Tab) -> None:
    page = tab.open("/ask?context=corks&file=celar", 404)
    expect(page.get_by_role("alert")).to_contain_text("there is no document 'celar'")
    expect(page.get_by_label("Files")).to_have_attribute("aria-describedby", "problem")
    expect(page.get_by_label("Question or task")).to_have_value("corks")
    page = tab.open("/ask?context=corks&budget=many", 400)
    expect(budget(page)).to_have_attribute("aria-invalid", "true")
    page = tab.open("/ask?context=corks&file=cellar/botles.md", 404)
    tab.follow(page.get_by_role("alert").get_by_role("button", name="cellar/bottles.md"))
    expect(page.locator(".card").first).to_contain_text("Corks")


def test_a_request_is_copied(scripted: Tab) -> None:
    scripted.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = scripted.open(QUESTION)
    page.get_by_text(re.compile("^Use this request")).click()
    page.get_by_role("button", name="Copy tool call").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    arguments = {"context": "turn the barrels", "file": "cellar", "token_budget": 300, "format": "markdown"}
    assert json.loads(copied) == {"name": "npl_load_tailored", "arguments": arguments}
