"""What the page Ask adds to the call of the tool: its first paint in Chromium over a folder of 1,000 files.

Usage: ``python -m benchmarks.bench_ask [FILES]``

A server and a browser run on this machine. Each task is asked of the tool as agents call it, and of the page;
the browser says when the first text was painted, counted from the beginning of the navigation.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

from benchmarks.common import CONTEXTS
from benchmarks.scale_corpus import write
from tests.npl_mcp.http.http_server import Running, call, serving

FILES = 1_000
BUDGET = 2_000
ROUNDS = 3
PAINTED = """new Promise((done) => {
  const look = () => {
    const [found] = performance.getEntriesByName("first-contentful-paint");
    if (found) done(found.startTime); else setTimeout(look, 2);
  };
  look();
})"""


def painted(page: Page, url: str, context: str) -> float:
    """Return the milliseconds until the answer to a question is painted."""
    page.goto(f"{url}/ask?{urlencode({'context': context, 'budget': BUDGET})}")
    milliseconds: float = page.evaluate(PAINTED)
    return milliseconds


def called(server: Running, context: str) -> float:
    """Return the milliseconds of a tool call."""
    started = time.perf_counter()
    answer = call(server, "npl_load_tailored", {"context": context, "token_budget": BUDGET})
    assert answer.status == 200, answer.body
    return 1000 * (time.perf_counter() - started)


def main() -> None:
    """Measure and print one line."""
    files = int(sys.argv[1]) if len(sys.argv) > 1 else FILES
    flags = ["--no-sandbox"] if os.getuid() == 0 else []
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        docs = Path(name) / "docs"
        docs.mkdir()
        write(docs, files)
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        page = browser.new_page()
        with serving(Path(name), "--root", str(docs)) as server:
            url = server.state.url or ""
            for context in CONTEXTS:  # indexes, and warms up the browser
                painted(page, url, context)
            calls, paints = [], []
            for context in CONTEXTS * ROUNDS:
                calls.append(called(server, context))
                paints.append(painted(page, url, context))
        browser.close()
    added = [paint - spent for paint, spent in zip(paints, calls, strict=True)]
    print(
        f"{files:,} files: tool call {median(calls):.0f} ms, first paint {median(paints):.0f} ms; "
        f"the page adds {median(added):.0f} ms, at most {max(added):.0f} ms"
    )


if __name__ == "__main__":
    main()
