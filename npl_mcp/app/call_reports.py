"""One call of a tool, from its arrival to its report: caller, result, and recipients of the report."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

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
from npl_mcp.stores.base.errors import NotAllowedError

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
            raise FolderRefusedError(
                "the working directory is not the absolute path of a folder that this server may show you",
                hint="leave it out, or send the token of the server's state file",
            )
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
    :param followed: for each selector of the call that an earlier answer offered to its caller, the field of
        that answer.
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
    followed: tuple[str, ...] = ()
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

    @property
    def requested(self) -> Iterator[object]:
        """The selectors that the call requests."""
        for name in ("selectors", "sections"):
            given = self.arguments.get(name)
            yield from given if isinstance(given, list) else ()


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
        self._offered: LRUCache[tuple[str, int], str] = LRUCache(MAX_OFFERS)

    def add(self, call: Call) -> None:
        """Report a call; the failure of a sink is logged and does not affect the call."""
        if self._offered:
            keys = ((call.who, hash(selector)) for selector in call.requested if isinstance(selector, str))
            call.followed = tuple(self._offered.pop(key) for key in keys if key in self._offered)
        if isinstance(call.data, Tailored):
            offers = {
                "suggestions": [suggestion.selector for suggestion in call.data.suggestions],
                "request_more": call.data.request_more,
            }
            for name, selectors in offers.items():
                self._offered.update({(call.who, hash(selector)): name for selector in selectors})
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
