"""Starting this program again: no module is imported from the working directory.

It may be a folder that was cloned from a stranger. Python puts it first on the search path for ``-m`` and
``-c``.
"""

import os
import sys

# pathlib takes as long to import as a whole command may take.
# ruff: noqa: PTH100, PTH109, PTH117, PTH120

_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""Where this package and ``npl_index`` are; a checkout can be the working directory."""

SERVER = "from npl_mcp.__main__ import main; sys.exit(main())"
"""Code that runs ``npl-mcp``."""


def search_path() -> list[str]:
    """Return where this process looks for modules, without the working directory."""
    here = os.getcwd()
    return [place for place in sys.path if os.path.isabs(place) and (place != here or place == _PACKAGES)]


def python(code: str, *, kept: bool = False) -> list[str]:
    """Return the command that runs code in this interpreter, with the modules of this process.

    :param code: finds ``sys`` imported.
    :param kept: the command outlives this installation's search path, so it uses that of the day it runs.

    Options of the interpreter do not serve: ``-P`` is newer than Python 3.10, and ``-I`` leaves out
    ``PYTHONPATH`` and the user's own packages.
    """
    places = "filter(None, sys.path)" if kept else ascii(search_path())
    return [sys.executable, "-c", f"import sys; sys.path[:] = {places}; {code}"]
