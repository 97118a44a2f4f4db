"""Promises of :mod:`npl_index.library.cache`."""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from npl_index.errors import DocumentError, DocumentTimeoutError
from npl_index.library.cache import BuildingCache
from npl_index.library.documents import Document, Fingerprint
from npl_index.library.fingerprints import COARSE_GRANULARITY_NS, FINE_GRANULARITY_NS

SECOND = 1_000_000_000
NOW = 1_700_000_000 * SECOND


def document(
    path: str = "/docs/a.md", text: str = "# A\n", mtime_ns: int = NOW - 60 * SECOND, size: int | None = None
) -> Document:
    data = text.encode()
    fingerprint = Fingerprint(path, mtime_ns, len(data) if size is None else size)
    return Document("a", "a.md", fingerprint, data, f"digest of {text}", False)


def building(
    build: object = None, clock: int = NOW, maxsize: int = 1000
) -> tuple[BuildingCache[str], list[Document]]:
    """Make a cache of upper-cased texts that records what it builds."""
    built: list[Document] = []

    def upper(document: Document) -> str:
        built.append(document)
        return document.data.decode().upper()

    return BuildingCache(build or upper, maxsize, len, lambda: clock), built  # type: ignore[arg-type]


def never() -> Document:
    raise AssertionError("read again")


def test_the_least_recently_used_value_goes_first() -> None:
    cache, built = building(maxsize=60)
    first, second, third = (document(path=f"/{name}", text="x" * 20) for name in "abc")
    for file in (first, second, first, third, first, second):
        assert cache.get(file.fingerprint, lambda file=file: file) == "X" * 20  # type: ignore[misc]
    assert built == [first, second, third, second]


def test_a_value_larger_than_the_bound_is_not_kept() -> None:
    """One giant value does not drive everything else out."""
    cache, built = building(maxsize=30)
    small, big = document(text="x" * 10), document(path="/big", text="y" * 100)
    for file in (small, big, small, big):
        cache.get(file.fingerprint, lambda file=file: file)  # type: ignore[misc]
    assert built == [small, big, big]


@pytest.mark.parametrize(
    ("age_ns", "trusted"),
    [
        (COARSE_GRANULARITY_NS + 1_000_000, True),
        (COARSE_GRANULARITY_NS, False),
        (FINE_GRANULARITY_NS + 1, True),
        (FINE_GRANULARITY_NS - 1, False),
        (FINE_GRANULARITY_NS + 1_000_000, False),
        (-SECOND, False),
    ],
)
def test_a_fresh_time_stamp_alone_proves_nothing(age_ns: int, trusted: bool) -> None:
    """A file changed a moment ago, or in the future, is read and compared by content.

    How long a moment is depends on the digits of the time stamp, which tell the file system's granularity.
    """
    cache, built = building()
    fresh, reads = document(mtime_ns=NOW - age_ns), []

    def read() -> Document:
        reads.append(fresh)
        return fresh

    assert cache.get(fresh.fingerprint, read) == cache.get(fresh.fingerprint, read) == "# A\n"
    assert len(reads) == (1 if trusted else 2)
    assert len(built) == cache.hits == cache.built == 1


def test_an_edit_that_keeps_time_and_size_is_seen_while_the_time_is_fresh() -> None:
    """Two writes within one tick of the file system's clock are told apart by content."""
    cache, built = building()
    before = document(text="# A\n", mtime_ns=NOW)
    after = document(text="# B\n", mtime_ns=NOW)
    assert before.fingerprint == after.fingerprint
    assert cache.get(before.fingerprint, lambda: before) == "# A\n"
    assert cache.get(after.fingerprint, lambda: after) == "# B\n"
    assert cache.get(after.fingerprint, lambda: after) == "# B\n"
    assert len(built) == 2


def test_a_changed_file_replaces_what_was_kept() -> None:
    cache, _ = building()
    old, new = document(), document(text="# New\n", mtime_ns=NOW - 30 * SECOND)
    cache.get(old.fingerprint, lambda: old)
    assert cache.get(new.fingerprint, lambda: new) == "# NEW\n"
    assert cache.get(new.fingerprint, never) == "# NEW\n"
    assert cache.get(old.fingerprint, lambda: old) == "# A\n"


def test_concurrent_misses_build_once() -> None:
    started, go = threading.Event(), threading.Event()
    built = []

    def slow(document: Document) -> str:
        built.append(document)
        started.set()
        assert go.wait(10)
        return "made"

    cache, _ = building(slow)
    file = document()
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(cache.get, file.fingerprint, lambda: file) for _ in range(8)]
        assert started.wait(10)
        go.set()
        assert {call.result(10) for call in calls} == {"made"}
    assert len(built) == 1


def test_a_failure_is_remembered_until_the_file_changes() -> None:
    """A hostile file costs its time limit once, not on every call."""
    tries = []

    def failing(document: Document) -> str:
        tries.append(document)
        if document.data == b"# bad\n":
            raise DocumentTimeoutError("took too long")
        return "fine"

    cache, _ = building(failing)
    bad = document(text="# bad\n")
    for _ in range(3):
        with pytest.raises(DocumentError, match="took too long"):
            cache.get(bad.fingerprint, lambda: bad)
    assert len(tries) == 1
    mended = document(text="# good\n", mtime_ns=NOW - 10 * SECOND)
    assert cache.get(mended.fingerprint, lambda: mended) == "fine"


def test_a_failure_that_is_kept_holds_nothing_of_the_document(request: pytest.FixtureRequest) -> None:
    """A kept error would otherwise hold its frames, which may have a hundred megabytes."""

    class State:
        """The state of a parser."""

    states = []

    def failing(_: Document) -> str:
        state = State()
        states.append(weakref.ref(state))
        raise DocumentTimeoutError("took too long", hint="split it")

    cache, _ = building(failing)
    bad = document(text="# bad\n")
    gc.disable()
    request.addfinalizer(gc.enable)
    for _ in range(2):
        with pytest.raises(DocumentTimeoutError, match="took too long; split it"):
            cache.get(bad.fingerprint, lambda: bad)
        assert [state() for state in states] == [None]
