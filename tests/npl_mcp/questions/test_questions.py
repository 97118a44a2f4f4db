"""Question files: their format, their limits, and the outcomes of their questions."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from npl_index.errors import DocumentTooLargeError, InvalidRequestError, UnreadableDocumentError
from npl_index.library.documents import DocumentRef
from npl_mcp.app.app import App
from npl_mcp.app.waiting import result_of
from npl_mcp.config.settings import Settings
from npl_mcp.questions import files
from npl_mcp.questions.files import (
    DEFAULT_NAME,
    MAX_ANSWERS,
    MAX_BYTES,
    MAX_PROBLEMS,
    Question,
    add_question,
    question_files,
    read_questions,
    with_question,
)
from npl_mcp.questions.outcomes import ask_one
from tests.conftest import Call, case_text
from tests.tools import npl_load_tailored

LIMITS = case_text("npl_mcp/questions/questions/limits.md")

QUESTIONS = case_text("npl_mcp/questions/questions/questions.md")


@pytest.fixture
def app(settings: Settings) -> Iterator[App]:
    """An application over a few documents and a question file."""
    root = settings.roots[0]
    (root / "limits.md").write_text(LIMITS, encoding="utf-8")
    (root / "Questions.md").write_text(QUESTIONS, encoding="utf-8")
    application = App(replace(settings, token_budget=450))
    yield application
    application.close()


def test_a_file_is_read_with_the_place_of_each_problem() -> None:
    """Readable questions are kept; each problem has a line."""
    read = read_questions(case_text("npl_mcp/questions/questions/problems.md").encode(), "q.md")
    assert read.questions == (Question("Good?", ("limits > ## Upload size", "## Requests"), 1),)
    lines = [int(problem.split(":")[1]) for problem in read.problems]
    assert lines == [7, 11, 15, 17, 21, 26]
    assert "expected a list item" in read.problems[0]
    assert "line 1 has the same question" in read.problems[3]


def test_reading_has_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Selectors, problems and time are bounded; what can be read until then is a question."""
    items = "- a\n" * (MAX_ANSWERS + 1)
    read = read_questions(f"## Many?\n\n{items}\n## Few?\n\n- a\n".encode())
    assert [question.text for question in read.questions] == ["Few?"]
    assert read.problems == (f"questions:1: expected at most {MAX_ANSWERS} selectors below a question",)
    read = read_questions(b"## A?\n\n- \xff\n")
    assert (read.questions, len(read.problems)) == ((), 1)
    read = read_questions(b"## A?\n\n- a\n\n" + b"### Deep\n" * 200)
    assert (len(read.questions), len(read.problems)) == (1, MAX_PROBLEMS + 1)
    assert read.problems[-1] == "questions: 150 more problems"
    monkeypatch.setattr(files, "READ_SECONDS", -1)
    read = read_questions(b"## A?\n\n- a\n")
    assert (read.questions, "longer than the limit" in read.problems[0]) == ((), True)


def test_a_file_does_not_grow_beyond_its_limit(app: App) -> None:
    assert add_question(app, Question("First?", ("a",))) == (DEFAULT_NAME, 1)
    path = Path(app.settings.data_folder, "questions", "questions.md")
    full = path.read_bytes() + b"<!-- -->\n" * ((MAX_BYTES - 40) // 9)
    path.write_bytes(full)
    with pytest.raises(DocumentTooLargeError, match="262,144"):
        add_question(app, Question("Second?", ("b" * 100,)))
    assert path.read_bytes() == full


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_question_is_added_with_the_line_ends_of_its_file(end: str) -> None:
    data = QUESTIONS.replace("\n", end).encode()
    added = with_question(data, Question("What is new?", ("limits", "## Requests")))
    assert added == data + f"{end}## What is new?{end}{end}- limits{end}- ## Requests{end}".encode()


@pytest.mark.parametrize("text", ["", "How large may an upload be?", "two\n\n## lines"])
def test_a_question_that_could_not_be_read_again_is_refused(text: str) -> None:
    """An empty question, a repeated one and one with a heading inside are refused."""
    with pytest.raises(InvalidRequestError):
        with_question(QUESTIONS.encode(), Question(text, ("limits",)))


def test_question_files_are_no_documents(app: App, call: Call) -> None:
    """They are neither ranked, listed nor read by name; a document may still end in such a name."""
    root = app.settings.roots[0]
    (root / "faq.questions.md").write_text(QUESTIONS, encoding="utf-8")
    (root / "openquestions.md").write_text("# Open\n\nWho brews coffee?\n", encoding="utf-8")
    paths = [file.path for file in app.documents.find(DocumentRef())]
    assert "openquestions.md" in paths
    assert not {"Questions.md", "faq.questions.md"} & set(paths)
    (root / "link.md").symlink_to(root / "Questions.md")
    assert "Questions.md" not in [file.path for file in app.documents.find(DocumentRef(file="*.md"))]
    for name in ("Questions.md", "Questions", "faq.questions.md"):
        with pytest.raises(UnreadableDocumentError, match="npl-load test"):
            npl_load_tailored(app, context="upload", file=name)
    hits = call("search", query="How large may an upload be")["data"]["items"]
    assert all("uestions.md" not in str(hit.get("file")) for hit in hits)


def test_stored_question_files_are_no_documents(call: Call) -> None:
    call("artifact_create", name="q", filename="questions.md", content="# Q\n", artifact_type="document")
    reply = call("npl_load_tailored", context="upload", file="artifact:1")
    assert "npl-load test" in reply["error"]
    assert not call("npl_load_tailored", context="upload", file="artifact:*")["success"]


def test_an_outcome_says_where_the_right_section_is(app: App) -> None:
    """It names the section's rank, the sections above, missing words, and wrong selectors."""
    first, nowhere = (result_of(ask_one(app, question)) for question in question_files(app)[0].questions)
    assert (first.passed, first.rank, first.verdict, first.wrong) == (True, 1, "held", ())
    assert 50 < first.tokens <= 450
    assert (nowhere.passed, nowhere.rank) == (True, None)
    assert {"brew", "coffee"} <= set(nowhere.absent)
    missed = result_of(
        ask_one(app, Question("How many requests may a client send?", ("limits > ## Upload size",)))
    )
    assert not missed.passed
    assert missed.above[0] == "limits.md > ## Requests"
    wrong = result_of(
        ask_one(app, Question("Upload size?", ("limits > ## Upload", "limits > ## Upload size")))
    )
    assert not wrong.passed
    assert "limits > ## Upload:" in wrong.wrong[0]
    shown = result_of(ask_one(app, Question("How large may an upload be?")))
    assert (shown.passed, shown.above) == (False, ("limits.md > ## Upload size",))


def test_an_outcome_is_that_of_the_tool(app: App) -> None:
    text = "How large may an upload be?"
    answer = npl_load_tailored(app, context=text)
    outcome = result_of(
        ask_one(app, Question(text, tuple(section.selector for section in answer.value.sections)))
    )
    assert (outcome.passed, outcome.tokens) == (True, app.counter.count(answer.text))


@pytest.mark.parametrize("root", ["docs", "data folder"])
def test_a_question_is_added_where_files_may_be_changed(
    settings: Settings, tmp_path: Path, root: str
) -> None:
    """A file below a root needs the permission; else it is the data folder's, however a root is called."""
    (tmp_path / root).mkdir(exist_ok=True)
    path = tmp_path / root / "questions.md"
    path.write_text(QUESTIONS, encoding="utf-8")
    one = replace(settings, roots=(tmp_path / root,))
    question = Question("What is a rose?", ("roses",))
    for write, name in ((False, DEFAULT_NAME), (("plants/",), DEFAULT_NAME), (True, "questions.md")):
        application = App(replace(one, write=write, data_dir=tmp_path / f"data {write}"))
        assert add_question(application, question)[0] == name
        files = {file.name: file.questions for file in question_files(application)}
        assert files[name][-1].text == question.text
        assert (path.read_text("utf-8") == QUESTIONS) is (write is not True)
        application.close()


def test_a_file_that_cannot_be_read_is_listed_with_its_problem(app: App) -> None:
    path = app.settings.roots[0] / "big.questions.md"
    with path.open("wb") as file:
        file.truncate(app.settings.limits.max_bytes + 1)
    read = {file.name: file for file in question_files(app)}
    assert read["big.questions.md"].problems[0].startswith("big.questions.md:1: ")
    assert len(read["Questions.md"].questions) == 2
