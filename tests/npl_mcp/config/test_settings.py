"""Settings of the environment and the command line."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from npl_index.choices import DEFAULT_BUDGET, Weights
from npl_index.errors import DocumentTooLargeError, InvalidRequestError
from npl_index.library.roots import Limits
from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings, corpus_folder
from tests.conftest import cases
from tests.tools import npl_section_index


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    """Read the settings with variables of the environment."""

    def settings(variables: dict[str, str], **values: object) -> Settings:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return Settings.from_env(**values)

    return settings


def test_without_variables_the_defaults_hold(read: Callable[..., Settings]) -> None:
    """Unset and empty variables mean the same."""
    for env in ({}, {"NPL_ROOTS": "", "NPL_CACHE_MODE": "", "NPL_STRUCTURED": ""}):
        settings = read(env)
        assert settings.roots == ()
        assert (settings.cache_mode, settings.structured, settings.vocabulary) == (
            "disk",
            False,
            "o200k_base",
        )
        assert settings.weights == Weights(0.4, 0.3, 0.3)
        assert settings.token_budget == DEFAULT_BUDGET
        assert settings.cwd == Path.cwd()


def test_every_variable_arrives(read: Callable[..., Settings], tmp_path: Path) -> None:
    env = {
        "NPL_ROOTS": os.pathsep.join([str(tmp_path / "a"), str(tmp_path / "b")]),
        "NPL_CACHE_MODE": "sqlite",
        "NPL_CACHE_BYTES": "1000",
        "NPL_MCP_DATA_DIR": str(tmp_path),
        "NPL_STRUCTURED": "yes",
        "NPL_VOCABULARY": "cl100k_base",
        "NPL_FORMAT": "markdown",
        "NPL_TOKEN_BUDGET": "0",
        "NPL_SEARCH_CWD": "1",
        "NPL_WEIGHTS": "1, 2, 0",
        "NPL_MAX_FILE_BYTES": "77",
        "NPL_TIME_LIMIT": "3",
        "NPL_LOG_LEVEL": "debug",
        "NPL_HOME": "/npl",
        "NPL_THEME": "terse",
        "TIKTOKEN_CACHE_DIR": "/vocabularies",
    }
    settings = read(env)
    assert settings.roots == (tmp_path / "a", tmp_path / "b")
    assert (settings.cache_mode, settings.cache_bytes, settings.data_dir) == ("sqlite", 1000, tmp_path)
    assert (settings.structured, settings.vocabulary) == (True, "cl100k_base")
    assert (settings.format, settings.token_budget, settings.search_cwd) == ("markdown", 0, True)
    assert settings.weights == Weights(name=1, content=2, topic=0)
    assert (settings.limits.max_bytes, settings.time_limit, settings.log_level) == (77, 3.0, "DEBUG")
    assert (settings.environment, settings.theme) == ({"NPL_HOME": Path("/npl")}, "terse")
    assert settings.vocabulary_folders[0] == Path("/vocabularies")


@pytest.mark.parametrize(
    ("here", "said", "searched"),
    cases("npl_mcp/config/settings_tables")["a_server_started_in_the_home_folder_or_above_does_not_serve_it"],
)
def test_a_server_started_in_the_home_folder_or_above_does_not_serve_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    read: Callable[..., Settings],
    here: str,
    said: str,
    searched: bool,
) -> None:
    """The user has to give the folder as a root."""
    for name in ("home/notes", "other"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / here)
    settings = read({"NPL_SEARCH_CWD": said})
    assert settings.search_cwd is searched
    assert settings.serves.startswith("serves the working" if searched else "no --root")


@pytest.mark.parametrize(("name", "value"), cases("npl_mcp/config/settings"))
def test_a_value_that_cannot_be_used_is_named(read: Callable[..., Settings], name: str, value: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read({name: value})
    assert name in str(caught.value)
    assert caught.value.hint


def test_search_places_of_the_environment_beat_the_project(
    read: Callable[..., Settings], tmp_path: Path
) -> None:
    """The order is NPL_HOME, the project's .npl, the bundled corpus."""
    for folder, text in (("home/npl", "# From home\n"), ("work/.npl/npl", "# From project\n")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "syntax.md").write_text(text, encoding="utf-8")

    def title(env: dict[str, str]) -> str:
        given = read(env, cwd=tmp_path / "work", home=tmp_path, warm_up=False)
        return npl_section_index(App(given), resource_type="component", item="syntax").sections[0].name

    assert title({"NPL_HOME": str(tmp_path / "home")}) == "From home"
    assert title({"NPL_HOME": ""}) == "From project"
    assert (corpus_folder() / "npl.md").is_file()


def test_a_smaller_file_limit_is_kept(settings: Settings) -> None:
    app = App(replace(settings, limits=Limits(max_bytes=10)))
    with pytest.raises(DocumentTooLargeError, match="larger than 10 bytes"):
        npl_section_index(app, file="guide.md")
