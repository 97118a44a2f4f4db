"""``npl-mcp`` and ``python -m npl_mcp``: the server over standard streams, and commands for its data."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from npl_index.errors import NPLError
from npl_mcp import __version__
from npl_mcp.cli.commands.library import add_library, run_library
from npl_mcp.cli.commands.token import add_token_command, run_token_command
from npl_mcp.cli.terminal.progress import Progress
from npl_mcp.config.settings import Settings
from npl_mcp.core.building import SMALL
from npl_mcp.core.kept_sets import Kept, index_ahead, kept_sets
from npl_mcp.core.maintenance import back_up, check
from npl_mcp.core.segment_store import SegmentStore
from npl_mcp.projects.directive import scaffold
from npl_mcp.server.logs import set_up_log
from npl_mcp.server.options import add_options, check_roots, settings_of
from npl_mcp.server.startup import lasting
from npl_mcp.stores.copying import copy_stores
from npl_mcp.stores.data_folder import Stores


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    result = argparse.ArgumentParser(
        prog="npl-mcp",
        description="Serves Markdown prompts, section by section, to MCP clients over standard streams.",
        epilog="Each option can be set in the environment as well; see README.md.",
    )
    add_options(result)
    result.add_argument("--version", action="version", version=f"npl-mcp {__version__}")
    commands = result.add_subparsers(dest="command", metavar="COMMAND", help="without one the server runs")
    backup = commands.add_parser("backup", help="copy the database and the artifacts, while servers may run")
    backup.add_argument("folder", type=Path, help="a new folder; use it with --data-dir")
    commands.add_parser("check", help="check every row, every reference and every file")
    commands.add_parser("migrate", help="bring the database to this version; servers do so when they open it")
    copy = commands.add_parser("copy", help="copy everything to another database, and compare row by row")
    for name in ("source", "target"):
        copy.add_argument(name, help=f"the {name}: a data folder, or postgresql://user@host/database")
    index = commands.add_parser("index", help="index folders ahead; servers with these roots need not")
    index.add_argument("folders", nargs="*", type=Path, metavar="FOLDER", help="by default the roots")
    cache = commands.add_parser("cache", help="show which folders are kept indexed")
    steps = cache.add_subparsers(dest="step", metavar="STEP", help="without one they are shown")
    steps.add_parser("check", help="check that they can be used")
    steps.add_parser("clear", help="remove them; servers index again what they are asked for")
    add_token_command(commands)
    worklog = commands.add_parser("worklog", help="import or export .npl/sessions of this folder")
    steps = worklog.add_subparsers(dest="step", metavar="STEP", required=True)
    steps.add_parser("import", help="import the worklogs of .npl/sessions that are not known yet")
    export = steps.add_parser("export", help="write the files of a session's worklog again")
    export.add_argument("session", nargs="?", help="its id; by default the current session")
    export.add_argument("folder", nargs="?", type=Path, help="target; by default .npl/sessions/ID")
    add_library(commands)
    directive = commands.add_parser("directive", help="set up directive/ with templates")
    steps = directive.add_subparsers(dest="step", metavar="STEP", required=True)
    init = steps.add_parser("init", help="create what is missing in directive/; nothing is overwritten")
    init.add_argument("folder", nargs="?", type=Path, default=Path(), help="by default the working directory")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server until its input ends, or a command.

    :returns: the exit code: 0; 1 if a check found a problem; 2 if something cannot be used; 130 if it was
        interrupted.
    """
    given = parser().parse_args(arguments)
    try:
        settings = settings_of(given)
    except NPLError as error:
        sys.stderr.write(f"npl-mcp: {error}\n")
        return 2
    set_up_log(settings.log_level)
    if given.command is not None:
        return _run(given, settings)
    with lasting():
        # Importing FastMCP takes most of a second; --help and the commands need none of it.
        from npl_mcp.server.server import serve_stdio

    serve_stdio(settings)
    return 0


def _run(given: argparse.Namespace, settings: Settings) -> int:
    stores = Stores(settings.data_folder, settings.max_artifact_bytes, settings.database_url)
    try:
        if given.command == "index":
            report, text = _index(given.folders, settings)
        elif given.command == "cache":
            report, text = _cache(given.step, settings)
        elif given.command == "library":
            report, text = run_library(given, stores.library, settings.limits)
        else:
            report, text = _command(given, stores, settings)
    except NPLError as error:
        sys.stderr.write(f"npl-mcp: {error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    finally:
        stores.close()
    for problem in report:
        sys.stderr.write(f"npl-mcp: {problem}\n")
    sys.stdout.write(f"{text}\n")
    return 1 if report else 0


def _command(given: argparse.Namespace, stores: Stores, settings: Settings) -> tuple[Sequence[str], str]:
    """Run a command and return the problems it found, and a line that says what was done."""
    project = str(settings.cwd.resolve())
    if given.command == "backup":
        report = back_up(stores, given.folder)
        return report.problems, f"database and {report.revisions} revisions copied to {given.folder}"
    if given.command == "check":
        report = check(stores)
        found = f"{len(report.problems)} problems" if report.problems else "no problem"
        return report.problems, f"database and {report.revisions} revisions checked: {found}"
    if given.command == "token":
        return (), run_token_command(given, stores.access)
    if given.command == "migrate":
        before, after = stores.database.migrate()
        was = "is" if before == after else f"was {before or 'empty'}, now is"
        return (), f"the schema {was} {after}"
    if given.command == "copy":
        return _copy(given.source, given.target, settings)
    if given.command == "directive":
        return (), _directive(given.folder)
    if given.step == "import":
        done = stores.worklog.import_folder(project)
        skipped = f"; {done.skipped_lines} lines are no entries" if done.skipped_lines else ""
        return (), f"{done.sessions} sessions with {done.entries} entries taken over{skipped}"
    return (), f"written to {stores.worklog.export(project, given.session, given.folder)}"


def _copy(source: str, target: str, settings: Settings) -> tuple[Sequence[str], str]:
    ends = [_stores(place, settings) for place in (source, target)]
    try:
        rows, revisions = copy_stores(*ends)
    finally:
        for one in ends:
            one.close()
    return (), f"{rows:,} rows and {revisions:,} revisions copied and compared"


def _stores(place: str, settings: Settings) -> Stores:
    if place.startswith(("postgresql://", "postgres://")):
        return Stores(settings.data_folder, settings.max_artifact_bytes, place)
    return Stores(Path(place), settings.max_artifact_bytes)


def _index(folders: Sequence[Path], settings: Settings) -> tuple[Sequence[str], str]:
    check_roots(folders, "index")
    settings = replace(settings, roots=tuple(folders) or settings.roots)
    with Progress("indexing"):
        done = index_ahead(settings)
    small = "not kept" if done.files >= SMALL else "too few files to be kept"
    kept = f"{_size(done.size)} kept in {settings.data_folder}" if done.size else small
    before = f", {done.files - done.built:,} were" if done.built < done.files else ""
    found = f"{done.files:,} files with {done.sections:,} sections"
    return done.unreadable, f"{found}: {done.built:,} indexed{before}, {done.seconds:.1f} s; {kept}"


def _cache(step: str | None, settings: Settings) -> tuple[Sequence[str], str]:
    store = SegmentStore(settings.data_folder, settings.index_bytes)
    try:
        sets = list(kept_sets(store))
        total = f"{len(sets)} sets, {_size(sum(one.row.size for one in sets))} in {store.folder}"
        if step == "clear":
            store.clear()
            return (), f"removed: {total}"
        problems = [f"{one.name}: {problem}" for one in sets for problem in one.problems]
        if step == "check":
            problems += store.problems()
            found = f"{len(problems)} problems" if problems else "no problem"
            return problems, f"checked: {total}: {found}"
        return problems, "\n".join([*map(_line, sets), total])
    finally:
        store.close()


def _line(one: Kept) -> str:
    used = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.row.used_at / 1e9))
    size = _size(one.row.size)
    return f"{one.files:>9,} files {one.sections:>11,} sections {size:>9}  used {used}  {one.name}"


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _directive(folder: Path) -> str:
    done = scaffold(folder)
    lines = [*(f"written: {path}" for path in done.made), *(f"kept:    {path}" for path in done.kept)]
    return "\n".join([*lines, f"{len(done.made)} files written, {len(done.kept)} were there"])


if __name__ == "__main__":
    sys.exit(main())
