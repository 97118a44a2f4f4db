"""Memory of 100 cached files: growth of the private pages of the process during indexing and first use.

python benchmarks/bench_memory.py [files]
"""

from __future__ import annotations

import gc
import sys
import tempfile
from pathlib import Path

from common import CONTEXTS, settings, write_folder

from npl_index.library.documents import DocumentRef
from npl_mcp.app.app import App
from tests.tools import npl_load_tailored


def resident() -> int:
    """Return the bytes of memory the process holds now (Linux)."""
    with Path("/proc/self/statm").open(encoding="ascii") as statm:
        return int(statm.read().split()[1]) * 4096


def main() -> None:
    """Print the growth and what the cache itself counts."""
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_folder(folder, files + 1)
        app = App(settings(folder))
        npl_load_tailored(app, context=CONTEXTS[0], file="page-0000.md")
        gc.collect()
        before = resident()
        for found in app.library.find(DocumentRef(file=".")):
            npl_load_tailored(app, context=CONTEXTS[0], file=found.path)
        gc.collect()
        size = sum(path.stat().st_size for path in folder.iterdir())
        print(
            f"{files} files, {size / 1e6:.2f} MB: {(resident() - before) / 1e6:.1f} MB more; "
            f"the cache counts {app.state.indices.currsize / 1e6:.1f} MB"
        )


if __name__ == "__main__":
    main()
