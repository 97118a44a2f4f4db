"""Sections of documents: ``--select``, ``--index``, ``--filter``, ``tailored``, ``search`` and ``index``."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from npl_index.markdown.fences import BETWEEN
from npl_index.markdown.traits import FLAG_SPELLINGS, FLAGS, condition_of
from npl_mcp.cli.commands import targets
from npl_mcp.cli.terminal.arguments import Commands, option, repeated
from npl_mcp.cli.terminal.display import Display
from npl_mcp.cli.transports.connecting import ServerConnection

_TRAIT = re.compile(rf"\[\s*({'|'.join(FLAG_SPELLINGS).replace('_', '[-_]')})\s*\]", re.IGNORECASE)
_ATTRIBUTES = {"table": "has_tables", "code": "has_code", "example": "has_examples"}
_ATTRIBUTES["definition-list"] = "has_definitions"


@contextmanager
def _with_targets(given: Namespace, display: Display) -> Iterator[tuple[ServerConnection, Display]]:
    """Return a connection that sees the documents of a command, and the display."""
    with targets.reaching(given.file or (), given, display) as (file, connection):
        given.file = file
        yield connection, display


COMMANDS = Commands(_with_targets)


def run_items(given: Namespace, connection: ServerConnection, display: Display) -> int:
    """Print the sections of each item and return the exit code; a failure does not stop the others."""
    if given.index and given.selectors:
        given.parser.error("--index prints headings and --select their text: use one of them")
    if not all(text.strip() for text in given.selectors or ()):
        given.parser.error("argument --select: it is empty; write a selector, e.g. '## Purpose'")
    replies: list[tuple[str, dict[str, Any]]] = []
    code = 0
    for group in given.groups:
        for item in group.names:
            reply = _item_reply(given, connection, {"resource_type": group.kind, "item": item})
            if reply["success"]:
                replies.append((item, reply["data"]))
            else:
                code = max(code, display.failed(reply, given.parser))
    if given.format != "text":
        shown = [_tree(item, data) if given.index else data for item, data in replies]
        display.data(shown[0] if len(shown) == 1 else shown, given.format)
    elif given.index:
        display.text("\n".join(_tree_text(_tree(item, data)) for item, data in replies))
    elif len(replies) == 1:
        display.text(_ended(replies[0][1]["content"]))
    else:
        display.text(BETWEEN.join(f"# {item}:\n{_ended(data['content'])}" for item, data in replies))
    return code


def _item_reply(given: Namespace, connection: ServerConnection, where: Mapping[str, str]) -> dict[str, Any]:
    """Return the reply about one item: its headings, or the selected sections."""
    if given.index:
        asked: dict[str, Any] = {"filter": _conditions(given) or None, "token_budget": 0}
    else:
        conditions = "".join(given.filter or ())
        selectors = given.selectors or ["// *"]
        asked = {"selectors": [f"{selector} {conditions}".strip() for selector in selectors]}
    tool = "npl_section_index" if given.index else "npl_load_tailored"
    return connection.call(tool, depth=_depth_limit(given), format="json", **asked, **where)


def _conditions(given: Namespace) -> dict[str, Any]:
    conditions: dict[str, Any] = {}
    for text in given.filter or ():
        name, equals, values = text.partition("=")
        if equals and not text.startswith("["):
            if condition_of(name):
                conditions[name.strip()] = _typed(values)
            else:
                conditions.setdefault(name.strip(), []).extend(map(str.strip, values.split(",")))
            continue
        rest = _TRAIT.sub("", text).strip()
        if rest:
            known = ", ".join(f"[{name.replace('_', '-')}]" for name in sorted(FLAGS))
            given.parser.error(f"argument --filter: {rest!r}: write NAME=VALUE or some of {known}")
        spellings = (match[1].lower().replace("-", "_") for match in _TRAIT.finditer(text))
        conditions |= {FLAG_SPELLINGS[spelling]: True for spelling in spellings}
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


def _tree(item: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an index as name, version and nested headings, each with its path."""
    headings = [_heading(node, item) for node in data["sections"]]
    return {"section": item, "version": data.get("version") or "0.0.0", "headings": headings}


def _heading(node: Mapping[str, Any], above: str) -> dict[str, Any]:
    path = f"{above} > {node['name']}"
    traits = {**node, **node.get("own", {})}
    return {
        "level": node["level"],
        "name": node["name"],
        "path": path,
        "attributes": [name for name, field in _ATTRIBUTES.items() if traits[field]],
        "children": [_heading(child, path) for child in node["children"]],
    }


def _tree_text(tree: Mapping[str, Any]) -> str:
    lines = [f"{tree['section']} (v{tree['version']})", *_branches(tree["headings"], "")]
    return "\n".join(lines) + "\n"


def _branches(headings: Sequence[Mapping[str, Any]], indent: str) -> Iterator[str]:
    for heading in headings:
        attributes = "".join(f" [{name}]" for name in heading["attributes"])
        marks = "#" * heading["level"] + " " if heading["level"] else ""
        yield f"{indent}+-- {marks}{heading['name']}{attributes}"
        yield from _branches(heading["children"], f"{indent}|   ")


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
    request = {
        "file": given.file,
        "context": " ".join(given.words) or None,
        "topics": given.topics,
        "selectors": given.selectors,
        "token_budget": given.token_budget,
        "depth": _depth_limit(given),
        "filter": _conditions(given) or None,
    }
    text = given.format in (None, "text")
    data = connection.ask("npl_load_tailored", **request, format="text" if text else _form(given))
    if not text:
        _print_answer(data, given, display)
        return
    if not given.quiet:
        for line in _summary(data, given.token_budget):
            display.say(line)
    if data["content"]:
        display.text(_ended(data["content"]))


def _form(given: Namespace) -> str:
    """Return the tool's argument ``format``; the default is the form for agents."""
    return "json" if given.format in ("json", "yaml") else "markdown"


def _print_answer(data: Any, given: Namespace, display: Display) -> None:
    """Print a whole answer: as the text for agents, or as data."""
    if _form(given) == "markdown":
        display.text(_ended(data))
    else:
        display.data(data, given.format)


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
    data = connection.ask(
        "npl_section_index",
        file=given.file,
        filter=_conditions(given) or None,
        depth=_depth_limit(given),
        token_budget=given.token_budget,
        format=_form(given),
    )
    _print_answer(data, given, display)


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
    data = connection.ask(
        "search",
        query=" ".join(given.words),
        file=given.file,
        kinds=None if given.file else "document",
        filter=_conditions(given) or None,
        limit=given.limit,
        format=_form(given),
    )
    _print_answer(data if _form(given) == "markdown" else data["items"], given, display)


def _summary(data: Mapping[str, Any], budget: int | None) -> Iterator[str]:
    """Yield lines about a tailored load: its sections, missing words, and selectors to load next."""
    sections = data["sections"]
    count = f"{len(sections)} section{'s' * (len(sections) != 1)}"
    of = f" of {budget:,}" if budget else ""
    yield f"{count}, {data['total_tokens']:,}{of} tokens ({data['token_counter']}) from {data['file']}"
    for section in sections:
        place = f"{section.get('file', '')}:{section['start_line']}".lstrip(":")
        cut = ", cut" if section.get("cut") else ""
        tokens = f"{section['token_count']:,}"
        yield f"  {section['relevance_score']:.2f} {tokens:>7}  {section['selector']}  ({place}{cut})"
    if data.get("missing_files"):
        yield f"  partial: {data['missing_files']:,} files are not indexed yet"
    for problem in (*data.get("not_found", ()), *data.get("unreadable", ())):
        yield f"  not found: {problem}"
    if data.get("absent"):
        yield f"  no section has: {', '.join(data['absent'])}"
    if data.get("weak"):
        yield "  weak: no section has enough words of the question"
    if data.get("advice"):
        yield f"  {data['advice']}"
    for selector in data["request_more"]:
        yield f"  more: {selector}"
    for suggestion in data["suggestions"]:
        yield f"  see also: {suggestion['selector']}  ({suggestion['reason']})"
