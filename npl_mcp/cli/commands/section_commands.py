"""Sections of documents: ``--select``, ``--index``, ``--filter``, ``tailored``, ``search`` and ``index``."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from npl_index.markdown.preambles import BETWEEN
from npl_index.selectors.filters import condition_of
from npl_mcp.cli.commands import targets
from npl_mcp.cli.terminal.arguments import Commands, option, repeated
from npl_mcp.cli.terminal.display import Display
from npl_mcp.cli.transports.connecting import ServerConnection, connect


@contextmanager
def _with_targets(given: Namespace, display: Display) -> Iterator[tuple[ServerConnection, Display]]:
    """Return a connection that sees the documents of a command, and the display."""
    given.file, roots = targets.named_places(given.file or (), given)
    with connect(given, display.note, roots) as connection:
        yield connection, display


COMMANDS = Commands(_with_targets)


def run_items(given: Namespace, connection: ServerConnection, display: Display) -> int:
    """Print the sections of each item and return the exit code; a failure does not stop the others."""
    if given.index and given.selectors:
        given.parser.error("--index prints headings and --select their text: use one of them")
    if not all(text.strip() for text in given.selectors or ()):
        given.parser.error("argument --select: it is empty; write a selector, e.g. '## Purpose'")
    form = "markdown" if given.index and given.format == "text" else "json"
    tool, asked = "npl_load_tailored", dict[str, Any](selectors=given.selectors)
    if given.index:
        tool, asked = "npl_section_index", {"filter": _conditions(given) or None, "token_budget": 0}
    asked |= {"depth": _depth_limit(given), "format": form}
    data: list[tuple[str, Any]] = []
    code = 0
    for kind, item in ((group.kind, item) for group in given.groups for item in group.names):
        reply = connection.call(tool, resource_type=kind, item=item, **asked)
        if reply["success"]:
            data.append((item, reply["data"]))
        else:
            code = max(code, display.failed(reply, given.parser))
    if given.format != "text":
        every = [part for _, part in data]
        display.data(every[0] if len(every) == 1 else every, given.format)
    else:
        texts = [(item, _ended(part if given.index else part["content"])) for item, part in data]
        several = (f"# {item}:\n{text}" for item, text in texts)
        display.text(texts[0][1] if len(texts) == 1 else BETWEEN.join(several))
    return code


def _conditions(given: Namespace) -> dict[str, Any]:
    conditions: dict[str, Any] = {}
    for text in given.filter or ():
        name, equals, values = text.partition("=")
        if not equals or text.startswith("["):
            given.parser.error(f"argument --filter: {text!r}: write NAME=VALUE, e.g. status=stable")
        if condition_of(name):
            conditions[name.strip()] = _typed(values)
        else:
            conditions.setdefault(name.strip(), []).extend(map(str.strip, values.split(",")))
    return conditions


def _typed(value: str) -> Any:
    """Return the value of a trait: ``true``, ``false`` or a number; any other text as written."""
    try:
        return json.loads(value.lower())
    except ValueError:
        return value


def _depth_limit(given: Namespace) -> int | None:
    depth: int | None = given.depth
    return None if depth == -1 else depth


def _ended(text: str) -> str:
    return text if text.endswith("\n") else f"{text}\n"


@COMMANDS.add(
    "tailored",
    option("words", "CONTEXT", "the task or question", nargs="*"),
    repeated("--topic", "T", dest="topics"),
    targets.BUDGET,
    *targets.WHERE,
    targets.SELECT,
    targets.FILTER,
    targets.DEPTH,
    *targets.OUTPUT,
    tool="npl_load_tailored",
)
def _tailored(given: Namespace, connection: ServerConnection, display: Display) -> None:
    """Load only the sections that a task needs, within a token budget."""
    targets.refuse_paths(given)
    if not any(text.strip() for text in (*given.words, *(given.topics or ()), *(given.selectors or ()))):
        given.parser.error("the request is empty: give a task, --topic or --select")
    asked = {"topics": given.topics, "selectors": given.selectors, "token_budget": given.token_budget}
    context, depth = " ".join(given.words) or None, _depth_limit(given)
    _print_answer("npl_load_tailored", given, connection, display, context=context, depth=depth, **asked)


def _print_answer(
    tool: str, given: Namespace, connection: ServerConnection, display: Display, **asked: Any
) -> None:
    """Print the whole answer of a tool about documents: as the text for agents, or as data."""
    is_text = given.format not in ("json", "yaml")
    asked |= {"file": given.file, "filter": _conditions(given) or None}
    data = connection.ask(tool, format="markdown" if is_text else "json", **asked)
    if is_text:
        display.text(data.rstrip("\n") + "\n")
    else:
        display.data(data["items"] if tool == "search" else data, given.format)


@COMMANDS.add(
    "index",
    option("file", "FILE", "the same as --file", nargs="*", action="extend"),
    targets.BUDGET,
    *targets.WHERE,
    targets.FILTER,
    targets.DEPTH,
    *targets.OUTPUT,
    tool="npl_section_index",
)
def _index(given: Namespace, connection: ServerConnection, display: Display) -> None:
    """List the sections of files with their sizes."""
    asked = {"depth": _depth_limit(given), "token_budget": given.token_budget}
    _print_answer("npl_section_index", given, connection, display, **asked)


@COMMANDS.add(
    "search",
    option("words", "WORD", "the query", nargs="+"),
    *targets.WHERE,
    targets.FILTER,
    option("--limit", "N", type=int),
    *targets.OUTPUT,
    tool="search",
)
def _search(given: Namespace, connection: ServerConnection, display: Display) -> None:
    """List the sections that contain words, one line a section."""
    targets.refuse_paths(given)
    if not any(word.strip() for word in given.words):
        given.parser.error("the query is empty")
    asked = {"query": " ".join(given.words), "limit": given.limit}
    kinds = None if given.file else "document"
    _print_answer("search", given, connection, display, kinds=kinds, **asked)
