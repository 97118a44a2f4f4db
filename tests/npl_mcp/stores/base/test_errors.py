"""Errors of the stores."""

import subprocess
import sys

LOADED = """
import sys
import npl_mcp.stores.base.errors
print(*sorted(name for name in sys.modules if name.startswith("npl_mcp.stores.")))
"""


def test_errors_can_be_imported_without_the_stores() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["npl_mcp.stores.base", "npl_mcp.stores.base.errors"]
