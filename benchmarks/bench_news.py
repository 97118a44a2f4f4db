"""News from one server to another through PostgreSQL: a message to a waiting reader, a library, its edits.

Fair: three servers and PostgreSQL, which syncs every write, on this machine; a reader waits at one server
over HTTP, and a wake is measured from the writer's answer to the reader's answer. The library is
asked the same questions in turn as the folder that was pushed, which one more server reads from the disk. An
edit is measured from the end of the push, made by this process, until a server's answer shows it; where
several pages were edited, the server has seen none of them, and is asked about the last.

    python -m benchmarks.bench_news [files] [rounds] [folder]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import count, islice
from pathlib import Path
from statistics import median

from npl_mcp.app.libraries import Libraries

from benchmarks import scale_corpus
from benchmarks.common import CONTEXTS, percentile, settings
from benchmarks.team import Caller, callers, replicas
from npl_mcp.app.app import App
from tests.postgres_server import serving

REPLICAS = 3
BUDGET = 2000
PENDING = (1, 3, 10, 50, 200)
"""Pages that are edited in one push."""

FEWEST = 5


def shown(what: str, times: Sequence[float], more: str = "") -> None:
    """Print the median and the 95th percentile."""
    print(f"{what:52} p50 {median(times):7.1f} ms   p95 {percentile(times, 0.95):7.1f} ms{more}", flush=True)


def sends(lines: Sequence[Caller], reader: Caller, rounds: int) -> None:
    """Print the cost of a message to its sender, and the delay until the waiting reader has it.

    :param lines: to each server.
    :param reader: one more to the first.
    """
    lines[0].call("chat_create_room", name="r", members=["a", "b"])
    message = {"room_id": 1, "persona": "a", "message": "m"}
    for line in lines:
        line.call("chat_send_message", **message)
    nothing = [lines[0].timed("noop") for _ in range(rounds)]
    shown("a call that does nothing", nothing)
    shown(
        "chat_send_message, one caller",
        [lines[0].timed("chat_send_message", **message) for _ in range(rounds)],
    )
    for name, writer in (("the same server", lines[0]), ("another server", lines[1])):
        cursor = reader.call("chat_get_feed", room_id=1, limit=1)["cursor"]
        times = []
        for number in range(rounds):
            reader.send("chat_get_feed", room_id=1, since=cursor, wait=60)
            time.sleep(0.05 + number % 10 / 1000)  # not in step with the looks
            writer.call("chat_send_message", **message)
            written = time.perf_counter()
            cursor = reader.receive()["cursor"]
            times.append(1000 * (time.perf_counter() - written))
        shown(f"a reader wakes, {name}", times)


def ask(line: Caller, file: str, context: str) -> str:
    """Return the content of an answer."""
    found = line.call("npl_load_tailored", context=context, file=file, token_budget=BUDGET)
    return str(found)


def library(lines: Sequence[Caller], local: Caller, docs: Path, rounds: int) -> None:
    """Print warm calls about a library on each server, compared with the same calls about files."""
    places = [(local, str(docs)), *((line, "lib:docs") for line in lines)]
    for line, file in places:  # the first call waits until all is indexed
        for context in CONTEXTS:
            ask(line, file, context)
    times: list[list[float]] = [[] for _ in places]
    for number in range(rounds):
        for (line, file), found in zip(places, times, strict=True):
            began = time.perf_counter()
            ask(line, file, CONTEXTS[number % len(CONTEXTS)])
            found.append(1000 * (time.perf_counter() - began))
    shown("warm call, local files", times[0])
    for number, found in enumerate(times[1:], 1):
        shown(
            f"warm call, library, server {number}", found, f"   {median(found) / median(times[0]):.2f} times"
        )


def edits(lines: Sequence[Caller], libraries: Libraries, docs: Path, rounds: int) -> None:
    """Print the delay until the servers rank an edit that was pushed through another server."""
    pages = sorted(docs.rglob("*.md"))
    numbers = count()
    for pending in PENDING:
        times: list[float] = []
        again = 0
        for turn in range(max(FEWEST, rounds * 3 // max(3, pending))):
            for number in islice(numbers, pending):
                page, word = pages[number * 37 % len(pages)], f"zyxword{number}"
                text = page.read_text(encoding="utf-8")
                # Before all else: some pages end within a fence.
                page.write_text(f"# About {word}\n\nThe {word} was added.\n\n{text}", encoding="utf-8")
            libraries.push(docs, "docs")
            began = time.perf_counter()
            while f"The {word} was added" not in ask(lines[turn % len(lines)], "lib:docs", word):
                again += 1
            times.append(1000 * (time.perf_counter() - began))
            for line in lines:  # whoever is in use has seen all earlier ones
                ask(line, "lib:docs", word)
        shown(f"an edit is ranked, {pending} pushed elsewhere", times, f"   {again} answers without it")


def main(files: int = 5_000, rounds: int = 60, folder: str | None = None) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name, serving() as server:
        place = Path(name)
        docs = place / "docs"
        docs.mkdir()
        if folder is None:
            scale_corpus.write(docs, files)
        else:
            for number, page in enumerate(sorted(Path(folder).rglob("*.md"))[:files]):
                (docs / f"{number}-{page.name}").write_bytes(page.read_bytes())
        own = App(settings(docs, data_dir=place / "own", database_url=server.address()))
        libraries = Libraries(own.stores.library, own.settings.limits)
        own.stores.database.open()
        (place / "local").mkdir()
        with (
            replicas(place, REPLICAS, NPL_DATABASE_URL=server.address()) as servers,
            replicas(place / "local", 1, "--root", str(docs)) as (beside,),
            callers(*(server.port for server in (beside, servers[0], *servers))) as (local, reader, *lines),
        ):
            sends(lines, reader, rounds)
            began = time.perf_counter()
            libraries.push(docs, "docs")
            print(f"pushed {files:,} files in {time.perf_counter() - began:.1f} s", flush=True)
            library(lines, local, docs, rounds)
            edits(lines, libraries, docs, rounds)
        own.close()


if __name__ == "__main__":
    given = sys.argv[1:]
    main(*map(int, given[:2]), *given[2:3])
