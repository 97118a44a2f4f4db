"""Settings of the environment and the command line."""

from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
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
    settings = read({})
    assert read({"NPL_ROOTS": "", "NPL_CACHE_MODE": "", "NPL_STRUCTURED": ""}) == settings
    assert (settings.roots, settings.cache_mode, settings.structured) == ((), "disk", False)
    assert (settings.weights, settings.vocabulary) == (Weights(0.4, 0.3, 0.3), "o200k_base")
    assert (settings.token_budget, settings.cwd) == (DEFAULT_BUDGET, Path.cwd())


def test_every_variable_arrives(read: Callable[..., Settings]) -> None:
    table = cases("npl_mcp/config/settings_tables")["variables"]
    settings = read({name: text for name, text, _, _ in table})
    for name, _, attribute, value in table:
        assert repr(attrgetter(attribute)(settings)).startswith(value), name


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
