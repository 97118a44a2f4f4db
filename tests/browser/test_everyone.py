"""Axe finds nothing on any page, light and dark, wide and narrow, and no page is wider than the window."""

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from starlette.routing import compile_path

from tests.browser.conftest import Tab
from tests.browser.site import Site
from tests.conftest import cases
from tests.npl_mcp.web.examples import SHOWN

ADDRESSES = cases("browser/addresses")
"""Addresses of all pages; each page shows something."""

QUESTIONS = "## Which barrel is turned?\n\n- cellar/barrels > ## Filling\n"

VIEWS = [(width, scheme) for width in (1440, 390) for scheme in ("light", "dark")]


@pytest.fixture(scope="module", autouse=True)
def _question(site: Site) -> Iterator[None]:
    file = site.docs / "questions.md"
    file.write_text(QUESTIONS, encoding="utf-8")
    yield
    file.unlink()


@pytest.mark.parametrize("path", ADDRESSES)
def test_nothing_keeps_people_out(scripted: Tab, path: str) -> None:
    page = scripted.page
    page.goto(scripted.site.url + path)
    scripted.forget_status()
    for width, scheme in VIEWS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        report = Axe().run(page)
        assert report.violations_count == 0, f"{width} {scheme}: {report.generate_report()}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_table_has_every_page() -> None:
    paths = [address.partition("?")[0] for address in ADDRESSES]
    missing = [
        page.path for page in SHOWN if not any(compile_path(page.path)[0].match(path) for path in paths)
    ]
    assert missing == []
