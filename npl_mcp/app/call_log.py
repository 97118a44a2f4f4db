"""The log of calls, if enabled, written by a separate thread in batches.

No call waits for the log or fails because of it: calls that the database does not accept in time are dropped.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
from collections.abc import Mapping
from itertools import islice
from typing import Any

from npl_index.answer.values import Tailored
from npl_index.errors import NPLError
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import PAGES, Call, Reports, Sink, write_line
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.paging import now
from npl_mcp.stores.calls import CONTEXT, MAX_TEXTS, CallOutcome, LoggedCall, add

logger = logging.getLogger(__name__)

MAX_QUEUE = 5_000
"""Calls in the queue; further ones are dropped."""

MAX_BATCH = 500
"""Calls per transaction, so that other writers wait no longer than for one of their own."""

PAUSE_SECONDS = 0.5
"""Time between two transactions: each costs a write to disk, and wakes all waiting calls."""

_MAX_TEXT = 1_000
_MAX_ARGUMENTS = 8_000
_MAX_DEPTH = 4
_CLOSE_SECONDS = 2.0


def reports(app: App, *sinks: Sink) -> Reports:
    """Return the recipients of finished calls that the settings of an application enable.

    :param sinks: further recipients.
    """
    if app.settings.log_calls == "off":
        return Reports(*sinks, write_line)
    log = CallLog(app.database, with_contexts=app.settings.log_calls == "contexts")
    return Reports(*sinks, write_line, log.add, close=log.close)


class CallLog:
    """Queue of finished calls, and the thread that stores them.

    :param database: database of the log.
    :param with_contexts: whether to store questions with their arguments, and arguments of failed calls.
    """

    def __init__(self, database: Database, *, with_contexts: bool) -> None:
        self._database, self._with_contexts = database, with_contexts
        self._queue: queue.Queue[LoggedCall] = queue.Queue(MAX_QUEUE)
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, call: Call) -> None:
        """Queue a call for the log, unless a page made it: pages serve people, the log is about agents."""
        if call.caller.name == PAGES:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="npl-call-log", daemon=True)
            self._thread.start()
        try:
            self._queue.put_nowait(entry_of(call, with_contexts=self._with_contexts))
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
                batch.append(self._queue.get_nowait())
            if batch:
                try:
                    self._database.writing(add, batch)
                except NPLError as error:
                    logger.warning("%d calls are left out of the log: %s", len(batch), error)


def entry_of(call: Call, *, with_contexts: bool) -> LoggedCall:
    """Return a finished call as the log stores it.

    :param with_contexts: whether to include its question, and the arguments of a question or a failure.
    """
    answer, identity = call.data, call.caller.identity
    private = with_contexts and (answer is not None or call.code is not None)
    asks = with_contexts and isinstance(answer, Tailored)
    context, absent = _question(call), getattr(answer, "absent", None)
    return LoggedCall(
        created_at=now(),
        tool=call.name,
        domains=" ".join(call.domains),
        who=_storable(call.who),
        owner=None if identity is None else identity.name,
        micros=round(call.seconds * 1_000_000),
        error=call.code,
        message=call.message and _storable(call.message),
        arguments=_arguments(call.arguments, asks=asks) if asks or (private and call.code) else None,
        **(_sections_of(answer) if isinstance(answer, Tailored) else {}),
        context=_storable(context, CONTEXT) if private and context else None,
        outcome=_outcome(answer) if context else None,
        absent=tuple(map(_storable, absent)) if private and absent else None,
    )


def _sections_of(answer: Tailored) -> dict[str, Any]:
    """Return the values of loaded sections, in an answer about several documents each after its file."""
    taken = (
        part.selector if part.file is None else f"{part.file}: {part.selector}" for part in answer.sections
    )
    return {
        "file": _storable(answer.file),
        "used": answer.total_tokens,
        "taken": tuple(map(_storable, taken)),
    }


def _outcome(answer: object) -> CallOutcome | None:
    """Return the outcome of a question; ``None`` for another answer."""
    if answer is None:
        return None
    number = len(answer.sections) if isinstance(answer, Tailored) else getattr(answer, "total", 0)
    return "nothing" if not number else "weak" if getattr(answer, "weak", None) else "found"


def _question(call: Call) -> str | None:
    """Return the question of a call."""
    given = call.arguments
    topics = given.get("topics")
    words = [given.get("context") or given.get("query"), *(topics if isinstance(topics, list) else [])]
    return " ".join(word for word in words if isinstance(word, str)).strip() or None


def _arguments(given: Mapping[str, object], *, asks: bool) -> str:
    """Return arguments as JSON with the beginnings of long texts; those of questions can be read again."""
    return _storable(json.dumps(_beginning(given), ensure_ascii=False), _MAX_ARGUMENTS if asks else _MAX_TEXT)


def _beginning(value: object, depth: int = _MAX_DEPTH) -> object:
    if isinstance(value, str):
        return value[:CONTEXT]
    if not isinstance(value, Mapping | list):
        return value
    if not depth:
        return "…"
    if isinstance(value, list):
        return [_beginning(item, depth - 1) for item in value[:MAX_TEXTS]]
    fields = islice(value.items(), MAX_TEXTS)
    return {str(name)[:CONTEXT]: _beginning(item, depth - 1) for name, item in fields}


def _storable(text: str, max_length: int = _MAX_TEXT) -> str:
    """Return the beginning of a text in a form for all databases, without NUL and lone surrogates."""
    return text[:max_length].replace("\0", "\ufffd").encode("utf-8", "replace").decode()
