"""Promises of :mod:`npl_index.cached`."""

import threading
from concurrent.futures import ThreadPoolExecutor

from npl_index.cached import cached_property

SECONDS = 20


class Document:
    """A document whose size is computed once others let it.

    :param known: set when the size of another is known.
    """

    def __init__(self, known: threading.Event) -> None:
        self.asked, self.known, self.count = threading.Event(), known, 0

    @cached_property
    def size(self) -> int:
        """Its size."""
        self.asked.set()
        self.count += 1
        assert self.known.wait(SECONDS)
        return self.count


def test_a_long_computation_holds_up_no_other_object() -> None:
    """A thread computes a property while another computes the same one of another object."""
    known, other = threading.Event(), threading.Event()
    slow, quick = Document(known), Document(other)
    other.set()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(lambda: slow.size)
        assert slow.asked.wait(SECONDS)
        second = threads.submit(lambda: quick.size)
        second.add_done_callback(lambda _: known.set())
        assert (first.result(SECONDS), second.result(SECONDS)) == (1, 1)


def test_it_is_computed_once() -> None:
    """The object keeps it; the class has its description."""
    done = threading.Event()
    done.set()
    document = Document(done)
    assert (document.size, document.size, document.count) == (1, 1, 1)
    assert Document.size.__doc__ == "Its size."
