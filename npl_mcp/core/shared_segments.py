"""Sets of libraries: whoever is first indexes a library, and gives the segment to all others by the database.

What comes from there is published in the data folder as if it had been made here, so only what was pushed
since is indexed. Sets that are a part of a library, or an older revision, are taken out of the same segment.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from npl_index.errors import NPLError
from npl_index.library.files import Folder
from npl_index.library.roots import Found
from npl_index.ranking.indexing import Collection
from npl_index.ranking.packing import SEGMENT_FORMAT
from npl_mcp.core.batches import Member
from npl_mcp.core.library_documents import ALL, FoundFile, Listing, read_name
from npl_mcp.core.scratch import write_file
from npl_mcp.core.segment_store import SegmentStore, Written
from npl_mcp.core.set_names import SetName
from npl_mcp.core.waiting import Indexing
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.library.indexes import PART_BYTES, Claim, LibraryIndexes
from npl_mcp.stores.library.names import EVERY, SCHEME, LibraryRef
from npl_mcp.stores.library.store import LibraryFile

logger = logging.getLogger(__name__)

WORTH = 16
"""How many times more documents an index may have than a set: beyond it, indexing those few takes no longer
than fetching all."""

ALIKE = 100
"""Of how many documents one may be another way in an index that is shared, without a new one."""

PAUSE = 0.1
"""Seconds between two looks whether an index is there that somebody else makes."""

BEAT_SECONDS = 1.0
STILL_SECONDS = 10.0
"""Seconds without a beat after which somebody else makes the index: on a busy machine some are late."""


class SharedSegments(SegmentStore):
    """A :class:`SegmentStore` that shares what it knows of libraries.

    :param database: where libraries are kept.
    """

    def __init__(self, folder: Path, most: int, database: Database) -> None:
        super().__init__(folder, most)
        self._indexes = LibraryIndexes(database, SEGMENT_FORMAT)
        self._holder = os.urandom(12).hex()
        self._guard = threading.Lock()
        self._coming: dict[str, Indexing] = {}
        self._ours: set[str] = set()
        self._ending = threading.Event()

    def elsewhere(self, name: str, documents: int) -> Indexing | None:
        """Return what to wait for before a set of a library is made; see :meth:`SegmentStore.elsewhere`."""
        wanted = _part_of(name)
        if wanted is None or self.generation(name) is not None:
            return None
        with self._guard:
            if name in self._ours:
                return None
            coming = self._coming.get(name)
            if coming is None:
                coming = self._coming[name] = Indexing(documents)
                coming.ended.set_running_or_notify_cancel()  # nobody who waits can cancel it
                work = partial(self._come, name, wanted, coming)
                threading.Thread(target=work, name="npl-library", daemon=True).start()
        return coming

    @contextmanager
    def making(self, name: str) -> Iterator[None]:
        """Tell others that a library is being indexed here; see :meth:`SegmentStore.making`."""
        wanted = _part_of(name)
        done = threading.Event()
        beats = None
        if wanted is not None and _is_whole(wanted):
            beats = threading.Thread(target=self._beat, args=(wanted[0].library, done), daemon=True)
            beats.start()
        try:
            yield
        finally:
            done.set()
            if beats is not None:
                beats.join()
            with self._guard:
                self._ours.discard(name)

    def publish(
        self, name: str, base: Written, members: Sequence[Member], replaces: tuple[int, int] | None = None
    ) -> int | None:
        """Make a segment the base of a set; that of a library becomes the one for all."""
        generation = super().publish(name, base, members, replaces)
        wanted = _part_of(name)
        if generation is not None and wanted is not None and _is_whole(wanted):
            self._give(wanted[0], base, members)
        return generation

    def close(self) -> None:
        """Let nobody wait any longer; close the manifest."""
        self._ending.set()
        super().close()

    def _come(self, name: str, wanted: _Part, coming: Indexing) -> None:
        """Take a set over when it is there, or find out that it is to be made here."""
        taken = False
        try:
            taken = self._waited_for(name, wanted)
        except NPLError as error:
            logger.warning("index: that of %s cannot be shared: %s", wanted[0].top, error)
        finally:
            with self._guard:
                if not taken:
                    self._ours.add(name)
                del self._coming[name]
            if self._ending.is_set():
                coming.ended.set_exception(NPLError("the server ends"))
            else:
                coming.ended.set_result(None)

    def _waited_for(self, name: str, wanted: _Part) -> bool:
        """Take a set over as soon as somebody has made it; return ``False`` if it is to be made here."""
        library = wanted[0].library
        seen: Claim | None = None
        since = time.monotonic()
        ours = False
        while not self._ending.is_set():
            if self._indexes.is_there(library):
                try:
                    return self._take(name, wanted)
                except _DamagedError:
                    logger.warning("index: that of %s is damaged, and is made again", wanted[0].top)
                    self._indexes.drop(library)
            if ours or not _is_whole(wanted):
                return False
            claim = self._indexes.claimed(library)
            if claim != seen:
                seen, since = claim, time.monotonic()
            if seen is None or time.monotonic() - since > STILL_SECONDS:
                # It may have come since the look, so there is one more.
                ours = self._indexes.claim(library, self._holder, seen) is None
            if not ours:
                self._ending.wait(PAUSE)
        return False

    def _beat(self, library: str, done: threading.Event) -> None:
        try:
            while not done.wait(BEAT_SECONDS):
                self._indexes.go_on(library, self._holder)
            self._indexes.release(library, self._holder)
        except NPLError as error:
            logger.warning("index: others may index %s as well: %s", library, error)

    def _take(self, name: str, wanted: _Part) -> bool:
        """Publish here what is shared of a set; return whether there was enough of it.

        :raises _DamagedError: it cannot be used.
        """
        ref, path = wanted
        listing = _listing(ref, self._indexes.members(ref.library))
        if len(listing.part(path)) * WORTH < len(listing.every):
            return False
        written: list[bytes | None] = []

        def write(place: Path) -> None:
            with Folder.opened(place.parent) as folder, folder.writing(place.name, 0o600) as file:
                written.append(self._indexes.load(ref.library, file.writelines))
            if written[0] is None:
                raise FileNotFoundError

        base = self.keep(write)
        if written and written[0] is None:
            raise _DamagedError
        if base is None:
            return False
        # Somebody may have put another in its place since the first look.
        listing = _listing(ref, written[0])
        return self._published(name, listing, listing.part(path), base)

    def _published(self, name: str, listing: Listing, found: Sequence[Found], base: Written) -> bool:
        """Publish a segment that holds some documents, or what it has of those of a set."""
        if base.segment.document_count != len(listing.every):
            self.discard(base.file)
            raise _DamagedError
        if len(found) < len(listing.every):
            places = {one.path: at for at, one in enumerate(listing.every)}
            chosen = [places[one.path] for one in found]
            living = Collection.of(base.segment).changed(chosen).living()
            part = self.keep(partial(write_file, living))
            self.discard(base.file)
            if part is None:
                return False
            base = part
        members = [_member(one, at) for at, one in enumerate(found)]
        return super().publish(name, base, members) is not None

    def _is_shared(self, ref: LibraryRef, rows: Sequence[_Row]) -> bool:
        """Return whether what is shared holds as good as all of some documents: somebody was faster."""
        members = self._indexes.members(ref.library)
        try:
            known = set() if members is None else set(_rows(members))
        except _DamagedError:
            return False
        return len(known.symmetric_difference(rows)) * ALIKE < len(rows)

    def _give(self, ref: LibraryRef, base: Written, members: Sequence[Member]) -> None:
        """Share a segment that holds a library."""
        ordered = sorted(members, key=lambda member: member.ordinal)
        top = f"{ref.top}/"
        rows = [(one.called.removeprefix(top), one.digest, one.fingerprint.size) for one in ordered]
        try:
            if self._is_shared(ref, rows):
                return
            with Folder.opened(self.folder) as folder, os.fdopen(folder.open(base.file), "rb") as file:
                parts = iter(partial(file.read, PART_BYTES), b"")
                self._indexes.put(ref.library, _packed(rows), parts)
        except FileNotFoundError:  # somebody has published a newer one meanwhile, and shares that
            pass
        except (NPLError, OSError) as error:
            logger.warning("index: that of %s cannot be shared: %s", ref.top, error)


class _DamagedError(Exception):
    """What is shared is not what somebody gave."""


_Row = tuple[str, str, int]
"""Path, digest and size of a document."""

_Part = tuple[LibraryRef, str]
"""What of a library a set is: the revision and the path."""


def _part_of(name: str) -> _Part | None:
    """Return what of a library a set is; ``None`` if it is of none, or of several."""
    asked = SetName(name).file
    if asked is None or not asked.startswith(f"{SCHEME}:") or asked == EVERY:
        return None
    try:
        return read_name(asked)
    except NPLError:
        return None


def _is_whole(part: _Part) -> bool:
    """Return whether a set is all that there is of a library now."""
    return part[0].number is None and part[1] == ALL


def _packed(rows: Sequence[_Row]) -> bytes:
    return zlib.compress(json.dumps(rows).encode())


def _rows(members: bytes | None) -> list[_Row]:
    """Return the documents of an index in its order.

    :raises _DamagedError: they cannot be read.
    """
    try:
        rows = json.loads(zlib.decompress(members or b""))
        return [(str(path), str(digest), int(size)) for path, digest, size in rows]
    except (ValueError, TypeError, zlib.error):
        raise _DamagedError from None


def _listing(ref: LibraryRef, members: bytes | None) -> Listing:
    """Return the documents of an index under the names they have in a set.

    :raises _DamagedError: they cannot be read.
    """
    files = {path: LibraryFile(digest, size) for path, digest, size in _rows(members)}
    return Listing.of(ref.top, files)


def _member(found: Found, ordinal: int) -> Member:
    assert isinstance(found, FoundFile)
    return Member(found.state, True, found.path, found.file.digest, 0, ordinal)
