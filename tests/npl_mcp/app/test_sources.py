"""Artifacts and change requests are documents: they are browsed, selected, tailored and ranked like files."""

import base64
import json
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npl_index.library.references import ADDRESSES
from npl_mcp.app.app import App
from npl_mcp.app.context import Context
from npl_mcp.app.schemes import SCHEMES
from npl_mcp.config.settings import Settings
from npl_mcp.tools.artifact import artifact_add_revision, artifact_create
from tests.conftest import GUIDE, Call, calls, case_text, cases
from tests.npl_mcp.app.many import WORDS, put
from tests.npl_mcp.documents.change_requests import CONFIG, SECOND, inside, make_project
from tests.tools import npl_load_tailored


def stored(call: Call, name: str, content: bytes, filename: str) -> int:
    made = call(
        "artifact_create",
        name=name,
        artifact_type="document",
        file_content_base64=base64.b64encode(content).decode(),
        filename=filename,
    )
    return int(made["data"]["artifact_id"])


@pytest.fixture
def guide(call: Call) -> str:
    """The guide of the other tests, as an artifact."""
    return f"artifact:{stored(call, 'guide', GUIDE.encode(), 'guide.md')}"


def without_place(answer: dict[str, Any]) -> dict[str, Any]:
    """Leave out what names the document."""
    text = json.dumps(answer["data"]).replace("artifact:1@0", "guide")
    return {name: value for name, value in json.loads(text).items() if name not in ("file", "path")}


@pytest.mark.parametrize(
    ("tool", "asked"),
    [
        ("npl_section_index", {}),
        ("npl_load_tailored", {"context": "when to prune fruit trees", "token_budget": 400}),
        ("npl_load_tailored", {"selectors": ["guide > ## Compost"]}),
        ("npl_load_tailored", {"topics": ["drip line"], "explain": True}),
    ],
)
def test_an_artifact_is_read_like_the_file(call: Call, guide: str, tool: str, asked: dict[str, Any]) -> None:
    """Selectors, lines, sizes and traits are equal."""
    answers = [without_place(call(tool, file=file, **asked)) for file in (guide, "guide.md")]
    assert answers[0] == answers[1]


def test_an_answer_names_the_revision_and_its_selectors_work_again(call: Call, guide: str) -> None:
    data = call("npl_load_tailored", file=guide, context="pruning")["data"]
    assert data["file"] == f"{guide}@0"
    again = call("npl_load_tailored", file=data["file"], selectors=[data["sections"][0]["selector"]])
    assert again["data"]["sections"][0]["title"] == "Pruning"


def test_each_revision_stays_a_document(settings: Settings, call: Call, guide: str) -> None:
    """The next call sees a new revision; the old one stays available by its number."""
    number = int(guide.partition(":")[2])
    newer = base64.b64encode(GUIDE.replace("## Pruning", "## Trimming").encode()).decode()
    revise = {"artifact_id": number, "file_content_base64": newer, "filename": "guide.md"}
    answers = calls(
        settings,
        [
            ("npl_section_index", {"file": guide}),
            ("artifact_add_revision", revise),
            ("npl_section_index", {"file": guide}),
            ("npl_section_index", {"file": f"{guide}@0"}),
        ],
    )
    headings = [
        [node["heading"] for node in answer["data"]["sections"][0]["children"]]
        for answer in answers
        if "sections" in answer["data"]
    ]
    assert "Pruning" in headings[0]
    assert "Trimming" in headings[1]
    assert headings[2] == headings[0]


WRONG = cases("npl_mcp/app/sources")["wrong"]


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_name_gets_a_clear_error(call: Call, guide: str, case: str) -> None:
    """The code says what is missing, the text what to write."""
    file, code, text = WRONG[case]
    answer = call("npl_section_index", file=file)
    assert answer["error_code"] == code
    assert text in answer["error"]


def test_what_is_no_text_is_refused(call: Call) -> None:
    number = stored(call, "picture", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "picture.png")
    assert call("npl_section_index", file=f"artifact:{number}")["error_code"] == "FILE_SYSTEM_ERROR"
    told = call("npl_section_index", file="artifact:*")["error"]
    assert told == "no artifact is Markdown; artifact_list lists all artifacts"


def test_no_file_takes_the_name_of_a_scheme() -> None:
    """Files are kept from each scheme there is or was."""
    assert {f"{name}:" for name in (*SCHEMES, "lib")} == set(ADDRESSES)


IMPORTER = case_text("npl_mcp/app/cr_documents/importer.md")


@pytest.fixture
def project(settings: Settings, tmp_path: Path) -> tuple[Settings, Path]:
    file = make_project(tmp_path / "proj")
    file.with_name("TST-003-importer.md").write_text(IMPORTER, encoding="utf-8")
    make_project(tmp_path / "proj" / "sub", code="SUB")
    return inside(settings, tmp_path / "proj"), file


def ask(settings: Settings, tool: str, **arguments: Any) -> Any:
    answer = calls(settings, [(tool, arguments)])[0]
    assert answer["success"], answer
    return answer["data"]


def test_a_folder_of_them_ranks_together(project: tuple[Settings, Path]) -> None:
    """Hits name their change request, and their selectors load only that."""
    data = ask(project[0], "npl_load_tailored", context="importer loses rows of files", file="cr:TST")
    best = data["sections"][0]
    assert "TST-003" in best["selector"]
    again = ask(project[0], "npl_load_tailored", selectors=[best["selector"]], file="cr:TST")
    assert "loses rows" in again["content"]


@pytest.mark.parametrize(
    ("filter", "keys"), cases("npl_mcp/app/cr_documents")["fields_of_the_front_matter_filter"]
)
@pytest.mark.parametrize("name", ["cr:TST", "cr:*"])
def test_fields_of_the_front_matter_filter(
    project: tuple[Settings, Path], name: str, filter: dict[str, Any], keys: list[str]
) -> None:
    data = ask(project[0], "npl_section_index", file=name, filter=filter)
    assert [key for key in ("TST-002", "TST-003") if key in str(data["sections"])] == keys


@pytest.mark.parametrize(
    ("name", "code"), cases("npl_mcp/app/cr_documents")["a_name_that_leads_nowhere_is_told"]
)
def test_a_name_that_leads_nowhere_is_told(project: tuple[Settings, Path], name: str, code: str) -> None:
    answer = calls(project[0], [("npl_section_index", {"file": name})])[0]
    assert (answer["success"], answer["error_code"]) == (False, code)


def test_an_edit_is_seen_at_once(project: tuple[Settings, Path]) -> None:
    """The next call sees edits by tools and by other programs; a new change request joins the set."""
    settings, file = project
    zebra = {"key": "2", "operation": "append", "section": "Rationale", "content": "zebra"}
    requests: list[tuple[str, dict[str, Any]]] = [
        ("npl_load_tailored", {"selectors": ["TST-002 > ## 2. Rationale [depth=0]"], "file": "cr:TST"}),
        ("manage_cr_sections", zebra),
        ("npl_load_tailored", {"selectors": ["TST-002 // ### Sub A"], "file": "cr:TST"}),
        ("create_cr", {"type": "Research", "data": {"title": "Striped animals"}}),
        ("npl_load_tailored", {"context": "striped animals", "file": "cr:TST"}),
    ]
    first, _, second, _, third = calls(settings, requests)
    assert "why" in first["data"]["content"]
    assert "zebra" in second["data"]["content"]
    assert "TST-004" in str(third["data"]["sections"])
    file.write_text(SECOND.replace("why", "giraffe"), encoding="utf-8")
    assert "giraffe" in ask(settings, "npl_load_tailored", **requests[0][1])["content"]


def test_the_file_itself_stays_a_document_of_its_own(project: tuple[Settings, Path]) -> None:
    """Its path remains its name, whichever of its names was used first; its key is another name."""
    names = ("cr:TST-003", "docs/CRs/TST-003-importer.md", "cr:TST-003", "cr:TST-002")
    by_key, by_path, again, other = (ask(project[0], "npl_section_index", file=name) for name in names)
    assert by_key == again
    assert (by_key["file"], by_path["file"].rpartition("/")[2]) == ("cr:TST-003", "TST-003-importer.md")
    assert all(name in str(other) for name in ("cr:TST-002", "1. Description", "2. Rationale", "Sub A"))


MANY = 120
FEW = 32
QUESTIONS = ("care of the valve", "oil a spoon of number7", "pump sieve", "number61", "status of page 8")


def texts(count: int, mark: str = "") -> dict[str, str]:
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


def write(folder: Path, pages: dict[str, str]) -> None:
    for name, text in pages.items():
        put(folder / f"{name}.md", text)


class Requests:
    name = "cr:*"

    def __init__(self, settings: Settings, place: Path) -> None:
        self._folder = place / "project" / "docs" / "CRs"
        self.settings = replace(settings, cwd=place / "project")
        put(place / "project" / ".mdt-config.toml", CONFIG)

    def fill(self, app: App, pages: dict[str, str]) -> None:  # noqa: ARG002
        write(self._folder, pages)


class Artifacts:
    """Artifacts of a data folder, one a page, and their revisions."""

    name = "artifact:*"

    def __init__(self, settings: Settings, place: Path) -> None:  # noqa: ARG002
        self.settings = settings
        self._numbers: dict[str, int] = {}

    def fill(self, app: App, pages: dict[str, str]) -> None:
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


def store_of(settings: Settings, place: Path, kind: Kind, pages: dict[str, str]) -> App:
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
