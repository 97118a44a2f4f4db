"""A library compared with the pushed folder: pushing, the first call, warm calls, an edit, a second server.

Fair: both are asked the same questions in turn by one process, without any other cache; the second server has
a data folder of its own and shares the database only. Processor time is that of this process, without those
that index for it; a folder is indexed by as many as there are cores.

    python -m benchmarks.bench_library [files]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks import scale_corpus
from benchmarks.common import CONTEXTS, settings
from npl_mcp.app.app import App
from npl_mcp.app.libraries import Libraries
from npl_mcp.tools.npl import npl_load_tailored

ROUNDS = 10


def timed(what: str, work: Callable[[], object]) -> None:
    """Print what something takes."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    took = 1000 * (time.perf_counter() - wall)
    print(f"{what:<48} {took:>9.1f} ms  processor {1000 * (time.process_time() - processor):>9.1f} ms")


def ask(app: App, file: str, number: int) -> object:
    """Ask one of the questions."""
    context = CONTEXTS[number % len(CONTEXTS)]
    return npl_load_tailored(app, context=context, file=file, token_budget=2000)


def warm(app: App, files: tuple[str, str]) -> None:
    """Print the medians of calls about each of two sets, made in turn."""
    times: dict[str, list[tuple[float, float]]] = {file: [] for file in files}
    for number in range(ROUNDS * len(CONTEXTS)):
        for file in files:
            wall, processor = time.perf_counter(), time.process_time()
            ask(app, file, number)
            times[file].append((time.perf_counter() - wall, time.process_time() - processor))
    for file, found in times.items():
        both = [1000 * statistics.median(one) for one in zip(*found, strict=True)]
        print(f"{f'warm call, {file}':<48} {both[0]:>9.2f} ms  processor {both[1]:>9.2f} ms")


def main() -> None:
    """Print all figures."""
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as name:
        root, data, other = (Path(name) / part for part in ("docs", "data", "other"))
        for folder in (root, data, other):
            folder.mkdir()
        scale_corpus.write(root, files)
        time.sleep(2.1)  # time stamps become trustworthy
        app = App(settings(root, data_dir=data))
        libraries = Libraries(app.stores.library, app.settings.limits)
        timed("open the database", app.stores.library.list)
        timed(f"push {files:,} files", lambda: libraries.push(root, "docs"))
        timed("push nothing new", lambda: libraries.push(root, "docs"))
        timed("first call, folder", lambda: ask(app, ".", 0))
        timed("first call, lib:docs", lambda: ask(app, "lib:docs", 0))
        warm(app, (".", "lib:docs"))
        page = root / "part07" / "page-00007.md"
        page.write_text(page.read_text(encoding="utf-8") + "\nOne more line.\n", encoding="utf-8")
        timed("call after one file was edited, folder", lambda: ask(app, ".", 1))
        timed("push one changed file", lambda: libraries.push(root, "docs"))
        timed("call after one file was pushed, lib:docs", lambda: ask(app, "lib:docs", 1))
        (other / "npl.db").symlink_to(data / "npl.db")
        second = App(replace(app.settings, data_dir=other))
        timed("first call of a second server, lib:docs", lambda: ask(second, "lib:docs", 1))
        print(f"it indexed {second.state.sets.built} files")
        size = (data / "npl.db").stat().st_size + (data / "npl.db-wal").stat().st_size
        print(f"database: {size / 1e6:.1f} MB")
        second.close()
        app.close()


if __name__ == "__main__":
    main()
