"""The application of a process: the state that all calls share, and the documents of each caller."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path

from cachetools import LRUCache, cachedmethod
from cachetools.keys import methodkey

from npl_index.deadline import limited
from npl_index.errors import NPLError
from npl_index.index.database import reading_errors
from npl_index.library.documents import DocumentRef
from npl_mcp.app.context import Context
from npl_mcp.app.documents import Documents
from npl_mcp.app.file_view import lies_in, real_paths
from npl_mcp.app.state import SharedState
from npl_mcp.config.domains import PRESETS, READING, domains_named
from npl_mcp.config.memory import free_memory
from npl_mcp.config.settings import Settings
from npl_mcp.stores.access import ALL, Permissions

logger = logging.getLogger(__name__)

VIEWS = 32
"""Cached views of documents, by permissions and working directory."""

VOCABULARY_DELAY = 0.5
"""Seconds between the start of the warm-up and the loading of the vocabulary, for the first calls."""

CHECK_DELAY = 60.0
"""Seconds until the index is compared with its documents. This takes seconds of a processor for a large one,
and most questions come soon after a start.
"""


class App(Context):
    """The application of a server or a command, and the context of the process's own calls.

    Construction opens nothing; safe for several threads.

    :param settings: settings of the server or command.
    :param state: shared state, which lasts longer; by default a new one.
    """

    def __init__(self, settings: Settings, state: SharedState | None = None) -> None:
        self._close_state = state is None
        state = state or SharedState(settings)
        super().__init__(state, Documents(settings, state, ALL))
        self._views: LRUCache[object, Documents] = LRUCache(VIEWS)
        self._warm_up: threading.Thread | None = None
        self._closing = threading.Event()

    @cachedmethod(attrgetter("_views"), key=methodkey, lock=attrgetter("state.lock"))
    def documents_for(self, permissions: Permissions = ALL, cwd: Path | None = None) -> Documents:
        """Return the documents that callers see.

        :param permissions: permissions of the caller.
        :param cwd: absolute path of its working directory, which is searched if there are no explicit roots;
            by default that of the settings.
        """
        settings = self.settings
        if permissions.roots is not None:
            wanted = real_paths(permissions.roots)
            roots = tuple(map(Path, dict.fromkeys(self._visible_folders(wanted))))
            projects = tuple(place for place in settings.cr_projects if lies_in(str(place), wanted))
            settings = replace(settings, roots=roots, cr_projects=projects)
        if cwd is not None:
            project = settings.project if cwd == settings.cwd else None
            settings = replace(settings, cwd=cwd, own_cwd=True, project=project)
        same = permissions == ALL and settings == self.settings
        return self.documents if same else Documents(settings, self.state, permissions)

    def _visible_folders(self, wanted: Sequence[str]) -> Iterator[str]:
        """Yield the requested folders that this application may show, and its own folders below others."""
        roots = self.library.roots
        for folder in wanted:
            if roots.locate(folder) is not None:
                yield folder
            else:
                yield from (root.path for root in roots if not root.npl and lies_in(root.path, [folder]))

    def start_warm_up(self) -> None:
        """Run :meth:`warm_up` in a separate thread."""
        if self.settings.warm_up and self._warm_up is None:
            work = partial(self.warm_up, CHECK_DELAY)
            self._warm_up = threading.Thread(target=work, name="npl-warm-up", daemon=True)
            self._warm_up.start()

    def warm_up(self, delay: float = 0.0) -> None:
        """Check the database, begin to index the roots, load the vocabulary, and check the index.

        :param delay: seconds before the check of the index.
        """
        # Loading a vocabulary blocks the interpreter for a third of a second; the first call has priority.
        self._closing.wait(VOCABULARY_DELAY)
        try:
            self.stores.start()
        except NPLError as error:
            logger.error("data folder: %s", error)
        self.index_ahead()
        self.state.load_counter()
        free_memory()  # of the list's former copies
        if not self._closing.wait(delay):
            self.state.sets.verify(self._closing.is_set)

    def index_ahead(self) -> None:
        """Begin to index the roots if a tool reads them and later servers keep the index.

        Many servers end without a question: an index in memory would be lost each time.
        """
        settings = self.settings
        reads = not {*PRESETS[READING]}.isdisjoint(domains_named(settings.domains))
        if not reads or settings.cache_mode == "memory" or self._closing.is_set():
            return
        # The first question reports what is wrong.
        with suppress(NPLError, OSError, *reading_errors()), limited(settings.time_limit):
            locations = self.documents.find(DocumentRef())
            if len(locations) > 1:
                self.state.sets.begin(*self.documents.set_of(DocumentRef(), locations)[:2])

    def close(self) -> None:
        """Stop the warm-up; close the shared state, if it is not another's."""
        self._closing.set()
        if self._warm_up is not None:
            self._warm_up.join()
        if self._close_state:
            self.state.close()
