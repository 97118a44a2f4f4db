"""Safe retries: a call with the ``request_id`` of an earlier one changes nothing and gets the same answer.

The answer is stored in the transaction of the write. Files have no transaction: the answer to a change of
files is stored right after it. A kill in between allows a second execution; ``expect`` then refuses the edit.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from types import coroutine

from npl_index.answer.values import Written
from npl_mcp.app.waiting import Awaited, Waiting, step
from npl_mcp.stores.base.database import Database, Transaction
from npl_mcp.stores.requests import Request
from npl_mcp.tools.contract.responses import as_dict, encode


class _AnsweredError(Exception):
    """An earlier call has an answer already."""


@coroutine
def once(database: Database, request: Request, call: Waiting[object]) -> Generator[Awaited, None, object]:
    """Make a call unless it has an answer already; return its answer.

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
                    with database.write() as tx:
                        request.keep(tx, _written(outcome))
                    return outcome
            yield outcome
    except _AnsweredError as answered:
        return _read(str(answered))
    finally:
        call.close()


def _written(answer: object) -> str:
    text = answer.text if isinstance(answer, Written) else None
    return encode({"data": as_dict(answer), "text": text})


def _read(kept: str) -> object:
    answer = json.loads(kept)
    return answer["data"] if answer["text"] is None else Written(answer["data"], answer["text"])
