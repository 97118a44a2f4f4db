"""Options of all commands of a server."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from npl_index.choices import FORMATS, VOCABULARIES
from npl_index.errors import DocumentNotFoundError, InvalidRequestError
from npl_mcp.config.arguments import path, words
from npl_mcp.config.connection import given_variables
from npl_mcp.config.layers import Variables
from npl_mcp.config.settings import (
    CACHE_MODES,
    LOG_CALLS,
    LOG_LEVELS,
    TOKEN_BUDGET,
    Settings,
    parse_budget,
    parse_patience,
)
from npl_mcp.tools.domains import PRESETS, domains_named

_DOMAINS = f"these domains of tools, e.g. npl,worklog; or {', '.join(PRESETS)}"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that change settings."""
    parser.add_argument(
        "--root",
        action="append",
        type=path,
        metavar="DIR",
        help="serve the Markdown below this folder (repeatable; first wins)",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        default=None,
        help="list the tool that changes sections of Markdown below these folders",
    )
    parser.add_argument(
        "--cache",
        choices=CACHE_MODES,
        help="keep large folders indexed on disk (default), single files, too (sqlite), or nothing (memory)",
    )
    parser.add_argument(
        "--data-dir",
        type=path,
        metavar="DIR",
        help="folder of the database, the artifacts and the cache",
    )
    parser.add_argument(
        "--structured", action="store_true", default=None, help="add structured content and output schemas"
    )
    parser.add_argument(
        "--exact-names", action="store_true", default=None, help="list tools under their former names"
    )
    parser.add_argument("--domains", type=words, metavar="NAMES", help=f"list only {_DOMAINS}")
    parser.add_argument(
        "--small-list",
        action="store_true",
        default=None,
        help="list the tools for reading, and two that find and call the others",
    )
    parser.add_argument("--vocabulary", choices=VOCABULARIES, help="count tokens with this vocabulary")
    parser.add_argument("--format", choices=FORMATS, help="form of answers whose call asks for none")
    parser.add_argument(
        "--token-budget",
        metavar="N",
        help=f"tokens of an answer whose call names no budget, default {TOKEN_BUDGET}; 0 for no limit",
    )
    parser.add_argument(
        "--patience",
        metavar="SECONDS",
        help="answer from what is ready when a folder is being indexed for longer (by default wait)",
    )
    parser.add_argument(
        "--log-calls",
        choices=LOG_CALLS,
        help="keep a log of calls (on), with what they were for (contexts), or none (off, the default)",
    )
    _add_worklogs(parser)
    parser.add_argument("--log-level", choices=LOG_LEVELS, help="level of the log on standard error")


def _add_worklogs(parser: argparse.ArgumentParser) -> None:
    # Of an earlier version; clients still start servers with it.
    parser.add_argument("--worklog-files", help=argparse.SUPPRESS)
    parser.add_argument(
        "--project",
        type=path,
        metavar="DIR",
        help="folder whose worklogs are meant (by default the working one)",
    )


def settings_of(given: argparse.Namespace) -> Settings:
    """Return the settings of environment and files, changed by the options.

    :param given: the values of the options of :func:`add_options`.
    :raises InvalidRequestError: a variable or a file cannot be used, or a domain does not exist.
    :raises DocumentNotFoundError: a root does not exist.
    """
    variables = given_variables()
    settings = _settings_of(given, variables)
    named = variables.label("NPL_ROOTS") if "NPL_ROOTS" in variables.places else "--root"
    check_roots(settings.roots, "--root" if given.root else named)
    return settings


def unchecked_settings_of(given: argparse.Namespace) -> Settings:
    """Return the same settings, whether the roots exist or not.

    :raises InvalidRequestError: a variable or a file cannot be used, or a domain does not exist.
    """
    return _settings_of(given, given_variables())


def _settings_of(given: argparse.Namespace, variables: Variables) -> Settings:
    settings = Settings.from_env(
        variables,
        roots=tuple(given.root) if given.root else None,
        write=given.write,
        cache_mode=given.cache,
        data_dir=given.data_dir,
        structured=given.structured,
        exact_names=given.exact_names,
        domains=given.domains,
        small_list=given.small_list,
        vocabulary=given.vocabulary,
        format=given.format,
        token_budget=parse_budget("--token-budget", given.token_budget),
        patience=parse_patience("--patience", given.patience),
        log_calls=given.log_calls,
        project=given.project,
        log_level=given.log_level,
    )
    try:
        domains_named(settings.domains)
    except InvalidRequestError as error:
        said_by = variables.label("NPL_DOMAINS") if given.domains is None else "--domains"
        raise InvalidRequestError(f"{said_by}: {error.message}", hint=error.hint) from None
    return settings


def check_roots(roots: Sequence[Path], given_by: str = "--root") -> None:
    """Make sure that folders exist.

    :param given_by: what stands before one on the command line.
    :raises DocumentNotFoundError: one does not.
    """
    for root in roots:
        if not os.path.isdir(root):  # noqa: PTH112 - no name is too long for it
            raise DocumentNotFoundError(f"{given_by} {root} is not a folder", hint="give an existing folder")
