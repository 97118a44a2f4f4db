"""The start of a server's process: importing its packages fast, and its memory."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from npl_index.priority import PrioritySelector

_M_MMAP_THRESHOLD = -3  # of malloc.h
_LARGE_BYTES = 1024 * 1024
_M_ARENA_MAX = -8
_ARENAS = 2
_SWITCH_SECONDS = 0.0005
_COLLECTIONS = (2_000, 20, 20)


@contextmanager
def lasting() -> Iterator[None]:
    """Import modules that stay as long as the process does, without garbage collection.

    None of their objects ever becomes garbage. Collections during the imports take a sixth of the start-up,
    and every later collection that walks these objects would hold up calls.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def prepare_process() -> None:
    """Set what the whole process shares, once a server begins to serve."""
    # Whoever waits for the interpreter asks for it this often. A call that computes in a thread would else
    # hold up the event loop, which needs several turns for each answer, by five milliseconds at each.
    sys.setswitchinterval(_SWITCH_SECONDS)
    # A collection of everything walks all indexes and holds up every call meanwhile. Indexes hold no cycles,
    # and what a call leaves is found among the young objects.
    gc.set_threshold(*_COLLECTIONS)
    if sys.platform == "linux":
        import ctypes  # no other command needs it

        # The C library learns from the first large block that is freed to keep those that follow: with
        # artifacts of 8 MiB the process grew to twice what it used. Others do not have this function.
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
            # Each thread would else take memory from an arena of its own, and what one frees no other gets:
            # that was a tenth of a server's memory. Threads that compute take turns anyway.
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def allow_files(most: int) -> None:
    """Let this process have so many files and connections open, as far as the system lets it.

    A common default is 1,024, and each call over HTTP that waits for something new has a connection.
    """
    with suppress(ImportError, ValueError, OSError):  # no such limits on Windows
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def new_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of a server, for which threads that compute pause."""
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    return asyncio.SelectorEventLoop(PrioritySelector())
