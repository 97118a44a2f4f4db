"""One call of a tool, from its arrival to its report: caller, result, and recipients of the report."""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from cachetools import LRUCache

from npl_index.answer.values import Tailored
from npl_index.errors import DocumentNotFoundError, NPLError, OutsideRootError
from npl_index.library.roots import real_path
from npl_mcp.app.app import App
from npl_mcp.app.context import Context
from npl_mcp.app.documents import Documents
from npl_mcp.app.file_view import lies_in
from npl_mcp.app.waiting import OwnThread
from npl_mcp.config.settings import Settings
from npl_mcp.stores.access import ALL, Identity, Permissions
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.errors import NotAllowedError
from npl_mcp.stores.base.paging import now
from npl_mcp.stores.calls import CONTEXT, MAX_TEXTS, LoggedCall, add

logger = logging.getLogger(__name__)

CALLER_KEY = "npl.caller"
"""Key of the scope of an HTTP request with its :class:`Caller`."""

ADMITTED_KEY = "npl.admitted"
"""Key of the scope with a function that checks the same caller's admission again, for long-lived answers."""

FOLDER_KEY = "npl/cwd"
"""Key of a request's ``_meta`` with the caller's working directory, and of an answer's that refuses it."""

FOLDER_HEADER = "NPL-Cwd"
"""The same as a header of plain HTTP calls."""

STDIO, HTTP, UNIX = "stdio", "http", "unix"

PAGES = "web"
"""Client name of the web pages."""

UNKNOWN = "unknown"
"""Name in reports for calls of unknown tools."""

MAX_OFFERS = 10_000
"""Remembered selectors of the latest answers to all callers."""

_MAX_NAME = 64


class FolderRefusedError(NotAllowedError):
    """The caller's working directory cannot be used."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The origin of a call.

    :param transport: :data:`STDIO`, :data:`HTTP` or :data:`UNIX`.
    :param trusted: whether the caller has proved to be the user that runs the server.
    :param name: name of the client.
    :param version: version of the client.
    :param folder: working directory of the caller.
    :param slot: the call's place among those in flight; closed when the call waits, or ends.
    :param identity: identity of its token, if the server has tokens.
    :param key: identifier of the caller in the server: the name of the token, else the connection.
    :param reads: the form of its answers: ``text`` as the server is set up for models, ``json`` unless the
        call asks for another form, or ``values``.
    """

    transport: str = STDIO
    trusted: bool = True
    name: str | None = None
    version: str | None = None
    folder: str | None = None
    slot: ExitStack = field(default_factory=ExitStack, repr=False, compare=False)
    identity: Identity | None = None
    key: Hashable = field(default=None, repr=False, compare=False)
    reads: Literal["text", "json", "values"] = "text"

    @property
    def permissions(self) -> Permissions:
        """Permissions of the caller."""
        return ALL if self.identity is None else self.identity.permissions

    @property
    def read_only(self) -> bool:
        """Whether the caller has a token that only allows reading."""
        return self.identity is not None and self.identity.read_only

    def knows_paths(self, settings: Settings) -> bool:
        """Return whether the caller may know paths of this machine: it is the server's user, or needs no
        token.
        """
        return self.trusted or (self.identity is None and settings.token is None)

    @property
    def agent(self) -> str | None:
        """Name of its token, ``""`` without one and for pages; ``None`` for the only caller of a process."""
        if self.identity is not None and self.name != PAGES:
            return self.identity.name
        return None if self.transport == STDIO and self.name != PAGES else ""

    def visible_error(self, error: NPLError) -> NPLError:
        """Return an error for the caller; with a token, an error about another root becomes "not found"."""
        if self.identity is None or not isinstance(error, OutsideRootError):
            return error
        return DocumentNotFoundError("there is no such document below the roots you see", hint=error.hint)

    def context(self, app: App, threads: OwnThread | None = None) -> Context:
        """Return the context of a call that begins now; see :meth:`documents`.

        :param threads: threads of a call of a tool; by default the present thread.
        """
        documents, for_program = self.documents(app), self.reads != "text"
        return Context(app.state, documents, self.agent, threads, for_program=for_program)

    def documents(self, app: App) -> Documents:
        """Return the documents that the permissions of the token and the working directory allow.

        :raises FolderRefusedError: the directory does not exist, or this caller may not use it.
        """
        documents = app.documents_for(self.permissions)
        if self.folder is None:
            return documents
        # Not Path.resolve, which raises for circular links.
        is_path = Path(self.folder).is_absolute() and "\0" not in self.folder
        real = real_path(self.folder) if is_path else None
        anywhere = self.trusted and self.identity is None
        roots = [str(root.resolve()) for root in documents.settings.roots]
        if real is None or not os.path.isdir(real) or not (anywhere or lies_in(real, roots)):  # noqa: PTH112 - no name is too long for it
            problem = "the working directory is not the absolute path of a folder"
            hint = "leave it out, or send the token of the server's state file"
            raise FolderRefusedError(f"{problem} that this server may show you", hint=hint)
        return app.documents_for(self.permissions, Path(real))


@dataclass(slots=True)
class Call:
    """One call, while it runs and afterwards; all recipients of its report get this value.

    :param tool: name in the call.
    :param caller: origin of the call.
    :param arguments: arguments of the call, unchecked.
    :param known: whether a tool has this name.
    :param domains: domains that a caller must see to see the tool.
    :param code: error code of the answer.
    :param message: its error message.
    :param data: value of the tool.
    :param size: bytes of the answer's text.
    :param seconds: duration of the call.
    :param followed: number of its selectors that earlier answers suggested to its caller.
    """

    tool: str
    caller: Caller
    arguments: Mapping[str, object]
    known: bool = False
    domains: tuple[str, ...] = ()
    code: str | None = None
    message: str | None = None
    data: object = None
    size: int = 0
    seconds: float = 0.0
    followed: int = 0
    started: float = field(default_factory=time.perf_counter)

    @property
    def name(self) -> str:
        """Name of the tool, for statistics."""
        return self.tool if self.known else UNKNOWN

    @property
    def who(self) -> str:
        """Name of the caller, from its token or its client."""
        identity = self.caller.identity
        return identity.name if identity else self.caller.name or self.caller.transport


CALLER: ContextVar[Caller] = ContextVar("caller", default=Caller())  # noqa: B039 - frozen
"""The caller of this context."""


Sink = Callable[[Call], None]
"""Receives finished calls on the event loop."""


class Reports:
    """The recipients of reports about finished calls.

    :param sinks: functions that get each call, one after another.
    :param close: function that is called at shutdown.

    ``in_flight`` is the number of calls that are not finished.
    """

    def __init__(self, *sinks: Sink, close: Callable[[], object] = lambda: None) -> None:
        self.in_flight, self.close = 0, close
        self._sinks = sinks
        self._suggested: LRUCache[tuple[str, int], bool] = LRUCache(MAX_OFFERS)

    def add(self, call: Call) -> None:
        """Report a call; the failure of a sink is logged and does not affect the call."""
        lists = (call.arguments.get(name) for name in ("selectors", "sections"))
        for selector in chain.from_iterable(given for given in lists if isinstance(given, list)):
            if isinstance(selector, str):
                call.followed += self._suggested.pop((call.who, hash(selector)), False)
        if isinstance(call.data, Tailored):
            keys = ((call.who, hash(suggestion.selector)) for suggestion in call.data.suggestions)
            self._suggested.update(dict.fromkeys(keys, True))
        for sink in self._sinks:
            try:
                sink(call)
            except Exception:
                logger.exception("a call could not be reported")


def write_line(call: Call) -> None:
    """Log one line of JSON about a call, without its arguments and its answer, if the level is logged."""
    if not logger.isEnabledFor(logging.INFO):
        return
    line = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "event": "call",
        "tool": call.tool[:_MAX_NAME],
        "ms": round(call.seconds * 1000, 2),
        "outcome": call.code or "OK",
        "bytes": call.size,
        "transport": call.caller.transport,
        "client": (call.caller.name or "")[:_MAX_NAME] or None,
        "client_version": (call.caller.version or "")[:_MAX_NAME] or None,
    }
    if call.caller.identity is not None:
        line["token"] = call.caller.identity.name
    logger.info("%s", json.dumps(line), extra={"bare": True})


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


def reports_of(app: App, *sinks: Sink) -> Reports:
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
            batch = [self._queue.get_nowait() for _ in range(min(MAX_BATCH, self._queue.qsize()))]
            try:
                if batch:
                    self._database.writing(add, batch)
            except NPLError as error:
                logger.warning("%d calls are left out of the log: %s", len(batch), error)


def entry_of(call: Call, *, with_contexts: bool) -> LoggedCall:
    """Return a finished call as the log stores it.

    :param with_contexts: whether to include its question, and the arguments of a question or a failure.
    """
    answer, identity = call.data, call.caller.identity
    asks, context = isinstance(answer, Tailored), _question(call)
    absent, number = getattr(answer, "absent", None), getattr(answer, "total", 0)
    row: dict[str, Any] = {"created_at": now(), "tool": call.name, "domains": " ".join(call.domains)}
    row |= {"who": _storable(call.who), "owner": None if identity is None else identity.name}
    row |= {"micros": round(call.seconds * 1_000_000), "error": call.code}
    row["message"] = call.message and _storable(call.message)
    if isinstance(answer, Tailored):
        # In an answer about several documents each selector comes after its file.
        taken = (f"{part.file}: {part.selector}" if part.file else part.selector for part in answer.sections)
        row |= {"file": _storable(answer.file), "used": answer.total_tokens}
        row["taken"], number = tuple(map(_storable, taken)), len(answer.sections)
    if context and answer is not None:
        row["outcome"] = "nothing" if not number else "weak" if getattr(answer, "weak", None) else "found"
    if with_contexts and (answer is not None or call.code is not None):
        row["context"] = context and _storable(context, CONTEXT)
        row["absent"] = tuple(map(_storable, absent)) if absent else None
        if asks or call.code:
            # Those of a question can be read again.
            text = json.dumps(_beginning(call.arguments), ensure_ascii=False)
            row["arguments"] = _storable(text, _MAX_ARGUMENTS if asks else _MAX_TEXT)
    return LoggedCall(**row)


def _question(call: Call) -> str | None:
    """Return the question of a call."""
    given = call.arguments
    topics = given.get("topics")
    words = [given.get("context") or given.get("query"), *(topics if isinstance(topics, list) else [])]
    return " ".join(word for word in words if isinstance(word, str)).strip() or None


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
