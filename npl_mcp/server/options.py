"""Options of all commands of a server."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from npl_index.choices import FORMATS, VOCABULARIES
from npl_index.errors import DocumentNotFoundError
from npl_mcp.config.settings import CACHE_MODES, LOG_LEVELS, Settings, parse_patience, parse_words
from npl_mcp.tools.domains import PRESETS, domains_named

_DOMAINS = f"these domains of tools, e.g. npl,worklog; or {', '.join(PRESETS)}"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that change settings."""
    parser.add_argument(
        "--root",
        action="append",
        type=Path,
        metavar="DIR",
        help="serve the Markdown below this folder (repeatable; first wins)",
    )
    parser.add_argument(
        "--cache",
        choices=CACHE_MODES,
        help="keep large folders indexed on disk (default), single files, too (sqlite), or nothing (memory)",
    )
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="folder of the database, the artifacts and the cache",
    )
    parser.add_argument(
        "--structured", action="store_true", default=None, help="add structured content and output schemas"
    )
    parser.add_argument(
        "--exact-names", action="store_true", default=None, help="list tools under their former names"
    )
    parser.add_argument("--domains", type=parse_words, metavar="NAMES", help=f"list only {_DOMAINS}")
    parser.add_argument(
        "--small-list",
        action="store_true",
        default=None,
        help="list two tools, and two that find and call the others",
    )
    parser.add_argument("--vocabulary", choices=VOCABULARIES, help="count tokens with this vocabulary")
    parser.add_argument("--format", choices=FORMATS, help="form of answers whose call asks for none")
    parser.add_argument(
        "--patience",
        metavar="SECONDS",
        help="answer from what is ready when a folder is being indexed for longer (by default wait)",
    )
    parser.add_argument("--log-level", choices=LOG_LEVELS, help="level of the log on standard error")


def settings_of(given: argparse.Namespace) -> Settings:
    """Return the settings of the environment, changed by the options.

    :param given: the values of the options of :func:`add_options`.
    :raises InvalidRequestError: a variable cannot be used, or a domain does not exist.
    :raises DocumentNotFoundError: a root does not exist.
    """
    settings = Settings.from_env(
        roots=tuple(given.root) if given.root else None,
        cache_mode=given.cache,
        data_dir=given.data_dir,
        structured=given.structured,
        exact_names=given.exact_names,
        domains=given.domains,
        small_list=given.small_list,
        vocabulary=given.vocabulary,
        format=given.format,
        patience=parse_patience("--patience", given.patience),
        log_level=given.log_level,
    )
    check_roots(settings.roots)
    domains_named(settings.domains)
    return settings


def check_roots(roots: Sequence[Path], given_by: str = "--root") -> None:
    """Make sure that folders exist.

    :param given_by: what stands before one on the command line.
    :raises DocumentNotFoundError: one does not.
    """
    for root in roots:
        if not root.is_dir():
            raise DocumentNotFoundError(f"{given_by} {root} is not a folder", hint="give an existing folder")
