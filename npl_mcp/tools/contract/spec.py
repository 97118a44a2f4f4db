"""Declarations of tools: a plain function and its properties."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from npl_mcp.app.waiting import result_of
from npl_mcp.config.docstrings import parameters
from npl_mcp.tools.contract.parameters import SharedParameters, checked, unlisted

EXAMPLES = Path(__file__).parents[2] / "data" / "examples.json"
"""Examples by tool: ``run`` has the arguments of a call in the documentation's small project, where the calls
run in the order of the list of tools; ``values`` has a valid value for each parameter not in ``run``."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """The declaration of a tool.

    :param function: function with the :class:`~npl_mcp.app.app.App` as first parameter and the tool's
        parameters as keywords. Its name is the tool's name, the first paragraph of its docstring the
        description for agents. A call checks the arguments, then runs the function once: a coroutine function
        on the event loop, so that it can wait, any other one in a worker thread.
    :param read_only: whether the tool changes nothing.
    :param idempotent: whether a second equal call changes nothing more.
    :param destructive: whether the tool may remove or overwrite data.
    :param lane: group of calls that share threads: ``light``; ``heavy`` for calls that may need many
        megabytes or seconds, of which few run at once; or ``search``, which delays no other lane.
    :param listed: whether agents see the tool; others can still be called by name.
    :param always: whether the tool is in the small list, and loaded at once by clients that load most tools
        after a search.
    :param switch: name of the setting that lists the tool, if ``listed`` is false.
    :param reads: function from the arguments of a call to whether a caller who may only read may make it, and
        whose call then changes nothing; only for tools that write.
    :param files: whether the tool changes files, which no transaction of the database includes.
    :param closed: whether the schema forbids other parameters, as a contract requires.
    :param title: name for people; every listed tool has one.
    """

    function: Callable[..., object]
    read_only: bool = True
    idempotent: bool = True
    destructive: bool = False
    lane: Literal["light", "heavy", "search"] = "light"
    listed: bool = True
    always: bool = False
    closed: bool = False
    title: str | None = None
    switch: str | None = None
    reads: Callable[[Mapping[str, object]], bool] | None = None
    files: bool = False

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self.function.__name__

    @property
    def description(self) -> str:
        """The first paragraph of the function's docstring, on one line."""
        return " ".join((inspect.getdoc(self.function) or "").split("\n\n", 1)[0].split())

    def __call__(self, app: Any, /, **arguments: Any) -> Any:
        """Check the arguments of a call, and run the function in this thread, waits included.

        :param app: first argument of the function.
        :raises InvalidRequestError: an argument is invalid.
        """
        outcome: Any = self.function(app, **checked(self.function, arguments))
        return result_of(outcome) if inspect.iscoroutine(outcome) else outcome

    def may_read(self, arguments: Mapping[str, object]) -> bool:
        """Return whether a call with some arguments may be made by a caller who may only read."""
        return self.read_only or (self.reads is not None and self.reads(arguments))

    @property
    def meanings(self) -> dict[str, str]:
        """The texts of parameters for people: from the docstring, else the text for agents, else shared."""
        signature = inspect.signature(self.function, eval_str=True).parameters
        texts = {
            name: text
            for name, parameter in signature.items()
            if get_origin(parameter.annotation) is Annotated
            for text in get_args(parameter.annotation)[1:]
            if isinstance(text, str)
        }
        shared = {name: text for name, text in parameters(SharedParameters).items() if name in signature}
        return {**shared, **texts, **parameters(self.function)}

    @property
    def example(self) -> Mapping[str, object]:
        """Arguments of the call in the documentation; empty for tools that are not listed."""
        return _examples()[self.name].get("run", {})

    @property
    def examples(self) -> Mapping[str, object]:
        """A valid value for each parameter that agents may use, for messages about invalid arguments."""
        known = _examples()[self.name]
        values = {**known.get("run", {}), **known.get("values", {})}
        names = list(inspect.signature(self.function).parameters)[1:]
        hidden = unlisted(self.function) - values.keys()
        return {name: values[name] for name in names if name not in hidden}


def not_listed(*functions: Callable[..., object], **flags: Any) -> tuple[ToolSpec, ...]:
    """Return the declarations of tools that agents do not see.

    :param flags: further properties of each of them.
    """
    return tuple(ToolSpec(function, listed=False, **flags) for function in functions)


@cache
def _examples() -> dict[str, dict[str, dict[str, object]]]:
    """Read the examples, which only failures and the documentation need."""
    examples: dict[str, dict[str, dict[str, object]]] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return examples
