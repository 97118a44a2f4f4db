"""PostgreSQL without its driver."""

import os
import subprocess
import sys

import pytest

WITHOUT = """
import sys
from pathlib import Path
if sys.argv[1:] == ["missing"]:
    sys.modules["psycopg"] = None
from npl_mcp.stores.data_folder import Stores
from npl_mcp.stores.base.errors import DatabaseError
stores = Stores(Path("data"), "postgresql://user@/npl")
try:
    stores.database.open()
except DatabaseError as error:
    print(error)
"""


@pytest.mark.parametrize("driver", ["missing", "without its library"])
def test_a_driver_that_is_missing_is_named(driver: str) -> None:
    """The error names the extra that brings it; without an address the driver is not needed."""
    environment = {**os.environ, "PSYCOPG_IMPL": "missing"}
    command = [sys.executable, "-c", WITHOUT, driver]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "npl-mcp[postgres]" in done.stdout, done.stderr
