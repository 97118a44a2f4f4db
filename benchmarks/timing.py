"""Processor time of library calls, and documents made from text."""

from __future__ import annotations

import time
from collections.abc import Callable

from npl_index.library.documents import Document, Fingerprint


def best_ms(work: Callable[[], object], rounds: int = 7) -> float:
    """Return the minimum processor time of a call, in milliseconds; other load only adds to it."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1000 * min(times)


def document(text: str, path: str) -> Document:
    """Make a document of some text."""
    data = text.encode()
    name = path.rpartition("/")[2].removesuffix(".md")
    return Document(name, path, Fingerprint(f"/{path}", 0, len(data)), data, "", npl=False)
