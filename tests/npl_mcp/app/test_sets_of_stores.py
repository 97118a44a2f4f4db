"""Sets of change requests and of artifacts rank as a folder of the same texts, at the same cost."""

import base64
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.app.app import App
from npl_mcp.app.context import Context
from npl_mcp.config.settings import Settings
from npl_mcp.tools.artifact import artifact_add_revision, artifact_create
from tests.npl_mcp.app.many import WORDS, put
from tests.npl_mcp.documents.change_requests import CONFIG
from tests.tools import npl_load_tailored

MANY = 300
FEW = 32
QUESTIONS = ("care of the valve", "oil a spoon of number7", "pump sieve", "number61", "status of page 8")

Names = dict[str, str]
"""Texts by the names of their documents."""


def texts(count: int, mark: str = "") -> Names:
    """Return texts that are change requests as well as pages."""
    made = {}
    for number in range(1, count + 1):
        word, other = WORDS[number % 5], WORDS[number * 7 % 3]
        key = f"TST-{number:03}"
        made[key] = (
            f"---\ncode: {key}\nstatus: Proposed\ntype: Bug Fix\npriority: Low\n---\n\n"
            f"# Page {number}\n\nThe {word} of number{number} turns {other}s.{mark}\n\n"
            f"## 1. Care of page {number}\n\nOil the {word}.\n"
        )
    return made


def write(folder: Path, pages: Names) -> None:
    for name, text in pages.items():
        put(folder / f"{name}.md", text)


class Requests:
    name = "cr:*"

    def __init__(self, settings: Settings, place: Path) -> None:
        self._folder = place / "project" / "docs" / "CRs"
        self.settings = replace(settings, cwd=place / "project")
        put(place / "project" / ".mdt-config.toml", CONFIG)

    def fill(self, app: App, pages: Names) -> None:  # noqa: ARG002
        write(self._folder, pages)


class Artifacts:
    """Artifacts of a data folder, one a page, and their revisions."""

    name = "artifact:*"

    def __init__(self, settings: Settings, place: Path) -> None:  # noqa: ARG002
        self.settings = settings
        self._numbers: dict[str, int] = {}

    def fill(self, app: App, pages: Names) -> None:
        for name, text in pages.items():
            file = {"file_content_base64": base64.b64encode(text.encode()).decode(), "filename": f"{name}.md"}
            if name in self._numbers:
                artifact_add_revision(app, artifact_id=self._numbers[name], **file)
            else:
                made = artifact_create(app, name=name, artifact_type="document", **file)
                self._numbers[name] = made.artifact_id


Kind = Callable[[Settings, Path], Requests | Artifacts]


def ranking(app: App, name: str) -> list[Any]:
    """Return titles, texts and scores of the hits of several questions, in order."""
    ranks: list[Any] = []
    for question in QUESTIONS:
        answer = npl_load_tailored(app, context=question, file=name, explain=True).value
        ranks += [(section.title, section.relevance_score, section.start_line) for section in answer.sections]
        ranks += [(row.title, row.start_line, row.score) for row in answer.ranking or ()]
    return ranks


def store_of(settings: Settings, place: Path, kind: Kind, pages: Names) -> App:
    """Return an application whose store has some pages."""
    made = kind(settings, place)
    app = App(made.settings)
    made.fill(app, pages)
    return app


@pytest.fixture(
    params=[pytest.param(Requests, marks=pytest.mark.thorough), Artifacts], ids=["cr", "artifact"]
)
def filled(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> Any:
    """A store with many documents, and a folder with the same."""
    root = tmp_path / "same"
    made = request.param(replace(settings, roots=(root,)), tmp_path)
    pages = texts(MANY)
    write(root, pages)
    app = App(made.settings)
    made.fill(app, pages)
    yield made, app, root
    app.close()


def test_a_set_ranks_like_a_folder_with_the_same_texts(filled: Any) -> None:
    """Order and scores agree before and after edits, each of which indexes one document."""
    made, app, root = filled
    assert ranking(app, made.name) == ranking(app, ".")
    changed = {name: texts(61, " Mind the ladle.")[name] for name in ("TST-007", "TST-061")}
    made.fill(app, changed)
    built = app.state.sets.built
    after = ranking(app, made.name)
    assert app.state.sets.built - built == len(changed)
    write(root, changed)
    assert ranking(app, ".") == after


def test_a_set_is_kept_across_starts(filled: Any) -> None:
    made, app, _ = filled
    first = ranking(app, made.name)
    app.close()
    with closing(App(made.settings)) as again:
        assert ranking(again, made.name) == first
        assert again.state.sets.built == 0


def test_projects_do_not_take_the_place_of_each_other(settings: Settings, tmp_path: Path) -> None:
    """Their change requests are different sets, in any order of calls."""
    app = store_of(settings, tmp_path / "one", Requests, texts(FEW))
    other = store_of(settings, tmp_path / "other", Requests, texts(FEW, " Mind the ladle."))
    other.close()
    other = Context(app.state, app.documents_for(cwd=other.settings.cwd))
    first, second = ranking(app, "cr:*"), ranking(other, "cr:*")
    built = app.state.sets.built
    assert (ranking(app, "cr:*"), ranking(other, "cr:*")) == (first, second)
    assert app.state.sets.built == built == 2 * FEW
    app.close()


@pytest.mark.engine("sqlite")
def test_a_backup_that_was_put_back_next_to_the_index(settings: Settings, tmp_path: Path) -> None:
    """Its artifacts have the numbers of other indexed ones, and are not taken for them."""
    data = {name: replace(settings, data_dir=tmp_path / name) for name in ("data", "backup")}
    for name, mark in (("data", ""), ("backup", " Mind the ladle.")):
        app = store_of(data[name], tmp_path, Artifacts, texts(FEW, mark))
        ranking(app, "artifact:*")
        app.close()
    expected = npl_load_tailored(app, context="ladle of number7", file="artifact:*").value.content
    app.close()
    assert "Mind the ladle" in expected
    for name in ("npl.db", "artifacts"):
        place = tmp_path / "data" / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()
        (tmp_path / "backup" / name).rename(place)
    with closing(App(data["data"])) as app:
        assert npl_load_tailored(app, context="ladle of number7", file="artifact:*").value.content == expected
