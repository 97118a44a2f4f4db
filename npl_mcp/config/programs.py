"""Commands that start this program without importing modules from the working directory.

That directory may be a foreign clone. Python puts it first on the search path for ``-m`` and ``-c``.
"""

import os
import sys

# Importing pathlib takes as long as a whole command may take.
# ruff: noqa: PTH100, PTH109, PTH117, PTH120

_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""Folder of this package and ``npl_index``; in a checkout it may be the working directory."""

SERVER = "from npl_mcp.__main__ import main; sys.exit(main())"
"""Code that runs ``npl-mcp``."""

SESSIONS = "from npl_mcp.cli.commands.mcp import serve_sessions; serve_sessions()"
"""Code that runs the server of sessions."""


def search_path() -> list[str]:
    """Return the module search path of this process without the working directory."""
    here = os.getcwd()
    return [place for place in sys.path if os.path.isabs(place) and (place != here or place == _PACKAGES)]


def python(code: str, *, kept: bool = False) -> list[str]:
    """Return the command that runs code in this interpreter, with the modules of this process.

    Options of the interpreter cannot replace it: ``-P`` is newer than Python 3.10, and ``-I`` ignores
    ``PYTHONPATH`` and the user's own packages.

    :param code: code to run after ``import sys``.
    :param kept: whether the command is stored, so that it must use the search path of its own time.
    """
    places = "filter(None, sys.path)" if kept else ascii(search_path())
    return [sys.executable, "-c", f"import sys; sys.path[:] = {places}; {code}"]
