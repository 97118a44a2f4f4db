"""How a tool is declared: a plain function and what it claims about itself."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from npl_mcp.config.docstrings import parameters
from npl_mcp.tools.parameters import checked, unlisted

EXAMPLES = Path(__file__).parents[1] / "data" / "examples.json"
"""By tool: ``run``, arguments of a call that works in the small project of the documentation, in which the
calls run in the order of the list of tools; ``values``, a valid value for each parameter not in ``run``."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool.

    :param function: takes the :class:`~npl_mcp.core.app.App` first and the tool's parameters by keyword. The
        declaration checks these as their types say before it calls the function. Its name is the tool's name,
        the first paragraph of its docstring the description agents read. A call of the tool calls it once,
        in a worker thread. One that waits is made by :func:`~npl_mcp.core.waiting.waits`.
    :param read_only: changes nothing.
    :param idempotent: a second equal call changes nothing more.
    :param destructive: may remove or overwrite what was there.
    :param lane: which calls it takes turns with: ``light`` ones; ``heavy`` ones, which may need many
        megabytes or seconds, so that few run at once; or ``search``, which holds up no other lane.
    :param listed: shown to agents; a tool that is not can still be called by name.
    :param always: loaded by clients that load most tools when they are searched for, and in the small list.
    :param switch: the setting with which a tool that is not listed is listed all the same.
    :param reads: of a tool that writes: takes a call's arguments as they were sent and returns whether such a
        call changes nothing.
    :param app: address of the page that shows its answer in a chat window; only clients that show such pages
        have the tool. They give the page the structured content, and the model the text alone.
    :param closed: its schema says that there are no other parameters: a contract asks for that.
    :param title: what hosts show people in place of the name; every tool that is listed has one.
    """

    function: Callable[..., object]
    read_only: bool = True
    idempotent: bool = True
    destructive: bool = False
    lane: Literal["light", "heavy", "search"] = "light"
    listed: bool = True
    always: bool = False
    closed: bool = False
    app: str | None = None
    title: str | None = None
    switch: str | None = None
    reads: Callable[[Mapping[str, object]], bool] | None = None

    @property
    def name(self) -> str:
        """The tool's name, which is the function's."""
        return self.function.__name__

    @property
    def description(self) -> str:
        """The first paragraph of the function's docstring on one line."""
        return " ".join((inspect.getdoc(self.function) or "").split("\n\n", 1)[0].split())

    def __call__(self, app: Any, /, **arguments: Any) -> Any:
        """Check the arguments of a call and make it.

        :param app: the function's first argument.
        :raises InvalidRequestError: an argument cannot be used.
        """
        return self.function(app, **checked(self.function, arguments))

    @property
    def meanings(self) -> dict[str, str]:
        """The meaning of each parameter for people: that of the docstring, or else the text agents read."""
        annotations = inspect.signature(self.function, eval_str=True).parameters.items()
        texts = {
            name: next((text for text in get_args(one.annotation)[1:] if isinstance(text, str)), "")
            for name, one in annotations
            if get_origin(one.annotation) is Annotated
        }
        return {**texts, **parameters(self.function)}

    @property
    def example(self) -> Mapping[str, object]:
        """Arguments of a call that the documentation shows and runs; empty for tools that are not listed."""
        return _examples()[self.name].get("run", {})

    @property
    def examples(self) -> Mapping[str, object]:
        """A valid value for each listed parameter, shown when an argument does not fit."""
        known = _examples()[self.name]
        values = {**known.get("run", {}), **known.get("values", {})}
        names = list(inspect.signature(self.function).parameters)[1:]
        return {name: values[name] for name in names if name not in unlisted(self.function)}


@cache
def _examples() -> dict[str, dict[str, dict[str, object]]]:
    """Read the examples; only failures and the documentation need them."""
    examples: dict[str, dict[str, dict[str, object]]] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return examples
