"""``npl-load edit``: changes one section of a Markdown file.

The user of a command may write whatever the shell may, so the file's folder is a root of this one call, which
is made in this process: what a server may change says who started it.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from npl_mcp.cli.commands.places import STANDARD_INPUT, located
from npl_mcp.cli.terminal.arguments import UsageError, with_flags
from npl_mcp.cli.terminal.display import Display
from npl_mcp.cli.transports.connecting import connect

_FLAGS = {"file": "FILE", "selector": "SELECTOR", "content": "--content", "expect": "--expect"}
"""What errors call parameters, as this command names them."""


def run(given: Namespace, display: Display) -> int:
    """Change a section, and say what it is now."""
    if given.via not in (None, "auto", "direct"):
        given.parser.error("argument --via: the file is changed in this process; leave it out")
    if given.file == STANDARD_INPUT:
        given.parser.error("argument FILE: standard input is no file; name one")
    places = located([given.file], given.root or (), given.parser.error)
    connection = connect("direct", display.note, places.roots or (os.getcwd(),), must_see=True)  # noqa: PTH109
    try:
        reply = connection.call(
            "npl_update_section",
            file=places.file,
            selector=given.selector,
            operation=given.operation,
            content=_content(given, display),
            expect=given.expect,
        )
    finally:
        connection.close()
    if not reply["success"]:
        flags = _FLAGS if given.content is not None else {**_FLAGS, "content": "standard input"}
        return display.failed({**reply, "error": with_flags(str(reply["error"]), flags)})
    if given.json:
        display.data(reply["data"], "json")
    else:
        display.text(_report(reply["data"]))
    return 0


def _content(given: Namespace, display: Display) -> str:
    """Return the text that is given, or else read it."""
    if given.content is not None:
        return str(given.content)
    if sys.stdin.isatty():
        display.hint("write the content; Ctrl-D ends it")
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"standard input is not UTF-8: {error.reason} at byte {error.start}") from None


def _report(data: Mapping[str, Any]) -> str:
    what = "is so already" if data.get("unchanged") else "is changed"
    lines = [
        f"{data['selector']} {what}: {data['tokens_before']:,} tokens before, {data['tokens']:,} now,"
        f" digest {data['digest']}",
        *(f"gone: {heading}" for heading in data.get("removed") or ()),
    ]
    return "".join(f"{line}\n" for line in lines)
