"""The shared state of all callers of a server: indices and other caches, the stores, the token counter."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Hashable
from copy import copy
from operator import attrgetter

from cachetools import LRUCache, cached

from npl_index.index.entries import Indexer
from npl_index.library.cache import BuildingCache
from npl_index.library.listing import cached_listings
from npl_index.ranking.collection import IndexedDocument
from npl_index.tokens.counting import TokenCounter
from npl_index.tokens.estimated import estimator
from npl_index.tokens.exact import best_counter
from npl_index.tokens.sections import KnownCounts
from npl_mcp.app.document_sets import DocumentSets
from npl_mcp.app.reading import ReadSections
from npl_mcp.config.settings import Settings
from npl_mcp.stores.data_folder import Stores

_MAX_COUNT_BYTES = 16 * 1024 * 1024

COMMON = (
    *("cache_bytes", "cache_mode", "data_folder", "database_url", "index_bytes", "time_limit", "vocabulary"),
    *("body_limit", "limits", "log_calls", "log_level", "max_artifact_bytes"),
)
"""Settings of the state or of the whole process, which sessions that share it have in common."""

MAX_CALLERS = 256
"""Callers whose read sections are remembered."""

_MAX_OUTCOMES = 2_000
"""Maximum outcomes of questions and examinations, each for one state of the documents."""


class SharedState:
    """State shared by all callers; construction opens nothing; safe for several threads.

    :param settings: settings of any caller, because this state does not depend on the working directory.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stores = Stores(settings.data_folder, settings.database_url)
        self.files = cached_listings()
        indexer = Indexer(settings.time_limit, settings.vocabulary)
        size_of = attrgetter("nbytes")
        self.indices = BuildingCache[IndexedDocument](indexer.index, settings.cache_bytes, size_of)
        # Caches are not thread-safe. Their values are computed outside of the lock, so that one caller does
        # not block the others. Two threads may then compute the same value, which is harmless.
        self.lock = threading.Lock()
        callers = cached(LRUCache(MAX_CALLERS), lock=threading.Lock())
        self.read_sections: Callable[[str], ReadSections] = callers(lambda _: ReadSections())
        self.outcomes: LRUCache[Hashable, object] = LRUCache(_MAX_OUTCOMES)
        self.process = f"process {secrets.token_hex(8)}"
        folder = None if settings.cache_mode == "memory" else settings.data_folder
        self.sets = DocumentSets(indexer, folder, settings.cache_bytes, settings.index_bytes)
        self.known_counts = cached(
            LRUCache(_MAX_COUNT_BYTES, size_of),
            key=lambda parsed, counter, _: (parsed.document.digest, parsed.tree.dialect, counter.name),
            lock=self.lock,
        )(lambda parsed, counter, stored: KnownCounts(len(parsed.tree.sections), counter, stored()))
        self._counters: dict[str, TokenCounter] = {}
        self._counter_lock = threading.Lock()

    def of_session(self, settings: Settings) -> SharedState:
        """Return this state for a session of several in this process, which differ in settings.

        :param settings: settings of the session, with the :data:`COMMON` values of this state.
        """
        state = copy(self)
        state.settings, state.process = settings, f"process {secrets.token_hex(8)}"
        return state

    @property
    def counter(self) -> TokenCounter:
        """The token counter, exact if the vocabulary is on this machine.

        A server that loads it after startup estimates until then, so that no call waits for it.
        """
        if self.settings.vocabulary not in self._counters and self.settings.warm_up:
            return estimator(self.settings.vocabulary)
        return self.load_counter()

    def load_counter(self) -> TokenCounter:
        """Load the vocabulary if it is on this machine; afterwards :attr:`counter` is exact."""
        name = self.settings.vocabulary
        with self._counter_lock:
            if name not in self._counters:
                self._counters[name] = best_counter(name, self.settings.vocabularies)
        return self._counters[name]

    def close(self) -> None:
        """Close the index and the database; stop indexing."""
        self.sets.close()
        self.stores.close()
