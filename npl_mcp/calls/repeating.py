"""Calls that their callers may repeat.

A call with the ``request_id`` of an earlier one changes nothing and gets the same answer. The answer is
stored in the transaction of the write. Files have no transaction: the id is reserved before their change,
and the answer is stored after it. After a kill in between, a repetition is refused, because nothing tells
whether the change was made.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from contextlib import suppress
from types import coroutine

from npl_index.errors import NPLError
from npl_mcp.app.waiting import Awaited, Waiting, step
from npl_mcp.stores.base.database import Database, Transaction
from npl_mcp.stores.base.errors import DatabaseError
from npl_mcp.stores.requests import BEGUN, Request
from npl_mcp.tools.contract.responses import as_dict, encode

EQUAL_SECONDS = 10.0
"""Maximum seconds that a call waits for the end of an equal call with its ``request_id``."""


class _AnsweredError(Exception):
    """An earlier call has an answer already."""


@coroutine
def once(database: Database, request: Request, call: Waiting[object]) -> Generator[Awaited, None, object]:
    """Make a call unless it has an answer already; return its answer.

    The transaction lasts until the answer is complete, with what the function reads and the copies it writes
    after its change: an answer that is stored later would be lost if the server ended in between.

    :raises InvalidRequestError: the ``request_id`` belongs to another call.
    """

    def check(tx: Transaction) -> None:
        if (known := request.answer(tx)) is not None:
            raise _AnsweredError(known)

    try:
        with database.read() as tx:
            check(tx)
        while True:
            # An equal call may have finished meanwhile, so the check is repeated before the first write.
            with database.joined(check):
                outcome = step(call)
                if not isinstance(outcome, Awaited):
                    database.writing(request.keep, _stored(outcome))
                    return outcome
            yield outcome
    except _AnsweredError as answered:
        return _restored(str(answered))
    finally:
        call.close()


@coroutine
def once_with_files(
    database: Database, request: Request, call: Waiting[object]
) -> Generator[Awaited, None, object]:
    """Make a call that changes files, as :func:`once` does; wait for an equal call that is running.

    :raises InvalidRequestError: the ``request_id`` belongs to another call.
    :raises ConflictError: an equal call has begun, and its outcome is not known.
    """

    def begin() -> str | None:
        known = database.reading(request.answer)
        return database.writing(request.begin) if known is None else known

    until = time.monotonic() + EQUAL_SECONDS
    try:
        while (known := begin()) == BEGUN:
            if time.monotonic() >= until:
                raise request.unknown()
            yield Awaited(until=time.monotonic() + 0.1)
        if known is not None:
            return _restored(known)
        try:
            while isinstance(outcome := step(call), Awaited):
                yield outcome
        except NPLError:
            with suppress(DatabaseError):  # repetitions are refused then
                database.writing(request.forget)
            raise
        database.writing(request.keep, _stored(outcome))
        return outcome
    finally:
        call.close()


def _stored(outcome: object) -> str:
    return encode({"data": as_dict(outcome)})


def _restored(stored: str) -> object:
    """Return the outcome of an earlier call from :func:`_stored`."""
    return json.loads(stored)["data"]
