"""Options of all commands of the server."""

from __future__ import annotations

import argparse
import os

from npl_index.errors import DocumentNotFoundError, InvalidRequestError
from npl_mcp.config.settings import SERVERS, Settings, add_flags, given_settings
from npl_mcp.config.sources import FORMER
from npl_mcp.tools.domains import domains_named


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the flags of settings to a parser."""
    add_flags(parser, SERVERS)
    for name in FORMER:  # clients still start servers with these flags
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)


def settings_of(given: argparse.Namespace, *, check_roots: bool = True) -> Settings:
    """Return the settings of flags, environment and files.

    :param check_roots: whether the roots must exist.
    :raises InvalidRequestError: a value or a file is invalid, or a domain does not exist.
    :raises DocumentNotFoundError: a root does not exist.
    """
    settings = Settings.from_env(flags=vars(given))
    sources = given_settings(flags=vars(given))
    try:
        domains_named(settings.domains)
    except InvalidRequestError as error:
        raise InvalidRequestError(f"{sources['domains'].label}: {error.message}", hint=error.hint) from None
    for root in settings.roots if check_roots else ():
        if not os.path.isdir(root):  # noqa: PTH112 - Path.is_dir raises for too long names
            problem = f"{sources['root'].label} {root} is not a folder"
            raise DocumentNotFoundError(problem, hint="give an existing folder")
    return settings
