"""``npl-mcp`` and ``python -m npl_mcp``: the server over standard input and output, and care of its data."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from npl_index.errors import DocumentNotFoundError, NPLError
from npl_index.tokens import ESTIMATED
from npl_mcp import __version__
from npl_mcp.maintenance import back_up, check
from npl_mcp.settings import CACHE_MODES, LOG_LEVELS, Settings
from npl_mcp.stores import Stores


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    result = argparse.ArgumentParser(
        prog="npl-mcp",
        description="Serves Markdown prompts, section by section, to MCP clients over standard streams.",
        epilog="Each option can be set in the environment as well; see README.md.",
    )
    result.add_argument(
        "--root",
        action="append",
        type=Path,
        metavar="DIR",
        help="serve the Markdown below this folder (repeatable; first wins)",
    )
    result.add_argument("--cache", choices=CACHE_MODES, help="keep parsed files in memory or across restarts")
    result.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="folder of the database, the artifacts and the kept cache",
    )
    result.add_argument(
        "--structured", action="store_true", default=None, help="add structured content and output schemas"
    )
    result.add_argument(
        "--exact-names", action="store_true", default=None, help="list tools under their former names"
    )
    result.add_argument("--vocabulary", choices=ESTIMATED, help="count tokens with this vocabulary")
    result.add_argument("--log-level", choices=LOG_LEVELS, help="of the log on standard error")
    result.add_argument("--version", action="version", version=f"npl-mcp {__version__}")
    commands = result.add_subparsers(dest="command", metavar="COMMAND", help="without one the server runs")
    backup = commands.add_parser("backup", help="copy database and artifacts while servers run")
    backup.add_argument("folder", type=Path, help="a new folder; the copy can be used with --data-dir")
    commands.add_parser("check", help="check every row, every reference and every file")
    worklog = commands.add_parser("worklog", help="take over or write out .npl/sessions of this folder")
    steps = worklog.add_subparsers(dest="step", metavar="STEP", required=True)
    steps.add_parser("import", help="take over the worklogs of .npl/sessions that are not known yet")
    export = steps.add_parser("export", help="write a session's worklog anew")
    export.add_argument("session", nargs="?", help="its id; by default the current session")
    export.add_argument("folder", nargs="?", type=Path, help="where to; by default .npl/sessions/ID")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server until its input ends, or a command.

    :returns: the exit code: 0; 1 where a check found something; 2 where something cannot be used.
    """
    given = parser().parse_args(arguments)
    try:
        settings = Settings.from_env(
            roots=tuple(given.root) if given.root else None,
            cache_mode=given.cache,
            data_dir=given.data_dir,
            structured=given.structured,
            exact_names=given.exact_names,
            vocabulary=given.vocabulary,
            log_level=given.log_level,
        )
        _check_roots(settings.roots)
    except NPLError as error:
        sys.stderr.write(f"npl-mcp: {error}\n")
        return 2
    logging.basicConfig(
        stream=sys.stderr,
        level=settings.log_level,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    if given.command is not None:
        return _run(given, settings)
    # Importing FastMCP takes most of a second; --help and the commands need none of it.
    from npl_mcp.server import serve_stdio

    serve_stdio(settings)
    return 0


def _run(given: argparse.Namespace, settings: Settings) -> int:
    stores = Stores(settings.data_folder, settings.max_artifact_bytes)
    try:
        report, text = _command(given, stores, str(settings.cwd.resolve()))
    except NPLError as error:
        sys.stderr.write(f"npl-mcp: {error}\n")
        return 2
    finally:
        stores.close()
    for problem in report:
        sys.stderr.write(f"npl-mcp: {problem}\n")
    sys.stdout.write(f"{text}\n")
    return 1 if report else 0


def _command(given: argparse.Namespace, stores: Stores, project: str) -> tuple[Sequence[str], str]:
    """Do what a command says; give what is wrong, and what was done."""
    if given.command == "backup":
        report = back_up(stores, given.folder)
        return report.problems, f"database and {report.revisions} revisions copied to {given.folder}"
    if given.command == "check":
        report = check(stores)
        found = f"{len(report.problems)} problems" if report.problems else "no problem"
        return report.problems, f"database and {report.revisions} revisions checked: {found}"
    if given.step == "import":
        done = stores.worklog.import_folder(project)
        skipped = f"; {done.skipped_lines} lines are no entries" if done.skipped_lines else ""
        return (), f"{done.sessions} sessions with {done.entries} entries taken over{skipped}"
    return (), f"written to {stores.worklog.export(project, given.session, given.folder)}"


def _check_roots(roots: Sequence[Path]) -> None:
    for root in roots:
        if not root.is_dir():
            raise DocumentNotFoundError(f"--root {root} is not a folder", hint="give an existing folder")


if __name__ == "__main__":
    sys.exit(main())
