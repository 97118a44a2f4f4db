"""From exceptions to replies: the codes, the table of exceptions, the text of a validation failure.

This module knows no server; :mod:`npl_mcp.server.server` calls :func:`translate` from its middleware.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from enum import Enum

from npl_index.errors import (
    DocumentError,
    DocumentTimeoutError,
    DocumentTooLargeError,
    InvalidRequestError,
    MissingRequestError,
    NotFoundError,
    NPLError,
    OutsideRootError,
    SelectorSyntaxError,
    UnreadableDocumentError,
)
from npl_index.library.references import near_words
from npl_mcp.stores.base.errors import (
    AlreadyExistsError,
    ArtifactNotFoundError,
    ClosedError,
    DatabaseError,
    NotAllowedError,
    RecordNotFoundError,
    ReviewNotFoundError,
    RoomNotFoundError,
    SessionNotFoundError,
    StorageError,
    StoreError,
    TooLargeError,
)
from npl_mcp.tools.responses import Failure

logger = logging.getLogger(__name__)

LARGEST_ERROR = 4_000
"""Bytes of the answer to a call that failed: an agent pays for each, and needs no more to mend its call."""

PROBLEMS = 10
"""Problems of one call that are named; who mends those sees the rest."""


class ErrorCode(str, Enum):
    """Machine-readable kinds of failure.

    :param meaning: one line for people.
    """

    meaning: str

    def __new__(cls, value: str, meaning: str) -> ErrorCode:
        """Make a member that is its own name."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    INVALID_PARAMETER = "INVALID_PARAMETER", "an argument cannot be used; the message shows a valid one"
    MISSING_REQUIRED = "MISSING_REQUIRED", "a needed argument is absent"
    NOT_FOUND = "NOT_FOUND", "what was named is not there; the message has near names"
    ALREADY_EXISTS = "ALREADY_EXISTS", "the name is taken"
    ARTIFACT_NOT_FOUND = "ARTIFACT_NOT_FOUND", "there is no such artifact"
    SESSION_NOT_FOUND = "SESSION_NOT_FOUND", "there is no such session"
    ROOM_NOT_FOUND = "ROOM_NOT_FOUND", "there is no such room"
    REVIEW_NOT_FOUND = "REVIEW_NOT_FOUND", "there is no such review"
    PERMISSION_DENIED = "PERMISSION_DENIED", "a path leaves every search root, or who calls may not do that"
    OPERATION_FAILED = "OPERATION_FAILED", "it cannot be done: over a limit, or already closed"
    INTERNAL_ERROR = "INTERNAL_ERROR", "a defect of the server; its log has the details"
    DATABASE_ERROR = "DATABASE_ERROR", "the database cannot be used; the message says why"
    FILE_SYSTEM_ERROR = "FILE_SYSTEM_ERROR", "a file cannot be read or written"


_SHOWN = 64
_LOGGED = 1_000
_LONGEST_ESCAPE = 6  # a control character becomes \u001f

_OURS = (DatabaseError, StorageError)
"""Errors that whoever runs the server has to look at. All others are the caller's affair, who is told."""

_MISSING = {"missing", "missing_argument", "missing_keyword_only_argument"}

CODES: Mapping[type[BaseException], ErrorCode] = {
    InvalidRequestError: ErrorCode.INVALID_PARAMETER,
    MissingRequestError: ErrorCode.MISSING_REQUIRED,
    SelectorSyntaxError: ErrorCode.INVALID_PARAMETER,
    NotFoundError: ErrorCode.NOT_FOUND,
    DocumentError: ErrorCode.OPERATION_FAILED,
    OutsideRootError: ErrorCode.PERMISSION_DENIED,
    UnreadableDocumentError: ErrorCode.FILE_SYSTEM_ERROR,
    DocumentTooLargeError: ErrorCode.OPERATION_FAILED,
    DocumentTimeoutError: ErrorCode.OPERATION_FAILED,
    SessionNotFoundError: ErrorCode.SESSION_NOT_FOUND,
    ArtifactNotFoundError: ErrorCode.ARTIFACT_NOT_FOUND,
    RoomNotFoundError: ErrorCode.ROOM_NOT_FOUND,
    ReviewNotFoundError: ErrorCode.REVIEW_NOT_FOUND,
    RecordNotFoundError: ErrorCode.NOT_FOUND,
    StoreError: ErrorCode.OPERATION_FAILED,
    AlreadyExistsError: ErrorCode.ALREADY_EXISTS,
    NotAllowedError: ErrorCode.PERMISSION_DENIED,
    ClosedError: ErrorCode.OPERATION_FAILED,
    TooLargeError: ErrorCode.INVALID_PARAMETER,
    DatabaseError: ErrorCode.DATABASE_ERROR,
    StorageError: ErrorCode.FILE_SYSTEM_ERROR,
    NPLError: ErrorCode.OPERATION_FAILED,
    OSError: ErrorCode.FILE_SYSTEM_ERROR,
}


def code_of(kind: type[BaseException]) -> ErrorCode:
    """Return the code of a class of exceptions: that of its nearest base class in :data:`CODES`."""
    return next((CODES[base] for base in kind.__mro__ if base in CODES), ErrorCode.INTERNAL_ERROR)


def translate(error: BaseException, tool: str) -> Failure:
    """Return the reply to a call that raised.

    Expected errors keep their text. Of a defect the caller learns only that it is one; the traceback goes to
    the log.

    :param error: what the tool raised.
    :param tool: the tool's name, for the log.
    """
    code = code_of(type(error))
    if isinstance(error, NPLError):
        level = logging.WARNING if isinstance(error, _OURS) else logging.INFO
        logger.log(level, "%s: %s: %s", tool[:_SHOWN], code.value, error.message.partition("\n")[0][:_LOGGED])
        name = error.parameter if isinstance(error, InvalidRequestError) else None
        return Failure(error=shortened(str(error)), error_code=code.value, parameter=name and name[:_SHOWN])
    logger.error("%s: %s", tool[:_SHOWN], code.value, exc_info=error)
    if isinstance(error, OSError):
        problem = f"the file system answered: {error.strerror or type(error).__name__}"
    else:
        problem = f"{tool} failed because of a defect in this server; its log has the details"
    return Failure(error=problem, error_code=code.value)


def shortened(text: str, most: int = LARGEST_ERROR - 100) -> str:
    """Return a message of at most so many bytes as JSON; what is too much is taken from its middle.

    A message begins with what is wrong and ends with what to do.

    :param most: the rest of the answer needs the others.
    """
    if len(text) * _LONGEST_ESCAPE <= most or (len(text) <= most and _size(text) <= most):
        return text
    kept = min(len(text), most)
    while (size := _size(short := f"{text[: kept * 3 // 4]} … {text[-(kept // 4) :]}")) > most:
        kept = kept * most // size - 1
    return short


def _size(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace"))


def invalid_arguments(
    problems: Sequence[Mapping[str, object]], tool: str, examples: Mapping[str, object]
) -> InvalidRequestError:
    """Return the error for arguments that do not fit a tool's parameters.

    :param problems: pydantic's error list (``type``, ``loc``, ``msg``).
    :param examples: a valid value for each parameter of the tool.
    :returns: an error that names each parameter and shows a valid value.
    """
    lines = []
    first = ""
    for problem in problems[:PROBLEMS]:
        loc = problem["loc"]
        where = [str(part) for part in loc] if isinstance(loc, tuple) else [str(loc)]
        name = where[0] if where else ""
        first = first or name
        lines.append(_describe(str(problem["type"]), str(problem["msg"]), name, where[1:], examples))
    more = [f"and {len(problems) - PROBLEMS:,} more problems"] if len(problems) > PROBLEMS else []
    text = "; ".join([*dict.fromkeys(lines), *more])
    kinds = {str(problem["type"]) for problem in problems}
    kind = MissingRequestError if kinds <= _MISSING else InvalidRequestError
    return kind(f"{tool}: {text}", parameter=first or None)


def _describe(
    kind: str, message: str, name: str, inside: Sequence[str], examples: Mapping[str, object]
) -> str:
    if kind in ("unexpected_keyword_argument", "extra_forbidden"):
        near = near_words(name[:64], examples, limit=2)
        known = f"did you mean {' or '.join(near)}?" if near else f"it takes {', '.join(examples) or 'none'}"
        return f"{name[:64]!r} is not a parameter; {known}"
    example = f", e.g. {name}={_shown(examples[name])}" if name in examples else ""
    if kind in _MISSING:
        return f"{name} is required{example}"
    place = f"{name}[{']['.join(inside)}]" if inside else name
    return f"{place}: {message[:1].lower() + message[1:]}{example}"


def _shown(example: object) -> str:
    return json.dumps(example, ensure_ascii=False)
