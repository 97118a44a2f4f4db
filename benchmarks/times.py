"""Times of calls, and the table in which every benchmark prints them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def spread(values: Sequence[float]) -> str:
    """Write median, 95th and 99th percentile."""
    return " / ".join(f"{percentile(values, share):.2f}" for share in (0.5, 0.95, 0.99))


def call_ms(work: Callable[[], object]) -> float:
    """Return the milliseconds that a call takes."""
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def best_ms(work: Callable[[], object], rounds: int = 7) -> float:
    """Return the minimum processor time of a call, in milliseconds; other load only adds to it."""
    costs = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        costs.append(time.process_time() - start)
    return 1000 * min(costs)


def until(condition: Callable[[], bool]) -> float:
    """Wait for a condition; return the milliseconds it took."""
    start = time.perf_counter()
    while not condition():
        time.sleep(0.005)
    return 1000 * (time.perf_counter() - start)


class Table:
    """A table in Markdown, printed line by line as the figures come.

    :param first: head of the first column; ``columns`` are those of the others.
    """

    SPREAD = "ms, p50 / p95 / p99"

    def __init__(self, first: str, *columns: str) -> None:
        self.row(first, *columns)
        print(f"|:--|{'--:|' * len(columns)}", flush=True)

    def row(self, *cells: object) -> None:
        """Print a line; a number has two decimals."""
        shown = (f"{cell:,.2f}" if isinstance(cell, float) else str(cell) for cell in cells)
        print(f"| {' | '.join(shown)} |", flush=True)

    def compared(self, what: str, peer: float, ours: float) -> None:
        """Print a time and how many times that of a peer it is."""
        self.row(what, ours, f"{ours / peer:.2f}" if peer else "–")
