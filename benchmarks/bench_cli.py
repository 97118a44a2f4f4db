"""The command lines as whole processes, compared with an interpreter that does nothing.

Fair: every figure is a process from its start to its end, in turn with the bare interpreter; the server is
called over loopback. The predecessor took 8.2 times a bare interpreter for ``c syntax``, 4.7 for its worklog.

    python -m benchmarks.bench_cli [ROUNDS]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.servers import environment
from benchmarks.times import Table, call_ms

LOAD = ["-m", "npl_mcp.cli.commands.load"]
WORKLOG = ["-m", "npl_mcp.cli.commands.worklog"]
SERVER = ["-m", "npl_mcp.cli.commands.serving"]
COMMANDS = {
    "npl-load c syntax": [*LOAD, "--quiet", "c", "syntax"],
    "npl-worklog log": [*WORKLOG, "log", "--agent", "a-1", "--action", "found", "--summary", "one"],
    "npl-worklog read": [*WORKLOG, "read", "--agent", "r-1"],
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print medians, and how many bare interpreters they are."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_cli", description=__doc__.split("\n")[0])
    parser.add_argument("rounds", type=int, nargs="?", default=20, help="processes of each figure")
    given = parser.parse_args(arguments)
    with TemporaryDirectory() as name:
        variables = environment(name, NPL_MCP_DATA_DIR=str(Path(name) / "data"))

        def run(flags: Sequence[str], via: str = "direct") -> None:
            subprocess.run(
                [sys.executable, *flags],
                env={**variables, "NPL_VIA": via},
                cwd=name,
                check=True,
                stdout=subprocess.DEVNULL,
            )

        run([*SERVER, "start", "--port", "0"])
        try:
            table = Table("command", "ms", "times a bare interpreter")
            for via in ("http", "direct"):
                for title, command in COMMANDS.items():
                    whole, bare = partial(run, command, via), partial(run, ["-c", "pass"])
                    whole()
                    pairs = [(call_ms(bare), call_ms(whole)) for _ in range(given.rounds)]
                    floor, middle = (median(times) for times in zip(*pairs, strict=True))
                    table.compared(f"{title}, {via}", floor, middle)
        finally:
            run([*SERVER, "stop"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
