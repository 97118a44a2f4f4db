"""The log of calls: figures, plots, and what a call took and offered."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Tab


def test_figures_and_calls(tab: Tab) -> None:
    page = tab.open("/calls")
    expect(page.get_by_text("Suggestions followed").first).to_be_visible()
    expect(page.get_by_role("img", name="Tokens saved")).to_be_visible()
    page.get_by_text("siphons.md: ").first.click()
    expect(page.get_by_text("siphons > ## Part").first).to_be_visible()
    page.get_by_text("The same as a table").click()
    tab.check()


def test_calls_of_one_tool(tab: Tab) -> None:
    page = tab.open("/calls?tool=create_cr&span=hour")
    expect(page.get_by_role("cell", name="create_cr").first).to_be_visible()
    expect(page.get_by_role("cell", name="npl_load_tailored")).to_have_count(0)
