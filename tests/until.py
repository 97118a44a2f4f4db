"""Waiting for events in another thread or process."""

import time
from collections.abc import Callable
from typing import TypeVar

import anyio

T = TypeVar("T")

PATIENCE = 180.0
"""Maximum seconds of a wait; even on a busy machine only a failure takes them."""


def until(condition: Callable[[], T]) -> T:
    """Return the result of a condition as soon as it is true."""
    end = time.monotonic() + PATIENCE
    while not (result := condition()):
        assert time.monotonic() < end, "the condition never held"
        time.sleep(0.02)
    return result


async def soon(condition: Callable[[], object]) -> None:
    """Let other tasks go on until a condition is true."""
    with anyio.fail_after(PATIENCE):
        while not condition():
            await anyio.sleep(0.005)
