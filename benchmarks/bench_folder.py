"""A query across 1,000 unchanged files, compared with the floor: listing the files and reading their state.

Fair: every call reads the state of each file again; no call reuses an earlier answer.

    python benchmarks/bench_folder.py [files]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from common import CONTEXTS, median_ms, settings, write_folder

from npl_mcp.app.app import App
from tests.tools import npl_load_tailored


def look(folder: Path) -> int:
    """List a folder and read the state of each file."""
    with os.scandir(folder) as entries:
        return sum(os.stat(entry.path).st_mtime_ns > 0 for entry in entries)


def main() -> None:
    """Print the first call, a warm one, and one after an edit."""
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_folder(folder, files)
        time.sleep(2.1)  # time stamps become trustworthy
        app = App(settings(folder))
        ask = lambda number: npl_load_tailored(  # noqa: E731
            app, context=CONTEXTS[number % len(CONTEXTS)], file=".", token_budget=2000
        )
        start = time.perf_counter()
        ask(0)
        print(f"{files} files, first call: {time.perf_counter() - start:.2f} s")
        floor = median_ms(lambda _: look(folder), 20)
        warm = median_ms(ask, 60)
        print(
            f"warm query: p50 {warm:.2f} ms of 200 allowed; "
            f"list and stat alone: {floor:.2f} ms; ratio {warm / floor:.2f}"
        )
        target = folder / "page-0007.md"
        target.write_text(target.read_text(encoding="utf-8") + "\nOne more line.\n", encoding="utf-8")
        start = time.perf_counter()
        ask(1)
        print(f"call after one file was edited: {1000 * (time.perf_counter() - start):.0f} ms")


if __name__ == "__main__":
    main()
