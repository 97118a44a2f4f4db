"""Prompts and agents as prompts of the protocol, for people's menus: the bundled ones and the user's.

A prompt is an item of that kind or a file in the folder ``prompts/`` of a search root; an agent is an item.
Front matter may declare arguments::

    ---
    description: Plan a bed
    arguments:
      - name: plant
        description: What will grow there
        required: true
    ---
    Plan a bed of {plant}.

An entry may also be a name alone, and the list a mapping from names to descriptions; these arguments are
required.

The value of an argument replaces its name in braces. The only argument of a prompt without declared arguments
is ``task``, which follows the prompt's text.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from fastmcp.exceptions import FastMCPError, PromptError, ValidationError
from fastmcp.prompts import Prompt, PromptArgument
from fastmcp.server.providers.base import Provider
from fastmcp.utilities.versions import VersionSpec
from pydantic import Field
from pydantic import ValidationError as InvalidValueError
from pydantic.json_schema import SkipJsonSchema

from npl_index.deadline import limited
from npl_index.errors import InvalidRequestError, NotFoundError, NPLError, OutsideRootError
from npl_index.items.loading import text_of
from npl_index.library.references import document_name
from npl_index.library.roots import DocumentFile, resolve
from npl_index.library.walking import Walk
from npl_index.markdown.front_matter import divide, front_matter
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import CALLER
from npl_mcp.app.context import Context
from npl_mcp.app.file_view import lies_in, real_paths
from npl_mcp.app.lanes import lane
from npl_mcp.config.settings import corpus_folder
from npl_mcp.tools.contract.responses import size, too_long, within

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

DOMAIN, FOLDER = "npl", "prompts"

MAX_PROMPTS = 200
"""Maximum prompts in a list: hosts show them all in one menu."""

TASK = PromptArgument(name="task", description="Task for the prompt", required=False)

_MAX_DESCRIBED = 200
"""Maximum characters of a description: one line of a menu."""

_HEADING = re.compile(r"^#{1,6}[ \t]+(\S[^\n]*)", re.MULTILINE)
_NAMED = re.compile(r"\{([^{}\n]+)\}")


Given = Mapping[str, Any]
"""Arguments of a prompt by name."""


@contextmanager
def protocol_errors(kind: type[FastMCPError]) -> Iterator[None]:
    """Turn expected failures into errors of the protocol with the same text; the log gets no traceback.

    :param kind: the error for failures other than wrong arguments; the protocol has a code for each kind.
    """
    try:
        yield
    except (InvalidRequestError, NotFoundError, OutsideRootError) as error:
        raise ValidationError(str(CALLER.get().visible_error(error)), log_level=logging.DEBUG) from error
    except NPLError as error:
        raise kind(str(error), log_level=logging.DEBUG) from error


class CallingPrompt(Prompt):
    """A prompt with a function's result as its text; the function runs in a worker thread."""

    function: SkipJsonSchema[Callable[[Given], str]] = Field(exclude=True)

    async def render(self, arguments: dict[str, Any] | None = None) -> str:
        """Return the prompt's text."""
        with protocol_errors(PromptError):
            return await lane("light").run(self.function, arguments or {})


def _prompt(name: str, text: str, limit: int) -> CallingPrompt:
    """Return the prompt of a file's text.

    :param name: also the description of a text without one.
    :param limit: maximum bytes of its text with the values of its arguments.
    """
    fields, text = front_matter(text), divide(text)[1].lstrip("\n")
    heading = _HEADING.search(text)
    about = fields.get("description") or (heading and heading[1]) or name
    declared = _declared(fields.get("arguments"))
    return CallingPrompt(
        name=name,
        description=" ".join(str(about).split())[:_MAX_DESCRIBED],
        arguments=declared or [TASK],
        tags={DOMAIN},
        function=partial(_filled, name, text, declared, limit),
    )


def _declared(value: object) -> list[PromptArgument]:
    """Return the arguments in a field; entries that cannot be used are left out."""
    arguments: dict[str, PromptArgument] = {}
    if isinstance(value, dict):
        value = [{"name": name, "description": about, "required": True} for name, about in value.items()]
    for entry in value if isinstance(value, list) else ():
        with suppress(InvalidValueError):
            given = {"name": entry, "required": True} if isinstance(entry, str) else entry
            argument = PromptArgument.model_validate(given)
            arguments.setdefault(argument.name, argument)
    return list(arguments.values())


def _filled(name: str, text: str, declared: Sequence[PromptArgument], limit: int, given: Given) -> str:
    """Return the text of a prompt with the values of its arguments; an optional one may be empty.

    :raises NPLError: the text would be longer than the limit.
    """
    values = {argument.name: "" for argument in declared if not argument.required}
    values |= {name: str(value) for name, value in given.items()}
    if absent := [argument.name for argument in declared if argument.name not in values]:
        raise ValidationError(f"{name!r} needs {', '.join(absent)}", log_level=logging.DEBUG)
    if declared:
        # A short text may name a long value often, so its size is known before it is made.
        more = {name: size(value) - size(f"{{{name}}}") for name, value in values.items()}
        if size(text) + sum(more.get(match[1], 0) for match in _NAMED.finditer(text)) > limit:
            raise too_long(limit)
        return _NAMED.sub(lambda match: values.get(match[1], match[0]), text)
    task = values.get(TASK.name, "").strip()
    return within(limit, f"{text.rstrip()}\n\n{task}\n" if task else text)


class Prompts(Provider):
    """Finds prompts and agents on each request, since each caller has files of their own.

    :param app: the server's view.
    """

    def __init__(self, app: App) -> None:
        super().__init__()
        self._app = app

    async def _list_prompts(self) -> Sequence[Prompt]:
        return await self._in_view(_menu, ())

    async def _get_prompt(self, name: str, version: VersionSpec | None = None) -> Prompt | None:  # noqa: ARG002
        return await self._in_view(partial(_prompt_named, name=name), None)

    async def _in_view(self, look: Callable[[Context], _T], fallback: _T) -> _T:
        """Return a lookup's result; on failure log the reason, since FastMCP cannot report it."""
        try:
            timed = limited(self._app.settings.time_limit)(look)
            return await lane("light").run(lambda: timed(CALLER.get().context(self._app)))
        except NPLError as error:
            logger.info("no prompts: %s", error)
            return fallback


def prompt_files(app: Context) -> dict[str, DocumentFile]:
    """Return the files of prompts by name; the user's own prompt wins over others with its name.

    :raises DocumentTooLargeError: the prompts exceed the limits.
    """
    library = app.library
    files = dict(sorted(dict(_in_roots(app)).items()))
    for kind in ("prompt", "agent"):
        items = library.find_items(library.catalog.kind(kind), "**")
        files |= {name: item for name, item in sorted(items.items()) if name not in files}
    return files


def _in_roots(app: Context) -> Iterator[tuple[str, DocumentFile]]:
    """Yield the prompts in the search roots' folders; of equal names, the first root's comes last."""
    roots = app.library.roots
    for root in reversed([root for root in roots if not root.npl]):
        folder = resolve(root.path, FOLDER)
        if folder is not None:
            for path, file in Walk(roots).files(folder):
                yield document_name(path), file


def _menu(app: Context) -> tuple[CallingPrompt, ...]:
    """Return the prompts of a menu.

    On a server with other documents, bundled prompts are found by name only.
    """
    bundled, given = str(corpus_folder().resolve()), real_paths(app.settings.roots)
    hidden = bundled if given and not lies_in(bundled, given) else None
    shown = {name: file for name, file in prompt_files(app).items() if file.root.path != hidden}
    return tuple(islice(_readable(app, shown), MAX_PROMPTS))


def _prompt_named(app: Context, name: str) -> CallingPrompt | None:
    file = prompt_files(app).get(name)
    return None if file is None else next(_readable(app, {name: file}), None)


def _readable(app: Context, files: Mapping[str, DocumentFile]) -> Iterator[CallingPrompt]:
    clock = app.clock("the prompts")
    for name, file in files.items():
        clock.check()
        try:
            yield _prompt(name, text_of(app.library.read(file)), app.settings.body_limit)
        except (NPLError, ValueError) as error:  # a value that the protocol cannot carry is a ValueError
            logger.info("no prompt %r: %s", name, error)
