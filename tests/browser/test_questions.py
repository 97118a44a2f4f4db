"""Questions: outcomes come into view."""

import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Tab
from tests.browser.site import Site


@pytest.fixture
def listed(site: Site) -> Iterator[Path]:
    """A file with a question that is answered, one whose section is missed, and one without an answer."""
    file = site.docs / f"{secrets.token_hex(4)}.questions.md"
    file.write_text(
        "## When are corks soaked?\n\n- bottles > ## Racks\n\n"
        "## When are barrels turned?\n\n- barrels > ## Turning barrels\n\n"
        "## Who feeds the quokka?\n\n- nowhere\n",
        encoding="utf-8",
    )
    yield file
    file.unlink()


def test_outcomes_come_with_their_sum_above_them(tab: Tab, listed: Path) -> None:
    """Results stand below their sum; misses come first with the sections above."""
    page = tab.open("/questions")
    tab.follow(page.get_by_role("link", name="Run all"))
    expect(page.get_by_role("status")).to_have_text(re.compile(r"\d+ of \d+ pass\."))
    row = page.get_by_role("row", name="When are corks soaked?")
    expect(row).to_contain_text("ranked above: cellar/bottles.md > ## Corks")
    expect(row.get_by_text("fail", exact=True)).to_be_visible()
    total, table = page.get_by_role("status").bounding_box(), page.locator("table").bounding_box()
    assert total is not None
    assert table is not None
    assert total["y"] < table["y"]
    tab.check()
    page = tab.open(f"/questions?filter={listed.name}")
    tab.check()
    tab.follow(page.get_by_role("link", name="When are barrels turned?"))
    expect(page.get_by_role("status")).to_contain_text("pass")
    tab.check()
