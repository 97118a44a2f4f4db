"""Tools that wait, called without a server: the caller's thread waits."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from npl_mcp.app.waiting import result_of
from npl_mcp.tools import npl
from npl_mcp.tools import search as searching

P = ParamSpec("P")
T = TypeVar("T")


def _here(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    @wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> T:
        return result_of(function(*given, **named))

    return call


npl_load_tailored, npl_section_index = _here(npl.npl_load_tailored), _here(npl.npl_section_index)
search = _here(searching.search)
