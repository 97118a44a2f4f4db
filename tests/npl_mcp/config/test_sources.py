"""Settings come from flags, variables and the ``npl.toml`` of project and user, in this order."""

import argparse
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from npl_index.errors import InvalidRequestError, NPLError
from npl_mcp.cli.commands import serving
from npl_mcp.cli.terminal.arguments import add, server_flags, settings_of
from npl_mcp.config.kinds import REMOVED_SETTINGS
from npl_mcp.config.settings import HTTP, SETTINGS, Settings, search_places
from tests.conftest import case_text, cases


class Place:
    """A repository, the working directory in it, and the user's configuration folder."""

    def __init__(self, folder: Path) -> None:
        self.project, self.user = folder / "project", folder / "config" / "npl-mcp"
        self.work = self.project / "src" / "deep"
        for place in (self.work, self.project / "docs", self.project / ".git", self.user, folder / "other"):
            place.mkdir(parents=True)

    def write(self, project: str | None = None, user: str | None = None) -> None:
        for folder, text in ((self.project, project), (self.user, user)):
            if text is not None:
                (folder / "npl.toml").write_text(text, encoding="utf-8")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    result = Place(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(result.work)
    return result


def started(*words: str) -> Settings:
    parser = argparse.ArgumentParser()
    add(parser, *server_flags(HTTP))
    return settings_of(parser.parse_args(words))


@pytest.mark.parametrize(
    ("words", "variable", "project", "user", "expected"),
    cases("npl_mcp/config/sources_tables")["the_nearer_one_is_believed"],
    ids=["flag", "variable", "project", "user", "default"],
)
def test_the_nearer_one_is_believed(
    words: list[str],
    variable: str | None,
    project: str | None,
    user: str | None,
    expected: str,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place.write(project and f'format = "{project}"', user and f'format = "{user}"')
    if variable is not None:
        monkeypatch.setenv("NPL_FORMAT", variable)
    assert started(*words).format == expected


@pytest.mark.parametrize(
    ("words", "variable", "user", "expected"), cases("npl_mcp/config/sources_tables")["edits"]
)
def test_edits_are_allowed_everywhere_or_in_folders(
    words: list[str],
    variable: str | None,
    user: str | None,
    expected: object,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The flag without a value means everywhere."""
    place.write(user=user)
    if variable is not None:
        monkeypatch.setenv("NPL_WRITE", variable)
    assert started(*words).write == (tuple(expected) if isinstance(expected, list) else expected)


USERS = case_text("texts/npl.toml")


def test_the_users_file_can_say_everything(place: Place) -> None:
    plain = Settings.from_env()
    place.write(user=USERS)
    assert re.findall(r"^[\w-]+", USERS, re.MULTILINE) == list(SETTINGS)
    settings = Settings.from_env()
    same = {name for name in Settings.__slots__ if getattr(settings, name) == getattr(plain, name)}
    own = "cwd home cloned_roots own_cwd own_url system environment vocabulary_folders warm_up"
    assert same == set(own.split())
    assert (settings.roots, settings.patience, settings.log_level) == ((Path.home(), Path("/")), 0.25, "INFO")
    assert (settings.port, settings.origins) == (0, ("https://a", "https://b"))
    assert settings.cr_projects == (Path("/work"), Path.home() / "requests")
    assert (settings.url, settings.token, settings.via) == ("http://127.0.0.1:1", "sixteen-letters-", "http")
    assert (settings.project, settings.data_dir) == (Path.home() / "team", Path.home() / "data")
    assert search_places() == f"NPL_ROOTS=~{os.pathsep}/\nNPL_THEME=terse"


PROJECTS = cases("npl_mcp/config/sources_tables")["projects"]
# A project names folders differently.
LINES = [line for line in USERS.splitlines() if not line.startswith(("root", "project"))]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.partition(" ")[0])
def test_a_project_says_only_what_stays_in_it(line: str, place: Place) -> None:
    """A clone brings its file along, so other keys are refused and their place is named."""
    name = line.partition(" ")[0]
    place.write(f"# ours\n\n{line}\n")
    if name in PROJECTS:
        Settings.from_env()
        assert name in Settings.from_env().sources
        return
    for read in (Settings.from_env, started):
        with pytest.raises(InvalidRequestError) as caught:
            read()
        assert str(caught.value) == (
            f"{place.project}/npl.toml: a project may not set {name}; remove the line, or put it"
            f" into {place.user}/npl.toml; NPL_PROJECT_CONFIG=off ignores it"
        )


def test_every_flag_is_a_setting() -> None:
    """Only flags that name an action are not settings."""
    options = argparse.ArgumentParser()
    add(options, *server_flags(HTTP))
    actions = [*options._actions, *serving.parser()._actions]
    flags = {flag[2:] for action in actions for flag in action.option_strings if flag.startswith("--")}
    of_one_start = {"help", "version"}
    assert flags - set(SETTINGS) - set(REMOVED_SETTINGS) == of_one_start


def test_a_setting_of_an_earlier_version_is_one_warning_at_each_source(
    place: Place, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sources are a file of the project or the user, a variable and a flag."""
    monkeypatch.setenv("NPL_WORKLOG_FILES", "off")
    place.write(project='worklog-files = "off"\nformat = "markdown"\n', user='worklog-files = "on"\n')
    for _ in range(2):
        assert Settings.from_env().format == "markdown"
        options = argparse.ArgumentParser()
        add(options, *server_flags(HTTP))
        assert options.parse_args(["--worklog-files", "off"]).format is None
    said = capfd.readouterr().err.splitlines()
    advice = REMOVED_SETTINGS["worklog-files"]
    assert len(said) == 4
    assert {line.partition(" has no effect: ")[2] for line in said} == {advice}
    assert said[-2:] == [
        f"npl: {label} has no effect: {advice}" for label in ("NPL_WORKLOG_FILES", "--worklog-files")
    ]


@pytest.mark.parametrize(("line", "said"), cases("npl_mcp/config/sources"))
def test_what_cannot_be_used_is_named_with_its_key(line: str, said: str, place: Place) -> None:
    (place.project / "link").symlink_to(place.project.parent / "other")
    place.write(f"# ours\n{line}\n")
    with pytest.raises(NPLError) as caught:
        started()
    assert f"{place.project}/npl.toml: " in str(caught.value)
    assert said in str(caught.value)


def make_link(file: Path) -> None:
    file.with_name("real.toml").write_text('format = "markdown"\n')
    file.symlink_to("real.toml")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (make_link, "cannot be read: "),
        (lambda file: file.symlink_to("absent"), "cannot be read"),
        (lambda file: file.mkdir(), "cannot be read"),
        (lambda file: os.mkfifo(file), "cannot be read: not a regular file"),
        (lambda file: file.write_bytes(b"# \xff\n"), "cannot be read: it is not UTF-8; write"),
        (lambda file: file.write_bytes(b"#" * 65537), "cannot be read: larger than 65,536 bytes; "),
        (lambda file: file.write_text("a = = 1"), "is not TOML: Invalid value (at line 1, column 5)"),
        (lambda file: file.write_text("a = " + "[" * 60000), "is not TOML: "),
    ],
    ids=["link", "link to nothing", "folder", "pipe", "not UTF-8", "too large", "not TOML", "deep"],
)
@pytest.mark.parametrize("whose", ["project", "user"])
def test_only_a_plain_small_file_is_read(
    whose: str, make: Callable[[Path], object], said: str, place: Place
) -> None:
    """Other files are refused by their path, and a pipe is not waited for."""
    file = (place.project if whose == "project" else place.user) / "npl.toml"
    make(file)
    with pytest.raises(InvalidRequestError) as caught:
        Settings.from_env()
    assert str(caught.value).startswith(f"{file} {said}")


def test_a_file_may_be_as_large_as_the_limit_and_begin_with_a_mark(place: Place) -> None:
    """Some editors write a byte order mark."""
    text = b'\xef\xbb\xbfformat = "markdown"\n'
    (place.project / "npl.toml").write_bytes(text + b"#" * (65536 - len(text)))
    assert Settings.from_env().format == "markdown"


def test_the_nearest_file_of_the_repository_counts(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ends at the repository's top; without a repository only the working directory counts."""
    said = lambda: Settings.from_env().theme  # noqa: E731
    (place.project.parent / "npl.toml").write_text('theme = "above"\n')
    assert said() == "default"
    place.write('theme = "top"\n')
    assert said() == "top"
    (place.work.parent / "npl.toml").write_text("patience = 1\n")
    assert (said(), Settings.from_env().patience) == ("default", 1.0)
    (place.project / ".git").rmdir()
    assert Settings.from_env().patience is None
    (place.work / "npl.toml").write_text('theme = "here"\n')
    assert said() == "here"
    monkeypatch.setenv("NPL_PROJECT_CONFIG", "off")
    assert said() == "default"
    monkeypatch.setenv("NPL_PROJECT_CONFIG", "perhaps")
    with pytest.raises(InvalidRequestError, match="NPL_PROJECT_CONFIG='perhaps' is not known; use on or off"):
        said()


def test_folders_of_a_project_begin_at_its_file(place: Place) -> None:
    """Relative folders start there, wherever below it the command is given."""
    place.write('root = ["docs", "."]\n')
    assert Settings.from_env().roots == (place.project / "docs", place.project)


def test_folders_of_a_project_are_not_the_users(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their files cannot be changed unless the user names them."""
    docs = place.project / "docs"
    place.write('root = "docs"\n', f'write = true\nroot = "{docs}"\n')
    settings = started()
    assert (settings.write, settings.roots, settings.cloned_roots) == (True, (docs,), True)
    assert not started("--root", str(docs)).cloned_roots
    monkeypatch.setenv("NPL_ROOTS", str(docs))
    assert not started().cloned_roots
    monkeypatch.delenv("NPL_ROOTS")
    (place.project / "npl.toml").unlink()
    assert not started().cloned_roots


def test_the_users_folder_is_no_project(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server in that folder does not warn that a project may not set this."""
    place.write(user='token = "sixteen-letters-"\n')
    monkeypatch.chdir(place.user)
    assert Settings.from_env().token == "sixteen-letters-"


def test_a_relative_folder_of_the_user_is_refused(place: Place) -> None:
    """It would be a different folder in each project."""
    place.write(user='data-dir = "data"\n')
    with pytest.raises(InvalidRequestError, match="data-dir has the relative path 'data'; write an absolute"):
        Settings.from_env()
