"""Options of all commands of a server."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from npl_index.choices import FORMATS, VOCABULARIES
from npl_index.errors import DocumentNotFoundError, InvalidRequestError
from npl_mcp.config.arguments import path, words
from npl_mcp.config.connection import given_variables
from npl_mcp.config.keys import KEYS
from npl_mcp.config.layers import Variables
from npl_mcp.config.settings import (
    CACHE_MODES,
    LOG_CALLS,
    LOG_LEVELS,
    TOKEN_BUDGET,
    Settings,
)
from npl_mcp.tools.domains import PRESETS, domains_named

SWITCH = {"action": "store_true", "default": None}


_FLAGS: dict[str, dict[str, Any]] = {
    "root": {
        "action": "append",
        "type": path,
        "metavar": "DIR",
        "help": "serve the Markdown below this folder (repeatable; first wins)",
    },
    "write": {**SWITCH, "help": "list the tool that changes sections of Markdown below these folders"},
    "cache": {
        "choices": CACHE_MODES,
        "help": "keep large folders on disk (default), also single files (sqlite), or nothing (memory)",
    },
    "data-dir": {
        "type": path,
        "metavar": "DIR",
        "help": "folder of the database, the artifacts and the cache",
    },
    "structured": {**SWITCH, "help": "add structured content and output schemas"},
    "exact-names": {**SWITCH, "help": "list tools under their former names"},
    "domains": {
        "type": words,
        "metavar": "NAMES",
        "help": f"list only these domains of tools, e.g. npl,worklog; or {', '.join(PRESETS)}",
    },
    "small-list": {**SWITCH, "help": "list the tools for reading, and two that find and call the others"},
    "vocabulary": {"choices": VOCABULARIES, "help": "count tokens with this vocabulary"},
    "format": {"choices": FORMATS, "help": "form of answers whose call asks for none"},
    "token-budget": {
        "metavar": "N",
        "help": f"tokens of an answer whose call names no budget, default {TOKEN_BUDGET}; 0 for no limit",
    },
    "patience": {
        "metavar": "SECONDS",
        "help": "answer from what is ready when a folder is being indexed for longer (by default wait)",
    },
    "log-calls": {
        "choices": LOG_CALLS,
        "help": "keep a log of calls (on), with what they were for (contexts), or none (off, the default)",
    },
    "worklog-files": {
        "help": argparse.SUPPRESS
    },  # of an earlier version; clients still start servers with it
    "project": {
        "type": path,
        "metavar": "DIR",
        "help": "folder whose worklogs are meant (by default the working one)",
    },
    "log-level": {"choices": LOG_LEVELS, "help": "level of the log on standard error"},
}
"""The options of all commands, by the names of :data:`~npl_mcp.config.keys.KEYS`."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that change settings."""
    for name, how in _FLAGS.items():
        parser.add_argument(f"--{name}", **how)


def settings_of(given: argparse.Namespace) -> Settings:
    """Return the settings of environment and files, changed by the options.

    :param given: the values of the options, by the names of :data:`~npl_mcp.config.keys.KEYS`.
    :raises InvalidRequestError: a variable or a file cannot be used, or a domain does not exist.
    :raises DocumentNotFoundError: a root does not exist.
    """
    variables = _said(given)
    settings = _settings_of(given, variables)
    named = variables.label("NPL_ROOTS") if "NPL_ROOTS" in variables.places else "--root"
    check_roots(settings.roots, "--root" if given.root else named)
    return settings


def unchecked_settings_of(given: argparse.Namespace) -> Settings:
    """Return the same settings, whether the roots exist or not.

    :raises InvalidRequestError: a variable or a file cannot be used, or a domain does not exist.
    """
    return _settings_of(given, _said(given))


def _said(given: argparse.Namespace) -> Variables:
    """Return what variables and files say, and the options in their place."""
    variables = given_variables()
    said, places = {}, dict(variables.places)
    for name, key in KEYS.items():
        value = getattr(given, name.replace("-", "_"), None)
        if value is not None and name != "root":  # a variable cannot hold every path
            parts = value if isinstance(value, list | tuple) else [int(value) if value is True else value]
            said[key.variable] = ",".join(map(str, parts))
            places[key.variable] = (f"--{name}",)
    return Variables(variables | said, places, variables.cloned - said.keys())


def _settings_of(given: argparse.Namespace, variables: Variables) -> Settings:
    settings = Settings.from_env(variables, roots=tuple(given.root) if given.root else None)
    try:
        domains_named(settings.domains)
    except InvalidRequestError as error:
        raise InvalidRequestError(
            f"{variables.label('NPL_DOMAINS')}: {error.message}", hint=error.hint
        ) from None
    return settings


def check_roots(roots: Sequence[Path], given_by: str = "--root") -> None:
    """Make sure that folders exist.

    :param given_by: what stands before one on the command line.
    :raises DocumentNotFoundError: one does not.
    """
    for root in roots:
        if not os.path.isdir(root):  # noqa: PTH112 - no name is too long for it
            raise DocumentNotFoundError(f"{given_by} {root} is not a folder", hint="give an existing folder")
