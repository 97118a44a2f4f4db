"""The log of calls, if enabled, written by a separate thread in batches.

No call waits for the log or fails because of it: calls that the database does not accept in time are dropped.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Collection, Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from cachetools import LRUCache
from cachetools.func import ttl_cache

from npl_index.answer.values import Tailored
from npl_index.errors import NPLError
from npl_index.library.documents import DocumentRef
from npl_index.ranking.analysis import terms
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import PAGES, STDIO, Call, Caller, Sink, write_line
from npl_mcp.stores.base.paging import now
from npl_mcp.stores.calls import CONTEXT, CallStore, LoggedCall, Offered

logger = logging.getLogger(__name__)

UNKNOWN = "unknown"
"""Name in the log for calls of unknown tools."""

MAX_QUEUE = 5_000
"""Calls in the queue; further ones are dropped."""

MAX_BATCH = 500
"""Calls per transaction, so that other writers wait no longer than for one of their own."""

PAUSE_SECONDS = 0.5
"""Time between two transactions: each costs a write to disk, and wakes all waiting calls."""

ALIKE = 0.5
"""Share of common words above which two questions are nearly the same."""

SOON = 600.0
"""Seconds within which a nearly equal question counts as a repetition."""

_MAX_OFFERS = 20
_MAX_SIZES = 1024
_SIZE_SECONDS = 30.0
_MAX_TEXT = 1_000
_CLOSE_SECONDS = 2.0


def sinks(app: App) -> tuple[Sink, ...]:
    """Return the sinks of finished calls that the settings of an application enable."""
    return (write_line,) if app.settings.log_calls == "off" else (write_line, CallLog(app))


class CallLog:
    """Sink that stores finished calls.

    :param app: application with the store and the documents.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._store: CallStore = app.stores.calls
        self._statistics = app.state.indices
        self._with_contexts = app.settings.log_calls == "contexts"
        self._queue: queue.Queue[tuple[LoggedCall, Caller, set[str]]] = queue.Queue(MAX_QUEUE)
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._hits = self._misses = 0
        self._started = now()
        self._asked: LRUCache[str, tuple[float, frozenset[str]]] = LRUCache(_MAX_SIZES)

    def __call__(self, call: Call) -> None:
        """Queue a call for the log, unless a page made it: pages serve people, the log is about agents."""
        if call.caller.name == PAGES:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="npl-call-log", daemon=True)
            self._thread.start()
        try:
            answer, files = call.data, set[str]()
            if isinstance(answer, Tailored):
                files = {section.file or answer.file for section in answer.sections}
            self._queue.put_nowait((self._logged(call), call.caller, files))
        except queue.Full:
            logger.debug("a call is left out of the log")

    def close(self) -> None:
        """Write the remaining calls, and end the thread."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        """Write queued calls, then pause."""
        while not self._closing.wait(PAUSE_SECONDS) or not self._queue.empty():
            batch: list[LoggedCall] = []
            while len(batch) < MAX_BATCH and not self._queue.empty():
                logged, caller, files = self._queue.get_nowait()
                whole = _whole_size(self._app, caller, files) if logged.taken is not None else None
                batch.append(replace(logged, whole=whole))
            if batch:
                try:
                    self._store.add(batch)
                except NPLError as error:
                    logger.warning("%d calls are left out of the log: %s", len(batch), error)

    def _logged(self, call: Call) -> LoggedCall:
        caller, identity = call.caller, call.caller.identity
        owner = None if identity is None else identity.name
        hits, misses = self._statistics.hits, self._statistics.built
        self._hits, hits = hits, hits - self._hits
        self._misses, misses = misses, misses - self._misses
        return LoggedCall(
            created_at=now(),
            tool=call.tool if call.known else UNKNOWN,
            domains=" ".join(call.domains),
            who=owner or _storable(caller.name or caller.transport),
            owner=owner,
            error=call.code,
            micros=round(call.seconds * 1_000_000),
            bytes=call.size,
            hits=hits,
            misses=misses,
            session=(session := _session(self._started, caller)),
            **(self._loaded(call.arguments, call.data) if isinstance(call.data, Tailored) else {}),
            **self._question(session, call),
        )

    def _question(self, session: str, call: Call) -> dict[str, Any]:
        """Return the logged values of a question."""
        answer = call.data
        found = len(answer.sections) if isinstance(answer, Tailored) else getattr(answer, "total", None)
        text = _asked(call)
        if text is None or found is None:
            return {}
        words, (then, before) = frozenset(terms(text)), self._asked.get(session, (0.0, frozenset[str]()))
        self._asked[session] = call.started, words
        is_near = len(words & before) > ALIKE * len(words | before)
        weak = getattr(answer, "weak", None)
        return {
            "context": _storable(text, CONTEXT) if self._with_contexts else None,
            "found": found,
            "outcome": "nothing" if not found else "weak" if weak else "found",
            "again": 1 if is_near and call.started - then < SOON else None,
        }

    def _loaded(self, given: Mapping[str, object], answer: Tailored) -> dict[str, Any]:
        """Return the logged values of loaded sections, except the size of the whole documents.

        :param given: arguments of the call.
        """
        offers: list[tuple[Offered, str]] = [("suggestion", found.selector) for found in answer.suggestions]
        offers += [("more", selector) for selector in answer.request_more]
        budget = given.get("token_budget")
        return {
            "file": _storable(answer.file),
            "asked": budget if isinstance(budget, int) else None,
            "used": answer.total_tokens,
            "taken": tuple(
                _storable(part.selector if part.file is None else f"{part.file}: {part.selector}")
                for part in answer.sections
            ),
            "wanted": tuple(map(_storable, _requested(given))),
            "offered": tuple((kind, _storable(selector)) for kind, selector in offers[:_MAX_OFFERS]),
        }


def _session(started: str, caller: Caller) -> str:
    """Return a short digest of a caller's token, process or client: plain HTTP calls share no connection.

    :param started: when the server began, which serves one process over standard streams.
    """
    named = caller.identity and caller.identity.name
    parts = named or (started if caller.transport == STDIO else caller.transport, caller.name)
    return blake2b(repr(parts).encode("utf-8", "replace"), digest_size=6).hexdigest()


def _asked(call: Call) -> str | None:
    """Return the question of a call."""
    given = call.arguments
    topics = given.get("topics")
    words = [given.get("context") or given.get("query"), *(topics if isinstance(topics, list) else [])]
    return " ".join(one for one in words if isinstance(one, str)).strip() or None


def _requested(given: Mapping[str, object]) -> list[str]:
    """Return the selectors that a call requests."""
    lists = (given.get(name) for name in ("selectors", "sections"))
    return [str(selector) for found in lists if isinstance(found, list) for selector in found]


def _storable(text: str, max_length: int = _MAX_TEXT) -> str:
    """Return the beginning of a text in a form for all databases, without NUL and lone surrogates."""
    return text[:max_length].replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _whole_size(app: App, caller: Caller, files: Collection[str]) -> int | None:
    """Return the tokens of documents as a caller sees them; ``None`` if one is missing.

    A change may be noticed up to half a minute late.

    :param app: application with the documents.
    """
    try:
        seen = caller.view(app)
        return sum(_file_tokens(seen, file) for file in files)
    except NPLError:
        return None


@ttl_cache(_MAX_SIZES, _SIZE_SECONDS)
def _file_tokens(app: App, file: str) -> int:
    collection = app.gather(DocumentRef(file=file)).collection
    _, counts = app.counting(collection)
    return sum(
        counts(number).total(range(len(indexed.tree.sections)))
        for number, indexed in enumerate(collection.documents)
    )
