"""Prompts and agents as prompts of the protocol, for people's menus: the bundled ones and the user's.

A prompt is an item of that kind or a file in the folder ``prompts/`` of a search root; an agent is an item.
Front matter may declare arguments::

    ---
    description: Plan a bed
    arguments:
      plant: What will grow there
    ---
    Plan a bed of {plant}.

The value of an argument replaces its name in braces. The only argument of a prompt without declared arguments
is ``task``, which follows the prompt's text.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from fastmcp import FastMCP
from fastmcp.exceptions import ValidationError
from fastmcp.prompts import Prompt, PromptArgument
from fastmcp.server.providers.base import Provider
from fastmcp.utilities.versions import VersionSpec
from pydantic import PrivateAttr

from npl_index.errors import NPLError
from npl_index.items.loading import text_of
from npl_index.library.references import MARKDOWN_SUFFIXES, document_name
from npl_index.library.roots import Found, resolve
from npl_index.markdown.front_matter import divide, front_matter
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import seen
from npl_mcp.app.file_view import lies_in, real_paths
from npl_mcp.app.lanes import lane
from npl_mcp.config.settings import corpus_folder

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

DOMAIN, FOLDER = "npl", "prompts"

MOST = 200
"""Maximum prompts in a list: hosts show them all in one menu."""

TASK = PromptArgument(name="task", description="What it is about", required=False)

_MOST_DESCRIBED = 200
"""Maximum characters of a description: one line of a menu."""

_HEADING = re.compile(r"^#{1,6}[ \t]+(\S[^\n]*)", re.MULTILINE)


_NAMED = re.compile(r"\{([^{}\n]+)\}")


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt on disk.

    :param description: one line about it.
    :param arguments: the descriptions of its declared arguments, by name.
    :param text: the text without its front matter.
    """

    description: str
    arguments: Mapping[str, str]
    text: str

    @classmethod
    def of(cls, name: str, text: str) -> Template:
        """Parse a file's text.

        :param name: the description of a text without one.
        """
        fields, text = front_matter(text), divide(text)[1]
        heading = _HEADING.search(text)
        about = fields.get("description") or (heading and heading[1]) or name
        asked = fields.get("arguments")
        if isinstance(asked, str):
            asked = asked.replace(",", " ").split()
        if isinstance(asked, list):
            asked = dict.fromkeys(asked, "")
        arguments = asked if isinstance(asked, dict) else {}
        return cls(
            " ".join(str(about).split())[:_MOST_DESCRIBED],
            {str(name): str(what) for name, what in arguments.items()},
            text.lstrip("\n"),
        )

    def filled(self, given: Mapping[str, str]) -> str:
        """Return the text with the values of its arguments."""
        text = self.text
        if self.arguments:
            return _NAMED.sub(lambda found: given.get(found[1], found[0]), text)
        task = given.get(TASK.name, "").strip()
        return f"{text.rstrip()}\n\n{task}\n" if task else text


def add_prompts(server: FastMCP[Any], app: App) -> None:
    """Add the prompts and agents that callers see to a server.

    :param app: the server's view, which finds and reads them on request.
    """
    server.add_provider(Prompts(app))


class Prompts(Provider):
    """Finds prompts and agents on each request, since each caller has files of their own.

    :param app: the server's view.
    """

    def __init__(self, app: App) -> None:
        super().__init__()
        self._app = app

    async def _list_prompts(self) -> Sequence[Prompt]:
        return await self._looked(_every, ())

    async def _get_prompt(self, name: str, version: VersionSpec | None = None) -> Prompt | None:  # noqa: ARG002
        return await self._looked(partial(_one, name=name), None)

    async def _looked(self, look: Callable[[App], _T], nothing: _T) -> _T:
        """Return a lookup's result; on failure log the reason, since FastMCP cannot report it."""
        try:
            return await lane("light").run(lambda: look(seen(self._app)))
        except NPLError as error:
            logger.info("no prompts: %s", error)
            return nothing


class FilePrompt(Prompt):
    """A prompt from a file."""

    _template: Template = PrivateAttr()

    @classmethod
    def of(cls, name: str, template: Template) -> FilePrompt:
        """Create the prompt for clients."""
        asked = [
            PromptArgument(name=one, description=what or None, required=True)
            for one, what in template.arguments.items()
        ]
        prompt = cls(name=name, description=template.description, arguments=asked or [TASK], tags={DOMAIN})
        prompt._template = template
        return prompt

    async def render(self, arguments: dict[str, Any] | None = None) -> str:
        """Return the prompt's text with the given values."""
        given = {name: str(value) for name, value in (arguments or {}).items()}
        if absent := [name for name in self._template.arguments if name not in given]:
            raise ValidationError(f"{self.name!r} needs {', '.join(absent)}", log_level=logging.DEBUG)
        return await lane("light").run(self._template.filled, given)


def found_prompts(app: App) -> dict[str, Found]:
    """Return the files of prompts by name; the user's own prompt wins over others with its name.

    :raises DocumentTooLargeError: the prompts exceed the limits.
    """
    library = app.library
    own = dict(_in_roots(app))
    found = {name: own[name] for name in sorted(own)}
    for kind in ("prompt", "agent"):
        items = library.find_items(library.catalog.kind(kind), "**")
        for name in sorted(items):
            found.setdefault(name, items[name])
    return found


def _in_roots(app: App) -> Iterator[tuple[str, Found]]:
    """Yield the prompts in the search roots' folders; of equal names, the first root's comes last."""
    roots = app.library.roots
    for root in reversed([root for root in roots if not root.npl]):
        folder = resolve(root.path, FOLDER)
        if folder is not None:
            for path, found in roots.walk(folder, None, MARKDOWN_SUFFIXES):
                yield document_name(path), found


def _every(app: App) -> tuple[FilePrompt, ...]:
    """Return the prompts of a menu.

    On a server with other documents, bundled prompts are found by name only.
    """
    bundled, given = str(corpus_folder().resolve()), real_paths(app.settings.roots)
    hidden = bundled if given and not lies_in(bundled, given) else None
    shown = {name: one for name, one in found_prompts(app).items() if one.root.path != hidden}
    return tuple(islice(_readable(app, shown), MOST))


def _one(app: App, name: str) -> FilePrompt | None:
    file = found_prompts(app).get(name)
    return None if file is None else next(_readable(app, {name: file}), None)


def _readable(app: App, found: Mapping[str, Found]) -> Iterator[FilePrompt]:
    for name, file in found.items():
        try:
            text = text_of(app.library.read(file))
        except NPLError as error:
            logger.info("no prompt %r: %s", name, error)
        else:
            yield FilePrompt.of(name, Template.of(name, text))
