"""``npl-mcp`` and ``python -m npl_mcp``: a pipe to the server of all sessions, or the whole program."""

import sys

from npl_mcp.config.programs import search_path

if __name__ == "__main__":
    # "python -m" puts the working directory first: all further imports, even __future__, would come from it.
    sys.path[:] = search_path()

from collections.abc import Sequence

from npl_mcp import pipe


def main(words: Sequence[str] | None = None) -> int:
    """Run the program and return the exit code.

    :param words: command line without the program's name; by default that of the process.
    """
    words = sys.argv[1:] if words is None else words
    if (code := pipe.run(words)) is not None:
        return code
    # A pipe imports the standard library alone.
    from npl_mcp.cli.commands.mcp import main as run

    return run(words)


if __name__ == "__main__":
    sys.exit(main())
