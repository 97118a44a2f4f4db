"""Threads that compute yield to threads that answer."""

import selectors
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from npl_index import priority as module
from npl_index.priority import PrioritySelector, give_way, with_priority


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of the test's own thread, each of which advances the clock."""
    made: list[float] = []
    now = 1_000.0
    me = threading.get_ident()

    def sleep(seconds: float) -> None:
        assert threading.get_ident() == me
        made.append(seconds)

    clock = type("Clock", (), {"sleep": staticmethod(sleep), "monotonic": lambda: now + sum(made)})
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(module, "_turn_ends", 0.0)
    return made


def test_without_others_there_is_no_pause(pauses: list[float]) -> None:
    """A thread pauses neither for itself nor without another that answers."""
    give_way()
    with_priority(give_way)
    assert pauses == []


def test_a_thread_that_computes_pauses_and_goes_on(pauses: list[float]) -> None:
    """It gets its turn however long the other thread answers; then it pauses again."""
    answering, over = threading.Event(), threading.Event()

    def answer() -> None:
        answering.set()
        over.wait(60)

    with ThreadPoolExecutor(1) as other:
        done = other.submit(with_priority, answer)
        assert answering.wait(60)
        give_way()
        first = len(pauses)
        give_way()
        assert len(pauses) == first > 0
        pauses.append(1.0)
        give_way()
        assert len(pauses) > first + 1
        over.set()
        done.result(60)
    pauses.append(1.0)
    count = len(pauses)
    give_way()
    assert len(pauses) == count


def test_an_event_loop_has_priority_unless_it_waits(pauses: list[float]) -> None:
    """Threads that compute have all the time in which the loop is idle."""
    ours, theirs = socket.socketpair()
    ready, go_on, over = threading.Event(), threading.Event(), threading.Event()

    def loop() -> None:
        with PrioritySelector() as selector, theirs:
            selector.register(theirs, selectors.EVENT_READ)
            ready.set()
            selector.select(60)
            go_on.set()
            over.wait(60)
            selector.select(0)

    with ours, ThreadPoolExecutor(1) as other:
        done = other.submit(loop)
        assert ready.wait(60)
        give_way()
        assert pauses == []
        ours.send(b"x")
        assert go_on.wait(60)
        give_way()
        assert pauses
        over.set()
        done.result(60)
    count = len(pauses)
    pauses.append(1.0)
    give_way()
    assert len(pauses) == count + 1
