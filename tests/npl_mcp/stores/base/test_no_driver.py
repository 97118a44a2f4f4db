"""PostgreSQL without its driver."""

import subprocess
import sys

WITHOUT = """
import sys
from pathlib import Path
sys.modules["psycopg"] = None
from npl_mcp.stores.data_folder import Stores
from npl_mcp.stores.base.errors import DatabaseError
stores = Stores(Path("nowhere"), "postgresql://nobody@/none")
try:
    stores.database.open()
except DatabaseError as error:
    print(error)
"""


def test_a_driver_that_is_missing_is_named() -> None:
    """The error names the extra that brings it; without an address the driver is not needed."""
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert "npl-mcp[postgres]" in done.stdout
    loaded = "import sys; import npl_mcp.stores.data_folder; print('psycopg' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
