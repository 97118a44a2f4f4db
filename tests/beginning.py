"""The plugin of pytest that prepares a run of tests."""

import os
import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import warm

MEMORY = Path("/dev/shm")
ROOM = 4 << 30
"""Required free bytes: a run of all tests needs about one GiB, and the last one is kept."""


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Let the process that distributes tests to workers import nothing of them."""
    options = early_config.known_args_namespace
    if getattr(options, "numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ:
        options.noconftest = True


def pytest_configure(config: pytest.Config) -> None:
    """Let folders of tests be in memory, where nothing waits for a disk, if there is room for all.

    Let tests drop a database that they did not close: it closes its connections, and the driver warns.
    """
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    config.addinivalue_line("filterwarnings", "ignore:.* was deleted while still open:ResourceWarning")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Let workers start fast, as programs of tests do."""
    until_the_end = ExitStack()
    until_the_end.enter_context(warm.programs())
    config.add_cleanup(until_the_end.close)
