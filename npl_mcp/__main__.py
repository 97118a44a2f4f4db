"""``npl-mcp`` and ``python -m npl_mcp``: the server over standard input and output."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from npl_index.errors import DocumentNotFoundError, NPLError
from npl_index.tokens import ESTIMATED
from npl_mcp import __version__
from npl_mcp.settings import CACHE_MODES, LOG_LEVELS, Settings


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
        "--data-dir", type=Path, metavar="DIR", help="folder of the cache kept across restarts"
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
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server until its input ends.

    :returns: the exit code: 0, or 2 where a setting cannot be used.
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
    # Importing FastMCP takes most of a second; --help and --version need none of it.
    from npl_mcp.server import serve_stdio

    serve_stdio(settings)
    return 0


def _check_roots(roots: Sequence[Path]) -> None:
    for root in roots:
        if not root.is_dir():
            raise DocumentNotFoundError(f"--root {root} is not a folder", hint="give an existing folder")


if __name__ == "__main__":
    sys.exit(main())
