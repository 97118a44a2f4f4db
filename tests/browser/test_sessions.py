"""Sessions: one timeline, filtered by kind and name, as it was at a time, and taken away as Markdown."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Tab


def test_all_that_happened_shows_in_one_line(tab: Tab) -> None:
    page = tab.open("/sessions")
    tab.follow(page.get_by_role("link", name="Open the third quay"))
    tab.check()
    happened = page.get_by_role("region", name="What happened")
    for text in ("Ready, @ben?", "quay-plan, revision 1", "The Aurora has 94.", "Measure the quay wall"):
        expect(happened.get_by_text(text).first).to_be_visible()
    tab.choose(page.get_by_label("Who"), "surveyor")
    expect(page.get_by_text("Ready, @ben?")).to_have_count(0)
    expect(happened.get_by_text("Measure the quay wall")).to_be_visible()
    assert "who=surveyor" in page.url
    tab.open("/sessions/quay-3?kind=reviews")
    expect(happened.get_by_text("The Aurora has 94.")).to_be_visible()
    expect(page.get_by_text("Measure the quay wall")).to_have_count(0)


def test_a_slider_goes_back_in_time(tab: Tab) -> None:
    """By keyboard; without the script the form is sent."""
    page = tab.open("/sessions/quay-3")
    slider = page.get_by_role("slider")
    slider.focus()
    with tab.arriving():
        page.keyboard.press("Home")
        if not tab.script:
            page.get_by_role("button", name="Show").click()
    assert "until=" in page.url
    tab.check()
    tab.open("/sessions/quay-3?until=1000")
    expect(page.get_by_text("Nothing happened here yet")).to_be_visible()


def test_a_session_is_saved(tab: Tab) -> None:
    page = tab.open("/sessions/quay-3")
    with page.expect_download() as saved:
        page.get_by_role("link", name="Export as Markdown").click()
    assert saved.value.suggested_filename == "quay-3.md"
