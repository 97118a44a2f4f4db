"""One call: what its caller sees and may do, and how long it waits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import TypeVar

from npl_index.answer.document_set import DocumentSet
from npl_index.cached import cached_property
from npl_index.deadline import Deadline
from npl_index.errors import NPLError
from npl_index.index.reading import DocumentChangedError
from npl_index.library.documents import DocumentRef
from npl_index.ranking.collection import Collection
from npl_index.selectors.grammar import Selector
from npl_index.tokens.counting import TokenCounter
from npl_index.tokens.sections import TokenCounts
from npl_mcp.app.document_sets import Build, IndexingError
from npl_mcp.app.documents import Documents
from npl_mcp.app.reading import ReadSections
from npl_mcp.app.state import SharedState
from npl_mcp.app.waiting import OwnThread, result_of

PATIENCE = 20.0
"""Seconds that a model's call waits for an index by default; clients end calls after a minute."""

ONLY_REFERENCE = "the roots: no Markdown; npl.md is the bundled reference of NPL"
"""The remark on an answer without ``file`` where no root has Markdown."""

SMALL_BYTES = 64 * 1024
"""Size up to which a single file is indexed and ranked in the lane of short calls."""

ALL_ROOTS = DocumentRef()

_MAX_TRIES = 3

T = TypeVar("T")


class Context:
    """The first argument of a tool: the documents and stores of one call, which begins now.

    :param state: state that all calls share.
    :param documents: documents that the caller sees.
    :param agent: name of the caller; ``None`` if it is the only one of this process.
    :param threads: threads of a call of the server; by default the present thread.
    :param for_program: whether the answer is for a program of ours or a plain HTTP call, and not for a model.

    ``when_delivered`` has functions to be called once the answer is complete; ``until`` is the moment after
    which the call does not wait for an index.
    """

    def __init__(
        self,
        state: SharedState,
        documents: Documents,
        agent: str | None = "",
        threads: OwnThread | None = None,
        *,
        for_program: bool = False,
    ) -> None:
        self.state, self.documents, self.stores = state, documents, state.stores
        self.settings, self.permissions = documents.settings, documents.permissions
        self.library, self.change_requests = documents.library, documents.change_requests
        self.database, self.news = self.stores.database, self.stores.news
        self.agent = state.process if agent is None else agent
        self.threads, self._for_program = threads or OwnThread(), for_program
        patience = self.settings.patience
        if patience is None and threads is not None and not for_program:
            patience = PATIENCE
        self.until = None if patience is None else time.monotonic() + patience
        self.when_delivered: list[Callable[[], object]] = []

    @property
    def project(self) -> str:
        """The project of the worklogs: the real path of a folder."""
        return str(self.settings.worklog_project)

    def form(self, asked: str | None) -> str:
        """Return the form of an answer: the requested one, else the server's default; programs get JSON."""
        return asked or ("json" if self._for_program else self.settings.format)

    @cached_property
    def counter(self) -> TokenCounter:
        """The token counter of the call, which keeps it until it ends."""
        return self.state.counter

    @property
    def read_sections(self) -> ReadSections | None:
        """The memory of a known caller; ``None`` for an unknown one."""
        tells = self.agent and self.settings.tell_changes
        return self.state.read_sections(self.agent) if tells else None

    async def read(
        self, part: Callable[[], T], ref: DocumentRef = ALL_ROOTS, threads: OwnThread | None = None
    ) -> T:
        """Return the result of a function that gathers documents; it reads one state of each file.

        The function is called again after a wait for an index. Texts of a set are read on demand; if one of
        them has changed since the listing of its set, the function is called again as well.

        :param ref: documents that the function gathers.
        :raises UnreadableDocumentError: a file changes each time.
        """
        threads, tries = threads or self.threads, 0
        if threads.lane == "light" and (ref.file is None or await threads.run(self._is_long, ref)):
            threads.lane = "heavy"
        while True:
            try:
                return await threads.run(part)
            except IndexingError as indexing:
                await threads.wait(indexing.build.ended, indexing.left)
                indexing.left()
            except DocumentChangedError:
                tries += 1
                if tries > _MAX_TRIES:
                    raise
                self.when_delivered.clear()

    def read_here(self, part: Callable[[], T]) -> T:
        """Return the result of :meth:`read`; this thread waits for it."""
        return result_of(self.read(part, threads=OwnThread()))

    def gather(self, ref: DocumentRef, seconds: float | None = None) -> DocumentSet:
        """Return the result of :meth:`documents_of`; this thread waits for it."""
        return self.read_here(partial(self.documents_of, ref, seconds=seconds))

    def _is_long(self, ref: DocumentRef) -> bool:
        """Return whether documents take too long for the lane of short calls."""
        with suppress(NPLError):  # the call reports it
            return self.documents.is_set(ref) or self.documents.find(ref)[0].stat().size > SMALL_BYTES
        return False

    def _left(self, build: Build, seconds: float | None) -> float:
        """Return the seconds that this call still waits for an index.

        :param seconds: maximum wait from the start of the index; ``None`` leaves it to the call's patience,
            which lasts until some documents are ready.
        """
        left = math.inf
        if self.until is not None:
            left = max(self.until - time.monotonic(), 0.0 if build.done else math.inf)
        return left if seconds is None else min(left, build.began + seconds - time.monotonic())

    def documents_of(
        self,
        ref: DocumentRef,
        selectors: Sequence[Selector] = (),
        exclude: Sequence[Selector] = (),
        *,
        seconds: float | None = None,
    ) -> DocumentSet:
        """Return the documents of a request, indexed in their current state.

        Without a file or an item these are the documents that the selectors name. If a selector names none,
        they are those of the explicit roots, or else the core reference.

        :param selectors: selectors of the request.
        :param exclude: sections that the caller already has, of these documents or of others.
        :param seconds: maximum wait for the index, from its start; afterwards the other documents are enough.
        :raises DocumentNotFoundError: no document matches.
        :raises DocumentError: the only document cannot be read.
        :raises IndexingError: the call may wait for the index, in :meth:`read`.
        :raises NotIndexedError: no document of a set is indexed, and the wait is over.
        """
        documents = self.documents
        named, others = documents.resolve(ref, selectors, exclude)
        locations = tuple(dict.fromkeys((*named, *others))) if named else others
        several = len(locations) > 1 or (bool(others) and documents.is_set(ref))
        missing = 0
        if several:
            name, listed, gone = documents.set_of(None if named else ref, locations)
            indexed = self.state.sets.gather(name, listed, partial(self._left, seconds=seconds))
            unreadable = (*indexed.members.unreadable, *gone)
            collection: Collection = indexed
            locations, missing = indexed.files, indexed.members.missing
        until = time.monotonic() + self.settings.time_limit
        if not several:
            unreadable = () if named or ref != DocumentRef() else (ONLY_REFERENCE,)
            collection = documents.indexed_document(locations[0], locations[0].stat()).collection
        files, is_all = documents.names(locations), documents.searches_all(ref, selectors)
        file = documents.name_of(ref, files) if several else files[0]
        clock = Deadline(file, until)
        aliases = documents.aliases(ref, locations)
        if named:
            pairs = zip(locations, aliases, strict=True)
            aliases = [(*own, *named.get(document, ())) for document, own in pairs]
        return DocumentSet(
            collection=collection,
            locations=locations,
            unreadable=unreadable,
            missing=missing,
            several=several,
            file=file,
            counts=self.counting(collection, clock),
            count_with=lambda: self.counter,
            files=files,
            aliases=aliases,
            complete=several and not missing and is_all,
            not_served=self.library.not_served if is_all else str,
            digests=documents.may_edit(ref, locations),
            clock=clock,
        )

    def clock(self, name: str) -> Deadline:
        """Return the deadline of a call that begins now.

        :param name: name of the document or of the set, for messages.
        """
        return Deadline(name, time.monotonic() + self.settings.time_limit)

    def counting(
        self, collection: Collection, clock: Deadline, counter: TokenCounter | None = None
    ) -> Callable[[int], TokenCounts]:
        """Return the token counts of each document of a collection.

        :param counter: token counter, by default that of the call.
        """

        @cache
        def counts(document: int) -> TokenCounts:
            own, by = collection.documents[document], counter or self.counter
            known = self.state.known_counts(own, by, lambda: collection.tokens_of(document))
            return TokenCounts(own.tree, by, clock, known)

        return counts
