"""The envelope of all answers, and the conversion of values to JSON.

``{"success": true, "data": …}`` or ``{"success": false, "error": …, "error_code": …}``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin

from npl_index.answer.values import Written
from npl_index.answer.values import as_dict as as_dict
from npl_index.errors import NPLError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Generic[T]):
    """The envelope of a success.

    :param success: always true.
    :param data: value of the tool.
    """

    success: bool = True
    data: T


ENVELOPE = '{"success":true,"data":', "}"
"""The JSON of :class:`Reply` before and after its data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedReply:
    """The envelope of a failure.

    :param success: always false.
    :param error: problem, its place, and a valid alternative.
    :param error_code: a member of :class:`~npl_mcp.tools.contract.error_codes.ErrorCode`.
    :param parameter: name of the invalid argument.
    """

    success: bool = False
    error: str
    error_code: str
    parameter: str | None = None


def value_type(returned: Any) -> Any:
    """Return the type of a tool's value.

    :param returned: return annotation of the tool's function, which may include a written form.
    """
    if get_origin(returned) in (Union, UnionType):
        return next(kind for kind in get_args(returned) if get_origin(kind) is not Written)
    return get_args(returned)[0] if get_origin(returned) is Written else returned


def size(text: str) -> int:
    """Return the number of bytes of a text in UTF-8; an ASCII text is not copied."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def within(limit: int, answer: str) -> str:
    """Return an answer after a check of its size.

    :param limit: limit in bytes; the largest artifact fits.
    :raises NPLError: the answer is longer.
    """
    if size(answer) > limit:
        raise too_long(limit)
    return answer


def too_long(limit: int) -> NPLError:
    """Return the error for an answer above the limit, in bytes; if possible before the answer is made."""
    problem = f"the answer is longer than {limit:,} bytes"
    return NPLError(problem, hint="request less at a time, with limit, offset, a selector or a token budget")


def encode(body: Mapping[str, object]) -> str:
    """Return compact JSON without escapes for characters outside ASCII, which would cost more tokens."""
    return sendable(json.dumps(body, ensure_ascii=False, separators=(",", ":")))


def sendable(text: str) -> str:
    """Return a text that UTF-8 can encode: lone surrogates become U+FFFD."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
