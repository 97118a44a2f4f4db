"""Deadlines of computations: of the work on one document, and of the running call."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from npl_index.errors import DocumentTimeoutError
from npl_index.priority import give_way


class Deadline(NamedTuple):
    """A time limit for work on one or several documents.

    :param name: the document, for the message.
    :param moment: value of ``time.monotonic()``, or ``None`` for no limit.
    """

    name: str
    moment: float | None

    def check(self) -> None:
        """Raise an error once the moment has passed.

        :raises DocumentTimeoutError: the moment has passed.
        """
        give_way()
        if self.moment is not None and time.monotonic() > self.moment:
            problem = f"reading {self.name} took longer than the limit"
            raise DocumentTimeoutError(problem, hint="try again, or name a smaller part")


NO_DEADLINE = Deadline("", None)

CALL: ContextVar[Deadline] = ContextVar("call", default=NO_DEADLINE)
"""The deadline of the running call, for work that no other deadline limits: walks, edits, comparisons."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Set the deadline of a call for the context; also a decorator.

    :param seconds: time from the start of the context.
    """
    token = CALL.set(Deadline("the documents", time.monotonic() + seconds))
    try:
        yield
    finally:
        CALL.reset(token)
