"""The sets of documents in a data folder: made ahead, shown, checked and removed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from npl_index.errors import InvalidRequestError
from npl_index.library.documents import DocumentRef
from npl_index.ranking.storing import check_sections
from npl_mcp.config.settings import Settings
from npl_mcp.core.app import App
from npl_mcp.core.segment_store import Row, SegmentStore, Stored
from npl_mcp.core.set_names import SetName


@dataclass(frozen=True, slots=True)
class Ahead:
    """What was indexed ahead.

    :param files: of the set.
    :param sections: of the set.
    :param built: files that were indexed now; the others had been before.
    :param size: bytes in the data folder; 0 where the set is not kept, which is so if it is small.
    :param seconds: how long it took.
    :param unreadable: files that were left out, and why.
    """

    files: int
    sections: int
    built: int
    size: int
    seconds: float
    unreadable: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """A set in the data folder.

    :param row: what the manifest says of it.
    :param files: how many it has.
    :param sections: how many those have.
    :param problems: what is wrong with it.
    """

    row: Row
    files: int
    sections: int
    problems: tuple[str, ...]

    @property
    def name(self) -> str:
        """What was asked for, and where."""
        return str(SetName(self.row.name))


def index_ahead(settings: Settings) -> Ahead:
    """Index the roots as a server does that is started with them, and keep the result.

    :raises InvalidRequestError: nothing is kept with these settings, or there is no root.
    :raises DocumentNotFoundError: the roots hold no Markdown.
    """
    if settings.cache_mode == "memory":
        raise InvalidRequestError("with --cache memory nothing is kept", hint="leave it out")
    if not settings.roots:
        raise InvalidRequestError("there is no folder to index", hint="npl-mcp index FOLDER")
    app = App(replace(settings, patience=None))
    started = time.monotonic()
    try:
        gathered = app.gather(DocumentRef())
        collection, built = gathered.collection, app.state.sets.built
        name = app.set_name(DocumentRef())
    finally:
        app.close()
    seconds = time.monotonic() - started
    files = len(collection.documents)
    store = SegmentStore(settings.data_folder, settings.index_bytes)
    size = next((row.size for row in store.rows() if row.name == name), 0)
    store.close()
    return Ahead(files, len(collection), built, size, seconds, gathered.unreadable)


def kept_sets(store: SegmentStore) -> Iterator[Kept]:
    """Return the sets of a data folder, what was used last first."""
    for row in store.rows():
        stored = store.look_at(row.name)
        if stored is None:
            yield Kept(row, 0, 0, ("it cannot be used, and is made again when it is asked for",))
        else:
            yield _kept(row, stored)


def _kept(row: Row, stored: Stored) -> Kept:
    segments = {0: stored.base, **stored.deltas}
    sections, problems = 0, []
    for member in stored.members:
        segment = segments.get(member.delta)
        path = member.called
        if segment is None or not 0 <= member.ordinal < segment.document_count:
            problems.append(f"{path}: it is in no segment")
            continue
        starts = segment.documents
        sections += int(starts[member.ordinal + 1]) - int(starts[member.ordinal])
        if not check_sections(segment.records.of(member.ordinal).tobytes()):
            problems.append(f"{path}: its sections cannot be read")
    return Kept(row, len(stored.members), sections, tuple(problems))
