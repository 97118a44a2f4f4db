"""The current speed of this machine, compared with the one that the bounds in seconds were set on.

Machines that are shared change their speed by the second; a bound in seconds says something of a program only
on a machine of known speed.
"""

from __future__ import annotations

import statistics
import time

REFERENCE_SECONDS = 0.0067
"""Processor seconds of one piece of work in the best moments of the machine that the bounds were set on.

Python 3.11, AMD EPYC; measured later than the bounds were set.
"""

PIECES = 200


def slowness() -> float:
    """Return how many times longer a fixed piece of work takes here; at least 1.

    To be asked while nothing else runs. It is the ninth of ten pieces: the slow moments of a machine decide
    how long the slowest calls take.
    """
    slow = statistics.quantiles((_piece() for _ in range(PIECES)), n=10)[-1]
    return max(1.0, slow / REFERENCE_SECONDS)


def _piece() -> float:
    start = time.process_time()
    total = 0
    for number in range(200_000):
        total += number
    return time.process_time() - start
