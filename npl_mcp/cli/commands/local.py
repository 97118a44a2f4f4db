"""Commands in this process: ``map`` of documents, ``test`` with question files, and ``hook`` for a prompt."""

from __future__ import annotations

import logging
import os
from argparse import Namespace
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from npl_index.errors import NPLError
from npl_index.library.references import QUESTION_SUFFIXES, has_suffix
from npl_index.markdown.marked import with_map
from npl_mcp.app.waiting import result_of
from npl_mcp.cli.commands import hook
from npl_mcp.cli.commands.targets import ROOT, Target, failures, named_places
from npl_mcp.cli.terminal.arguments import JSON, Commands, option, switch
from npl_mcp.cli.terminal.display import EXIT_CODES, CommandResult, Display, progress
from npl_mcp.cli.transports.connecting import user_settings
from npl_mcp.config.settings import Settings

COMMANDS = Commands()


@COMMANDS.add(
    "map",
    option("words", "DIR", "folders and files of the map", nargs="*"),
    ROOT,
    option("--write", "FILE", "keep the map in a marked block of this file, e.g. AGENTS.md"),
    switch("--check", help="with --write: change nothing, exit with 1 if the block is old"),
)
def _map(given: Namespace, _: Display) -> CommandResult:
    """Show folders, names of documents and rare words of their headings."""
    if given.check and not given.write:
        given.parser.error("argument --check: needs --write FILE")
    without = os.path.realpath(given.write) if given.write else None
    # The application takes a quarter of a second to import; most commands need none of it.
    from npl_mcp.app.app import App
    from npl_mcp.app.document_map import document_map

    file, roots = named_places(given.words, given)
    settings = replace(user_settings(given, roots), warm_up=False)
    with failures(), closing(App(settings)) as app, progress():
        text = result_of(document_map(app, file, without))
    if not given.write:
        return CommandResult(text.rstrip("\n"))
    target = Target(given.write)
    try:
        new = with_map(target.data or b"", text)
    except (UnicodeError, NPLError) as error:
        code = EXIT_CODES["OPERATION_FAILED"]
        return CommandResult(problems=[f"{given.write}: {error}"], code=code)
    if given.check and new != target.data:
        return CommandResult(problems=[f"the map in {given.write} is old: run it without --check"])
    if new != target.data:
        target.write(new)
    return CommandResult()


@COMMANDS.add("test", option("words", "PATH", "folder with documents, or question file", nargs="*"), JSON)
def _test(given: Namespace, _: Display) -> CommandResult:
    """Ask the questions of question files; exit with 1 if the first answer to one misses its section."""
    # Ranking and its libraries, as above.
    from npl_mcp.questions.outcomes import run_tests

    paths = [word for word in given.words if has_suffix(word, QUESTION_SUFFIXES)]
    folders = [word for word in given.words if word not in paths] or [os.curdir]
    for folder in folders:
        if not Path(folder).is_dir():
            given.parser.error(f"{folder} is neither a folder nor a question file")
    roots = tuple(Path(folder).resolve() for folder in folders)
    settings = Settings.from_env(search_cwd=True, roots=roots)
    logging.getLogger("npl_mcp").addHandler(logging.NullHandler())
    with progress():
        tested = run_tests(replace(settings, warm_up=False, cloned_roots=False), paths)
    return CommandResult("\n".join(tested.lines()), tested.as_dict(), code=tested.code)


@COMMANDS.add("hook", option("--within", "SECONDS", "time limit", type=float, default=hook.SECONDS))
def _hook(given: Namespace, _: Display) -> int:
    """Name sections for the prompt of a client, which calls it as its hook UserPromptSubmit."""
    return hook.run(given.within)
