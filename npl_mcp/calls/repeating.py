"""Calls that their callers may repeat.

A call with the ``request_id`` of an earlier one changes nothing and gets the same answer. The answer is
stored in the transaction of the write. Files have no transaction: the id is reserved before their change,
and the answer is stored after it. After a kill in between, a repetition is refused, because nothing tells
whether the change was made.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from npl_index.errors import NPLError
from npl_mcp.app.waiting import OwnThread, Pending
from npl_mcp.stores.base.database import Database, Transaction
from npl_mcp.stores.base.errors import DatabaseError
from npl_mcp.stores.requests import BEGUN, Request
from npl_mcp.tools.contract.responses import as_dict, encode

EQUAL_SECONDS = 10.0
"""Maximum seconds that a call waits for the end of an equal call with its ``request_id``."""


class _AnsweredError(Exception):
    """An earlier call has an answer already."""


@dataclass(frozen=True, slots=True)
class Once:
    """Runs the parts of a call unless the call has an answer already.

    :param database: database of the answers.
    :param request: the call.
    """

    database: Database
    request: Request

    def __call__(self, part: Callable[[], Any]) -> Any:
        """Run a part of the call; its result is the answer unless it is ``Pending``.

        The transaction lasts until the answer is complete, with what the function reads and the copies it
        writes after its change: an answer that is stored later would be lost if the server ended in between.

        :raises InvalidRequestError: the ``request_id`` belongs to another call.
        """

        def check(tx: Transaction) -> None:
            if (known := self.request.answer(tx)) is not None:
                raise _AnsweredError(known)

        try:
            self.database.reading(check)
            # An equal call may have finished meanwhile, so the check is repeated before the first write.
            with self.database.joined(check):
                outcome = part()
                if not isinstance(outcome, Pending):
                    self.database.writing(self.request.keep, _stored(outcome))
                return outcome
        except _AnsweredError as answered:
            return _restored(str(answered))


async def once_with_files(
    database: Database, request: Request, threads: OwnThread, change: Callable[[], object]
) -> object:
    """Make a call that changes files, as :class:`Once` does; wait for an equal call that is running.

    :raises InvalidRequestError: the ``request_id`` belongs to another call.
    :raises ConflictError: an equal call has begun, and its outcome is not known.
    """

    def begin() -> str | None:
        known = database.reading(request.answer)
        return database.writing(request.begin) if known is None else known

    def make() -> object:
        try:
            outcome = change()
        except NPLError:
            with suppress(DatabaseError):  # repetitions are refused then
                database.writing(request.forget)
            raise
        database.writing(request.keep, _stored(outcome))
        return outcome

    until = time.monotonic() + EQUAL_SECONDS
    while (known := await threads.run(begin)) == BEGUN:
        if time.monotonic() >= until:
            raise request.unknown()
        await asyncio.sleep(0.1)
    return await threads.run(make) if known is None else _restored(known)


def _stored(outcome: object) -> str:
    return encode({"data": as_dict(outcome)})


def _restored(stored: str) -> object:
    """Return the outcome of an earlier call from :func:`_stored`."""
    return json.loads(stored)["data"]
