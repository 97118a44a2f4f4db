"""``npl-load test`` asks the questions of question files, ``npl-load hook`` for a prompt."""

from __future__ import annotations

import logging
import os
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from npl_index.library.references import QUESTION_SUFFIXES, has_suffix
from npl_mcp.cli.commands import hook
from npl_mcp.cli.commands.targets import AS_JSON
from npl_mcp.cli.terminal.arguments import Commands, option
from npl_mcp.cli.terminal.display import Display, progress
from npl_mcp.config.settings import Settings

COMMANDS = Commands()


@COMMANDS.add(
    "test",
    option("words", "PATH", "folder with documents, or question file", nargs="*"),
    AS_JSON,
)
def _test(given: Namespace, display: Display) -> int:
    """Ask the questions of question files; exit with 1 if the first answer to one misses its section."""
    # Ranking and its libraries take a quarter of a second to import; no other command here needs them.
    from npl_mcp.questions.testing import run_tests

    paths = [word for word in given.words if has_suffix(word, QUESTION_SUFFIXES)]
    folders = [word for word in given.words if word not in paths] or [os.curdir]
    for folder in folders:
        if not Path(folder).is_dir():
            given.parser.error(f"{folder} is neither a folder nor a question file")
    roots = tuple(Path(folder).resolve() for folder in folders)
    settings = Settings.from_env(search_cwd=True, roots=roots)
    logging.getLogger("npl_mcp").addHandler(logging.NullHandler())
    settings = replace(settings, warm_up=False, cloned_roots=False)
    with progress("asking"):
        tested = run_tests(settings, paths)
    if given.format == "json":
        display.data(tested.as_dict(), "json")
    else:
        display.text("\n".join(tested.lines()) + "\n")
    return tested.code


@COMMANDS.add("hook", option("--within", "SECONDS", "time limit", type=float, default=hook.SECONDS))
def _hook(given: Namespace, _: Display) -> int:
    """Name sections for the prompt of a client, which calls it as its hook UserPromptSubmit."""
    return hook.run(given.within)
