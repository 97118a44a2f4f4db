"""``npl-load skill check``: what keeps skills from being found, loaded or chosen."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from npl_mcp.app.file_view import Files
from npl_mcp.app.skills import check, skills
from npl_mcp.cli.terminal.arguments import JSON, Commands, option
from npl_mcp.cli.terminal.display import CommandResult, counted
from npl_mcp.config.settings import Settings

COMMANDS = Commands()


@COMMANDS.add("skill check", option("words", "DIR", "folders with skills", nargs="*"), JSON)
def _check(given: Namespace, _: object) -> CommandResult:
    """Check front matter, sizes, links, names and descriptions of skills; exit with 1 on a problem."""
    roots = tuple(Path(word).resolve() for word in given.words or ["."])
    for root in roots:
        if not root.is_dir():
            given.parser.error(f"{root.name} is not a folder")
    library = Files(replace(Settings.from_env(), roots=roots)).library
    found = [{"file": file, "line": line, "problem": problem} for file, line, problem in check(library)]
    lines = [f"{one['file']}:{one['line']}: {one['problem']}" for one in found]
    count = sum(not one.is_bundled for one in skills(library))
    text = f"{count} skill{'s' * (count != 1)}, {counted(lines)}"
    return CommandResult(text, found, lines)
