"""Fixtures of the command lines' tests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.npl_mcp.cli.stage import Play, Stage
from tests.npl_mcp.http.http_server import serving


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
    with serving(tmp_path_factory.mktemp("served"), "--format", "markdown") as running:
        yield running.folder / "data"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project and an empty data folder."""
    folder, project = tmp_path / "data", tmp_path / "project"
    folder.mkdir()
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("NPL_MCP_DATA_DIR", str(folder))
    return folder
