"""The start of ``npl-load``: the hook of each prompt imports nothing of the other commands."""

import sys

from npl_mcp.cli.commands import hook


def main() -> int:
    """Run ``npl-load`` with the command line of the process, and return the exit code."""
    if sys.argv[1:] == ["hook"]:
        return hook.run()
    from npl_mcp.cli.commands import load

    return load.main()
