"""The command lines as whole processes, compared with an interpreter that does nothing.

Fair: every figure is a process from its start to its end, in turn with the bare interpreter; the server is
called over loopback. The predecessor took 8.2 times a bare interpreter for ``c syntax``, 4.7 for its worklog.

    python benchmarks/bench_cli.py [rounds]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

LOAD = ["-m", "npl_mcp.cli.commands.load"]
WORKLOG = ["-m", "npl_mcp.cli.commands.worklog"]
COMMANDS = {
    "npl-load c syntax": [*LOAD, "--quiet", "c", "syntax"],
    "npl-worklog log": [*WORKLOG, "log", "--agent", "a-1", "--action", "found", "--summary", "one"],
    "npl-worklog read": [*WORKLOG, "read", "--agent", "r-1"],
}


def spent(arguments: list[str], environment: dict[str, str], folder: Path) -> float:
    """Run one process and return its wall time in milliseconds."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=folder, check=True, stdout=subprocess.DEVNULL
    )
    return 1000 * (time.perf_counter() - start)


def main() -> None:
    """Print medians, and how many bare interpreters they are."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {**os.environ, "NPL_MCP_DATA_DIR": str(folder / "data"), "HOME": name}
        server = [sys.executable, "-m", "npl_mcp.cli.commands.serving"]
        subprocess.run([*server, "start", "--port", "0"], env=environment, cwd=folder, check=True)
        try:
            for via in ("http", "direct"):
                for title, command in COMMANDS.items():
                    chosen = {**environment, "NPL_VIA": via}
                    spent(command, chosen, folder)
                    pairs = [
                        (spent(["-c", "pass"], chosen, folder), spent(command, chosen, folder))
                        for _ in range(rounds)
                    ]
                    bare, whole = (median(times) for times in zip(*pairs, strict=True))
                    print(f"{title}, {via}: {whole:.0f} ms, {whole / bare:.1f} times a bare {bare:.1f} ms")
        finally:
            subprocess.run([*server, "stop"], env=environment, cwd=folder, check=True)


if __name__ == "__main__":
    main()
