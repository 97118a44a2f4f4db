"""Use of the documents by agents, from the log of calls, for people.

A token for some domains shows only calls of their tools, about documents of these domains. Because calls name
files, a token for some folders shows only the caller's own calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npl_mcp.app.call_reports import CALLER
from npl_mcp.app.context import Context
from npl_mcp.app.schemes import SCHEMES
from npl_mcp.stores import calls
from npl_mcp.stores.calls import LoggedCall

LATEST = 5_000
"""Maximum calls to read: the latest."""


def latest(app: Context, until: str | None = None) -> Sequence[LoggedCall]:
    """Return the latest calls that the caller may see, the newest first.

    :param until: a time; only earlier calls.
    """
    if not app.database.is_made():
        return ()
    caller, permissions = CALLER.get().identity, app.permissions
    owner = caller.name if caller is not None and permissions.roots is not None else None
    hidden = [f"{name}:" for name, scheme in SCHEMES.items() if not permissions.has_domain(scheme.domain)]
    rows = app.database.reading(calls.latest, LATEST, permissions.domains, owner, until)
    return [row for row in rows if not any(start in text for text in _texts(row) for start in hidden)]


def _texts(call: LoggedCall) -> Iterator[str]:
    """Yield the logged texts that may name a document."""
    yield from filter(None, (call.file, call.context, call.message, call.arguments, *(call.taken or ())))
