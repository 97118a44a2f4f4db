"""Options of all commands of a server."""

from __future__ import annotations

import argparse
import os

from npl_index.errors import DocumentNotFoundError, InvalidRequestError
from npl_mcp.config.settings import SERVERS, Settings, add_flags, given_settings
from npl_mcp.config.sources import FORMER
from npl_mcp.tools.domains import domains_named


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that change settings."""
    add_flags(parser, SERVERS)
    for name in FORMER:  # clients still start servers with them
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)


def settings_of(given: argparse.Namespace, *, check_roots: bool = True) -> Settings:
    """Return the settings of the options, the environment and the files.

    :param check_roots: the roots must exist.
    :raises InvalidRequestError: a value or a file cannot be used, or a domain does not exist.
    :raises DocumentNotFoundError: a root does not exist.
    """
    settings = Settings.from_env(flags=vars(given))
    said = given_settings(flags=vars(given))
    try:
        domains_named(settings.domains)
    except InvalidRequestError as error:
        raise InvalidRequestError(f"{said['domains'].label}: {error.message}", hint=error.hint) from None
    for root in settings.roots if check_roots else ():
        if not os.path.isdir(root):  # noqa: PTH112 - no name is too long for it
            problem = f"{said['root'].label} {root} is not a folder"
            raise DocumentNotFoundError(problem, hint="give an existing folder")
    return settings
