"""Declarations of tools: a plain function and its properties."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from npl_index.cached import cached_property
from npl_index.library.roots import LocalPath
from npl_mcp.app.waiting import result_of
from npl_mcp.config.docstrings import parameters
from npl_mcp.config.domains import NEEDS, Of
from npl_mcp.tools.contract.parameters import Acting, SharedParameters, checked, markers, parts_of, unlisted

EXAMPLES = Path(__file__).parents[2] / "data" / "examples.json"
"""Examples by tool: ``run`` has the arguments of a call in the documentation's small project, where the calls
run in the order of the list of tools; ``values`` has a valid value for each parameter not in ``run``."""


@dataclass(frozen=True)
class ToolSpec:
    """The declaration of a tool.

    :param function: function with the :class:`~npl_mcp.app.context.Context` as first parameter and the tool's
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

    @cached_property
    def name(self) -> str:
        """The name of the tool."""
        return self.function.__name__

    @cached_property
    def domain(self) -> str | None:
        """The domain of the function's module; ``None`` for a function outside the package of tools."""
        package, _, module = self.function.__module__.rpartition(".")
        return module if f"{package}.contract" == __package__ else None

    @cached_property
    def domains(self) -> tuple[str, ...]:
        """Its domain and those that the domain needs."""
        return () if self.domain is None else (self.domain, *NEEDS.get(self.domain, ()))

    @cached_property
    def actors(self) -> tuple[str, ...]:
        """The parameters with the persona that acts."""
        return tuple(name for name, part in markers(self.function) if part is Acting)

    @cached_property
    def references(self) -> Mapping[str, str]:
        """The parameters that name records of other domains, with these."""
        named = ((name, part.domain) for name, part in markers(self.function) if isinstance(part, Of))
        return {name: domain for name, domain in named if domain not in self.domains}

    @cached_property
    def fields(self) -> Mapping[str, str]:
        """The fields of answers with data of other domains, with these."""
        every = ((name, part) for _, name, parts in answer_fields(self.function) for part in parts)
        marks = [(name, part) for name, part in every if isinstance(part, Of)]
        of = ((key, part.domain) for name, part in marks for key in part.keys or (name,))
        return {key: domain for key, domain in of if domain != self.domain}

    @cached_property
    def paths(self) -> frozenset[str]:
        """The fields of answers that may have absolute paths."""
        return frozenset(name for _, name, parts in answer_fields(self.function) if LocalPath in parts)

    @cached_property
    def waits(self) -> bool:
        """Whether the function runs on the event loop, where it can wait."""
        return inspect.iscoroutinefunction(self.function)

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
        signature = inspect.signature(self.function).parameters
        texts = {name: text for name, text in markers(self.function) if isinstance(text, str)}
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


def answer_fields(function: Callable[..., object]) -> Iterator[tuple[type, str, list[object]]]:
    """Yield the fields of the answers of a tool's function, at any depth.

    :returns: the dataclass, the name of its field, and the parts of the field's annotation.
    """
    waiting: list[Any] = [inspect.signature(function, eval_str=True).return_annotation]
    for kind in waiting:  # grows
        origin = get_origin(kind) or kind
        hints = get_type_hints(origin, include_extras=True) if is_dataclass(origin) else {}
        for name, hint in hints.items():
            yield origin, name, list(parts_of(hint))
        bases = getattr(origin, "__orig_bases__", ())  # a page of some kind of items
        waiting += (part for part in (*get_args(kind), *bases, *hints.values()) if part not in waiting)


@cache
def _examples() -> dict[str, dict[str, dict[str, object]]]:
    """Read the examples, which only failures and the documentation need."""
    examples: dict[str, dict[str, dict[str, object]]] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return examples
