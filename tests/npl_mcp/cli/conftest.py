"""Fixtures of the command lines' tests."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from npl_mcp.config.server_state import STATE_FILE
from tests.npl_mcp.cli.stage import Play, Stage


@pytest.fixture
def stage() -> Iterator[Callable[..., Stage]]:
    made: list[Stage] = []

    def start(play: Play, path: str = "") -> Stage:
        made.append(Stage(play, path))
        return made[-1]

    yield start
    for stage in made:
        stage.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data folder of a server that runs and writes Markdown for models."""
    folder = tmp_path_factory.mktemp("served")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NPL_")}
    words = ["run", "--port", "0", "--data-dir", str(folder), "--format", "markdown"]
    with subprocess.Popen(
        [sys.executable, "-m", "npl_mcp.cli.commands.serving", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            while not (folder / STATE_FILE).exists():
                assert process.poll() is None
                time.sleep(0.02)
            yield folder
        finally:
            process.terminate()


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project and an empty data folder."""
    folder, project = tmp_path / "data", tmp_path / "project"
    folder.mkdir()
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("NPL_MCP_DATA_DIR", str(folder))
    return folder
