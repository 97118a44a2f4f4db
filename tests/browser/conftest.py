"""The pages in the system's Chromium, wide and narrow, with the script and without."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Playwright,
    Request,
    expect,
    sync_playwright,
)

from tests.browser.site import Site, running
from tests.until import PATIENCE

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

expect.set_options(timeout=1000 * PATIENCE)

VIEWS = [
    pytest.param((width, script), id=f"{width}-{'script' if script else 'plain'}")
    for width in (1280, 360)
    for script in (True, False)
]
"""Width of the window in pixels, and whether the script runs."""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with something on every page."""
    with running(tmp_path_factory.mktemp("site")) as made:
        yield made


@contextmanager
def launched(driver: Playwright) -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert path is not None, "no Chromium; install Debian's package chromium"
    flags = ["--no-sandbox"] if os.getuid() == 0 else []
    opened = driver.chromium.launch(executable_path=path, args=flags)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a process."""
    with sync_playwright() as driver, launched(driver) as opened:
        yield opened


class Tab:
    """A window of a browser.

    :param context: of the browser; has the cookies.
    :param site: the server.
    """

    def __init__(self, context: BrowserContext, site: Site, script: bool) -> None:
        self.context, self.site, self.script = context, site, script
        context.set_default_timeout(1000 * PATIENCE)
        self.page: Page = context.new_page()
        self._said: list[str] = []
        self._asked: list[str] = []
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self._said.append(str(error)))
        self.page.on("request", self._note_request)

    def _note(self, message: ConsoleMessage) -> None:
        self._said.append(f"{message.type}: {message.text}")

    def _note_request(self, request: Request) -> None:
        if urlsplit(request.url).scheme not in ("data", "blob", "about"):
            self._asked.append(request.url)

    def open(self, path: str, status: int = 200) -> Page:
        """Open a page, and check that everybody can use it."""
        answer = self.page.goto(self.site.url + path)
        assert answer is not None
        assert answer.status == status
        if status >= 400:
            self.forget_status()
        self.check()
        return self.page

    def follow(self, link: Locator) -> None:
        """Click a link or button and wait for its page, since a click alone may return earlier."""
        with self.arriving():
            link.click()

    @contextmanager
    def arriving(self) -> Iterator[None]:
        """Wait until the page is there that the block leads to."""
        with self.page.expect_navigation():
            yield

    def choose(self, field: Locator, value: str, button: str = "Show") -> None:
        """Choose from a list, which sends its form; without the script its button does."""
        with self.arriving():
            field.select_option(value)
            if not self.script:
                self.page.get_by_role("button", name=button).click()

    def forget_status(self) -> None:
        """Drop the console's expected message about a refusal."""
        self._said = [said for said in self._said if "the server responded with a status" not in said]

    def check_refused(self) -> None:
        """Check the page that a refused form answers with."""
        self.forget_status()
        self.check()

    def check(self) -> None:
        """Check that the page is accessible as it is and no wider than the window."""
        violations = Axe().run(self.page) if self.script else None
        assert violations is None or violations.violations_count == 0, violations.generate_report()
        width = self.page.evaluate("document.documentElement.scrollWidth") if self.script else 0
        assert width <= self.page.viewport_size["width"]  # type: ignore[index]

    def close(self) -> None:
        """Check that the console is empty and no other host was asked for anything."""
        self.context.close()
        assert self._said == []
        assert [url for url in self._asked if not url.startswith(self.site.url + "/")] == []


@pytest.fixture(params=VIEWS)
def tab(request: pytest.FixtureRequest, browser: Browser, site: Site) -> Iterator[Tab]:
    """A window of each width, with the script and without."""
    width, script = request.param
    context = browser.new_context(
        viewport={"width": width, "height": 800}, java_script_enabled=script, color_scheme="light"
    )
    opened = Tab(context, site, script)
    yield opened
    opened.close()


@pytest.fixture
def scripted(browser: Browser, site: Site) -> Iterator[Tab]:
    """A wide window with the script, for tests of the script."""
    opened = Tab(browser.new_context(viewport={"width": 1280, "height": 800}), site, True)
    yield opened
    opened.close()
