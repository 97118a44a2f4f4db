"""The inspector's window for MCP Apps shows the page Ask, in Chromium, and passes its calls on."""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Error, FrameLocator, expect, sync_playwright
from processes import CheckError, free_port, serving

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUESTION = {"context": "label a fence", "token_budget": 600}
PATIENCE = 30_000
"""Milliseconds that something may take to show: other checks run at the same time."""


def show_ask(node: Path, inspector: Path, url: str, env: Mapping[str, str], folder: Path) -> str:
    """Open the page in the inspector's window, open a section in it, and ask again.

    :param inspector: its launcher.
    :param url: of the server.
    :raises CheckError: something does not show.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise CheckError("no Chromium; install Debian's package chromium")
    port, token = free_port(), secrets.token_hex(24)
    own = {
        "HOST": "127.0.0.1",
        "CLIENT_PORT": str(port),
        "MCP_SANDBOX_PORT": str(free_port()),
        "MCP_AUTO_OPEN_ENABLED": "false",
        "MCP_INSPECTOR_API_TOKEN": token,
        "MCP_INSPECTOR_SECRET_STORE": "memory",
    }
    given = base64.urlsafe_b64encode(json.dumps(QUESTION).encode()).decode().rstrip("=")
    asked = {"serverUrl": url, "transport": "http", "autoConnect": token, "openApp": "npl_ask"}
    address = f"http://127.0.0.1:{port}/?{urlencode({**asked, 'appArgs': given})}"
    flags = ["--no-sandbox"] if os.getuid() == 0 else []
    with (
        serving([node, inspector, "--web"], {**env, **own}, folder, port) as wait,
        sync_playwright() as driver,
    ):
        wait()
        opened = driver.chromium.launch(executable_path=browser, args=flags)
        try:
            page = opened.new_page()
            page.set_default_timeout(PATIENCE)
            page.goto(address)
            page.get_by_role("button", name="Open App").click()
            # The sandbox, and the page inside of it.
            return _use(page.frame_locator("iframe").frame_locator("iframe"))
        except (AssertionError, Error) as error:
            raise CheckError(" ".join(str(error).split())[:300]) from None
        finally:
            opened.close()


def _use(app: FrameLocator) -> str:
    said = app.locator(".sum")
    expect(said).to_contain_text("of 600 tokens", timeout=PATIENCE)
    app.locator(".card h3 a, .card a").first.click()
    expect(app.locator(".opened")).to_be_visible(timeout=PATIENCE)
    app.get_by_role("slider").press("ArrowLeft")
    expect(said).to_contain_text("of 550 tokens", timeout=PATIENCE)
    return "an answer, a section opened, a call passed on"
