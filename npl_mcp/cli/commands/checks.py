"""``npl-load test``: ask the questions of question files, and repair documents with missed questions."""

from __future__ import annotations

import logging
import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npl_index.errors import InvalidRequestError
from npl_index.library.references import QUESTION_SUFFIXES, has_suffix
from npl_mcp.cli.commands.targets import AS_JSON
from npl_mcp.cli.terminal.arguments import Commands, UsageError, option, repeated, switch
from npl_mcp.cli.terminal.display import Display, progress
from npl_mcp.config.settings import Settings
from npl_mcp.tools.contract.responses import as_dict

if TYPE_CHECKING:
    from npl_mcp.questions.repairs import Repair
    from npl_mcp.questions.testing import Testing

COMMANDS = Commands()

_ALL = "all"


@COMMANDS.add(
    "test",
    option("words", "PATH", "folder with documents, or question file", nargs="*"),
    repeated("--file", "F", "ask only these documents: file, folder or glob"),
    option("--against", "REVISION", "fail only on questions that got worse since this git revision"),
    option("--junit", "FILE", "write a JUnit report as well"),
    switch("--repair", help="propose changes of the documents for missed questions"),
    option("--fix", "N,N", "write these proposed changes, by default all", nargs="?", const=_ALL),
    switch("--draft", help="print questions made from the links among the documents"),
    switch("--from-calls", help="print questions that the log of calls suggests"),
    AS_JSON,
)
def _test(given: Namespace, display: Display) -> int:
    """Ask the questions of question files; exit with 1 if the first answer to one misses its section."""
    from npl_mcp.questions.testing import drafted, proposed, testing

    paths = [word for word in given.words if has_suffix(word, QUESTION_SUFFIXES)]
    folders = [word for word in given.words if word not in paths] or [os.curdir]
    for folder in folders:
        if not Path(folder).is_dir():
            given.parser.error(f"{folder} is neither a folder nor a question file")
    try:
        roots = tuple(Path(folder).resolve() for folder in folders)
        settings = Settings.from_env(search_cwd=True, write=True, roots=roots)
    except InvalidRequestError as error:
        raise UsageError(str(error)) from None
    logging.getLogger("npl_mcp").addHandler(logging.NullHandler())
    file = ", ".join(given.file) if given.file else None
    settings = replace(settings, warm_up=False, cloned_roots=False)
    with testing(settings, paths, file) as work, progress("asking"):
        if given.draft:
            outcomes = work.draft()
            display.text(drafted(outcomes))
            held = sum(outcome.held for outcome in outcomes)
            display.note(f"{held} of {len(outcomes)} held" if outcomes else "no document links to another")
            return 0
        if given.from_calls:
            display.text(proposed(work.from_calls()))
            return 0
        return _run_tests(given, display, work)


def _run_tests(given: Namespace, display: Display, work: Testing) -> int:
    tested = work.test(given.against)
    repairs = work.repairs() if given.repair or given.fix else []
    chosen = _chosen(given.fix, repairs, given.parser.error)
    if given.format == "json":
        found = {**tested.as_dict(), "repairs": as_dict(repairs)}
        display.data({name: value for name, value in found.items() if value is not None}, "json")
    else:
        display.text("\n".join([*tested.lines(), *_repair_lines(repairs)]) + "\n")
    if given.junit:
        display.write_file(given.junit, tested.junit())
    if chosen:
        work.write(chosen)
        display.note(f"{len(chosen)} changes are written; check them, then run the test again")
    if not tested.every or tested.code != 1 or given.repair or given.fix:
        return tested.code
    display.note("--repair proposes changes of the documents")
    return tested.code


def _chosen(numbers: str | None, repairs: Sequence[Repair], error: Any) -> list[Repair]:
    if numbers in (None, _ALL) or not repairs:
        return list(repairs) if numbers else []
    wanted = {int(word) if word.strip().isdecimal() else 0 for word in numbers.split(",")}
    if not wanted <= {*range(1, len(repairs) + 1)}:
        error(f"argument --fix: give numbers from 1 to {len(repairs)}, separated by commas")
    return [repair for number, repair in enumerate(repairs, 1) if number in wanted]


def _repair_lines(repairs: Sequence[Repair]) -> list[str]:
    lines = []
    for number, repair in enumerate(repairs, 1):
        before = repair.before.splitlines()
        new = [line for line in repair.after.splitlines() if line and line not in before]
        lines.append(f"{number}. {repair.kind} in {repair.file}")
        lines += [f"   + {line}" for line in new if line != "---"]
        lines += [f"   held: {text}" for text in repair.gained]
        lines += [f"   closer: {text}" for text in repair.closer]
    return lines
