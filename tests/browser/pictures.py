"""Takes README's screenshots: ``python -m tests.browser.pictures FOLDER``; ``make pictures`` calls it.

The pages show the bundled corpus, and a session and change requests that calls of tools made.
"""

import io
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from npl_mcp.web.browsers import NAME_COOKIE, as_cookie
from tests import folders
from tests.browser.conftest import launched
from tests.browser.site import PROJECT, Site
from tests.npl_mcp.http.http_server import serving

CORPUS = Path(__file__).parents[2] / "corpus"

PAGES = {
    "ask": "/ask?context=write+a+fence+with+an+example&budget=1500",
    "document": "/documents/npl/fences.md",
    "room": "/rooms/1",
    "changes": "/changes",
}
"""Addresses by the name of the picture."""

SIZE = {"width": 1280, "height": 800}
COLOURS = 256
"""Colours of a picture: pages have few, and all pictures together must stay small."""


SPREAD = """
UPDATE event SET timestamp =
    strftime('%Y-%m-%dT%H:%M:%fZ', 'now', ((id - (SELECT max(id) FROM event)) * 5) || ' hours')
"""
"""A statement that spreads the events of rooms over several days."""


def main() -> None:
    target = Path(sys.argv[1])
    target.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder), "--root", str(CORPUS), "--root", str(work := Path(folder) / "work")) as server,
        sync_playwright() as driver,
        launched(driver) as browser,
    ):
        site = Site(server, work)
        folders.fill(work, PROJECT)
        (work / "crs").mkdir()
        site.fill("stores", "changes")
        with closing(sqlite3.connect(Path(folder) / "data" / "npl.db")) as database, database:
            database.execute(SPREAD)
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.context.add_cookies([{"name": NAME_COOKIE, "value": as_cookie("cleo"), "url": site.url}])
        for name, path in PAGES.items():
            answer = page.goto(site.url + path)
            assert answer is not None
            assert answer.status == 200, path
            height = min(SIZE["height"], page.evaluate("document.querySelector('main').offsetHeight") + 120)
            shown = {"x": 0, "y": 0, "width": SIZE["width"], "height": height}
            picture = Image.open(io.BytesIO(page.screenshot(clip=shown)))
            picture.convert("RGB").quantize(COLOURS).save(target / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
