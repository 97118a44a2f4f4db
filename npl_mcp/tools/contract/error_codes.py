"""Replies for exceptions: the error codes, the table of exceptions, and the texts for invalid arguments.

The middleware of :mod:`npl_mcp.server.server` calls :func:`translate`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from npl_index import errors as document_errors
from npl_index.errors import InvalidRequestError, MissingRequestError, NPLError
from npl_index.library.references import near_names
from npl_mcp.stores.base import errors
from npl_mcp.tools.contract.responses import FailedReply

logger = logging.getLogger(__name__)

MAX_ERROR_BYTES = 4_000
"""Bytes of the answer to a failed call: enough to correct the call, and cheap for an agent."""

MAX_PROBLEMS = 10
"""Named problems of one call; after their correction, the next call names the others."""


class ErrorCode(str, Enum):
    """Machine-readable kinds of failure.

    :param INVALID_PARAMETER: an argument is invalid; the message shows a valid one.
    :param MISSING_REQUIRED: a required argument is absent.
    :param NOT_FOUND: nothing has this name; the message lists similar ones.
    :param ALREADY_EXISTS: the name is taken.
    :param ARTIFACT_NOT_FOUND: there is no such artifact.
    :param SESSION_NOT_FOUND: there is no such session.
    :param ROOM_NOT_FOUND: there is no such room.
    :param REVIEW_NOT_FOUND: there is no such review.
    :param PERMISSION_DENIED: a path leaves every search root, or the caller lacks permission.
    :param OPERATION_FAILED: the operation is impossible: over a limit, or already closed.
    :param INTERNAL_ERROR: a defect of the server; its log has the details.
    :param DATABASE_ERROR: the database cannot be used; the message gives the reason.
    :param FILE_SYSTEM_ERROR: a file cannot be read or written.
    """

    status: int
    """HTTP status of a failed call; MCP itself answers 200."""

    def __new__(cls, name: str, status: int) -> ErrorCode:
        """Return a member with its status."""
        code = str.__new__(cls, name)
        code._value_, code.status = name, status
        return code

    INVALID_PARAMETER = "INVALID_PARAMETER", 400
    MISSING_REQUIRED = "MISSING_REQUIRED", 400
    NOT_FOUND = "NOT_FOUND", 404
    ALREADY_EXISTS = "ALREADY_EXISTS", 409
    ARTIFACT_NOT_FOUND = "ARTIFACT_NOT_FOUND", 404
    SESSION_NOT_FOUND = "SESSION_NOT_FOUND", 404
    ROOM_NOT_FOUND = "ROOM_NOT_FOUND", 404
    REVIEW_NOT_FOUND = "REVIEW_NOT_FOUND", 404
    PERMISSION_DENIED = "PERMISSION_DENIED", 403
    OPERATION_FAILED = "OPERATION_FAILED", 422
    INTERNAL_ERROR = "INTERNAL_ERROR", 500
    DATABASE_ERROR = "DATABASE_ERROR", 500
    FILE_SYSTEM_ERROR = "FILE_SYSTEM_ERROR", 422


_MAX_NAME = 64
_MAX_LOG_LINE = 1_000
_MAX_ESCAPE = 6  # a control character becomes \u001f

_OPERATOR_ERRORS = (errors.DatabaseError, errors.StorageError)
"""Errors that the operator of the server must fix. All others are for the caller."""

_MISSING = {"missing", "missing_argument", "missing_keyword_only_argument"}

CODES: Mapping[type[BaseException], ErrorCode] = {
    InvalidRequestError: ErrorCode.INVALID_PARAMETER,
    MissingRequestError: ErrorCode.MISSING_REQUIRED,
    document_errors.NotFoundError: ErrorCode.NOT_FOUND,
    document_errors.OutsideRootError: ErrorCode.PERMISSION_DENIED,
    document_errors.UnreadableDocumentError: ErrorCode.FILE_SYSTEM_ERROR,
    errors.SessionNotFoundError: ErrorCode.SESSION_NOT_FOUND,
    errors.ArtifactNotFoundError: ErrorCode.ARTIFACT_NOT_FOUND,
    errors.RoomNotFoundError: ErrorCode.ROOM_NOT_FOUND,
    errors.ReviewNotFoundError: ErrorCode.REVIEW_NOT_FOUND,
    errors.AlreadyExistsError: ErrorCode.ALREADY_EXISTS,
    errors.NotAllowedError: ErrorCode.PERMISSION_DENIED,
    errors.TooLargeError: ErrorCode.INVALID_PARAMETER,
    errors.DatabaseError: ErrorCode.DATABASE_ERROR,
    errors.StorageError: ErrorCode.FILE_SYSTEM_ERROR,
    NPLError: ErrorCode.OPERATION_FAILED,
    OSError: ErrorCode.FILE_SYSTEM_ERROR,
}
"""The codes of exceptions; a class that is not here has the code of its nearest base class."""


def code_of(kind: type[BaseException]) -> ErrorCode:
    """Return the error code of a class of exceptions: see :data:`CODES`."""
    return next((CODES[base] for base in kind.__mro__ if base in CODES), ErrorCode.INTERNAL_ERROR)


def translate(error: BaseException, tool: str) -> FailedReply:
    """Return the reply for an exception.

    Expected errors keep their text. For a defect, the reply has only a general text; the traceback goes to
    the log.

    :param error: exception that the tool raised.
    :param tool: name of the tool, for the log.
    """
    code = code_of(type(error))
    if isinstance(error, NPLError):
        level = logging.WARNING if isinstance(error, _OPERATOR_ERRORS) else logging.INFO
        first_line = error.message.partition("\n")[0][:_MAX_LOG_LINE]
        logger.log(level, "%s: %s: %s", tool[:_MAX_NAME], code.value, first_line)
        parameter = error.parameter if isinstance(error, InvalidRequestError) else None
        text, name = shortened(str(error)), parameter and parameter[:_MAX_NAME]
        return FailedReply(error=text, error_code=code.value, parameter=name)
    logger.error("%s: %s", tool[:_MAX_NAME], code.value, exc_info=error)
    if isinstance(error, OSError):
        problem = f"the file system answered: {error.strerror or type(error).__name__}"
    else:
        problem = f"{tool} failed because of a defect in this server; its log has the details"
    return FailedReply(error=problem, error_code=code.value)


def shortened(text: str, limit: int = MAX_ERROR_BYTES - 100) -> str:
    """Return a message within a limit; a longer one loses its middle, between the problem and the hint.

    :param limit: bytes of the message as JSON; the default leaves 100 bytes for the envelope.
    """
    if len(text) * _MAX_ESCAPE <= limit or (len(text) <= limit and _json_size(text) <= limit):
        return text
    length = min(len(text), limit)
    while (size := _json_size(short := f"{text[: length * 3 // 4]} … {text[-(length // 4) :]}")) > limit:
        length = length * limit // size - 1
    return short


def _json_size(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace"))


def invalid_arguments(
    problems: Sequence[Mapping[str, Any]], tool: str, examples: Mapping[str, object]
) -> InvalidRequestError:
    """Return the error for invalid arguments; it names each parameter and a valid value.

    :param problems: pydantic's error list (``type``, ``loc``, ``msg``).
    :param tool: name of the tool.
    :param examples: a valid value for each parameter of the tool.
    """
    lines, first = [], ""
    for problem in problems[:MAX_PROBLEMS]:
        name, *inside = [str(part) for part in problem["loc"]] or [""]
        first = first or name
        lines.append(_describe(problem["type"], problem["msg"], name, inside, examples))
    more = [f"and {len(problems) - MAX_PROBLEMS:,} more problems"] if len(problems) > MAX_PROBLEMS else []
    text = "; ".join([*dict.fromkeys(lines), *more])
    only_missing = all(problem["type"] in _MISSING for problem in problems)
    kind = MissingRequestError if only_missing else InvalidRequestError
    return kind(f"{tool}: {text}", parameter=first or None)


def _describe(kind: str, text: str, name: str, inside: Sequence[str], examples: Mapping[str, object]) -> str:
    if kind in ("unexpected_keyword_argument", "extra_forbidden"):
        near = near_names(name[:64], examples, 2, parts=True)
        known = f"did you mean {' or '.join(near)}?" if near else f"it takes {', '.join(examples) or 'none'}"
        return f"{name[:64]!r} is not a parameter; {known}"
    example = f", e.g. {name}={json.dumps(examples[name], ensure_ascii=False)}" if name in examples else ""
    if kind in _MISSING:
        return f"{name} is required{example}"
    argument = f"{name}[{']['.join(inside)}]" if inside else name
    return f"{argument}: {text[:1].lower() + text[1:]}{example}"
