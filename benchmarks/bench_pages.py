"""Pages for people: how long a server takes to answer with a board of many change requests.

Over one kept connection, after the first answer, which reads the files and is told apart.

    python benchmarks/bench_pages.py [change requests] [times]
"""

from __future__ import annotations

import http.client
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from npl_mcp.config.server_state import ServerState, read_state

CONFIG = '[project]\nname = "Bench"\ncode = "BEN"\nid = "bench"\nticketsPath = "crs"\n'
STATES = ("Proposed", "Approved", "In Progress", "Implemented", "Rejected")
FRONT = "---\ncode: BEN-{0:03d}\nstatus: {1}\ntype: Bug Fix\npriority: High\nassignee: a{2}\n---\n"
TEXT = FRONT + "\n# Title {0}\n\n## Why\n\nSo.\n"


def fill(folder: Path, count: int) -> None:
    """Make a project with change requests."""
    (folder / "crs").mkdir(parents=True)
    (folder / ".mdt-config.toml").write_text(CONFIG, encoding="utf-8")
    for number in range(1, count + 1):
        text = TEXT.format(number, STATES[number % len(STATES)], number % 20)
        (folder / "crs" / f"BEN-{number:03d}-x.md").write_text(text, encoding="utf-8")


def started(folder: Path) -> tuple[subprocess.Popen[bytes], ServerState]:
    """Start a server that has the pages."""
    flags = ["--root", str(folder / "docs"), "--data-dir", str(folder / "data"), "--port", "0", "--no-token"]
    process = subprocess.Popen(
        [sys.executable, "-m", "npl_mcp.cli.commands.serving", *flags], stdout=subprocess.DEVNULL, cwd=folder
    )
    while (state := read_state(folder / "data")) is None:
        time.sleep(0.05)
    return process, state


def main(count: int = 1_000, times: int = 20) -> None:
    """Measure, and print one line a page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder / "docs", count)
        process, state = started(folder)
        try:
            line = http.client.HTTPConnection(urlsplit(state.url or "").netloc)
            for path in ("/changes", "/changes?view=table", "/changes.json", "/changes/BEN-001"):
                taken = [ask(line, path) for _ in range(times + 1)]
                first, rest = taken[0][0], [seconds for seconds, _ in taken[1:]]
                print(
                    f"{path}: first {first * 1000:.0f} ms, then median {statistics.median(rest) * 1000:.0f}, "
                    f"most {max(rest) * 1000:.0f} ms, {taken[0][1] / 1000:.0f} kB, {count:,} change requests"
                )
        finally:
            process.kill()
            process.wait()


def ask(line: http.client.HTTPConnection, path: str) -> tuple[float, int]:
    """Return how long a page takes, and its bytes."""
    begin = time.perf_counter()
    line.request("GET", path)
    answer = line.getresponse()
    body = answer.read()
    assert answer.status == 200, body
    return time.perf_counter() - begin, len(body)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
