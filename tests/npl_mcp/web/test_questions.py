"""Questions: their list, their outcomes as they come, edits, and the permissions to see them."""

import fcntl
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.app.document_sets import BACKGROUND_BYTES
from npl_mcp.stores.access import Permissions
from tests.conftest import case_text
from tests.npl_mcp.http.http_server import Running, serving
from tests.npl_mcp.web.browsing import Visitor, visited

PLUMS = "# Plums\n\n## Pruning\n\nPlums are pruned in July.\n\n## Picking\n\nPlums are picked in August.\n"
LIST = case_text("npl_mcp/web/questions/list.md")


FILES = {"docs/plums.md": PLUMS, "docs/questions.md": LIST}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return tmp_path / "docs"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with serving(tmp_path, "--write", files=FILES) as running:
        yield running


def rows(visitor: Visitor, path: str = "/questions") -> dict[str, Any]:
    return {row["question"]: row for row in visitor.json(path)["items"]}


RUN = "/questions?run=1"


def test_questions_are_asked_in_the_request(server: Running) -> None:
    """All are asked; the page has their sum and the sections above a miss."""
    visitor = Visitor(server)
    asked = rows(visitor, RUN)
    assert {name: row["result"] for name, row in asked.items()} == {
        "When are plums pruned?": "pass",
        "When is fruit picked?": "fail",
        "How do I brew coffee?": "pass",
    }
    assert asked["When is fruit picked?"]["why"] == [
        "no section has fruit",
        "ranked above: plums.md > ## Picking",
    ]
    assert asked["When are plums pruned?"]["rank"] == 1
    shown = visitor.open(RUN)
    assert "2 of 3 pass." in shown.text
    assert "data-poll" not in shown.html


@pytest.mark.thorough
def test_pages_that_wait_for_an_index_delay_no_other_page(server: Running, docs: Path) -> None:
    """Another process indexes for a while; more pages than threads wait for it."""
    visitor, ended = Visitor(server), list[str]()
    waiting = ["/questions/one?file=questions.md&line=3", RUN] * 3

    def visit(path: str) -> None:
        visitor.open(path)
        ended.append(path)

    visit(other := "/documents/plums.md")
    handle = os.open(docs.parent / "data", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    (docs / "large.md").write_text("# Large\n\n" + "Pruned in July.\n" * (BACKGROUND_BYTES // 16))
    with ThreadPoolExecutor() as pool:
        list(map(partial(pool.submit, visit), waiting))
        time.sleep(0.5)  # they are there
        visit(other)
        os.close(handle)
    assert (ended[:2], len(ended)) == ([other, other], len(waiting) + 2)


def test_a_failing_question_is_mended_in_its_place(server: Running, docs: Path) -> None:
    """Its page names the right section and those above, and leads to the form of its text."""
    visitor = Visitor(server)
    for path in (RUN, RUN.replace("?", ".json?")):
        assert visitor.send("HEAD", path).status == 200
    assert {row["result"] for row in rows(visitor).values()} == {"not asked"}
    rows(visitor, RUN)
    assert "2 of 3 pass." in visitor.open("/questions").text
    assert list(rows(visitor, "/questions?result=fail")) == ["When is fruit picked?"]
    line = rows(visitor)["When is fruit picked?"]["line"]
    path = f"/questions/one?file=questions.md&line={line}"
    shown = visitor.json(path)
    assert shown["right"]["title"] == "Pruning"
    assert [row["title"] for row in shown["above"]] == ["Picking"]
    edit = next(link.get("href") for link in visitor.open(path).all("a") if link.text == "Edit its text")
    fields = visitor.open(str(edit)).fields("/documents/section")
    text = fields["text"].rstrip() + " When fruit is picked, it is picked: fruit picked when ripe.\n"
    assert visitor.post("/documents/section", {**fields, "text": text}).status == 303
    assert visitor.json(path)["outcome"]["passed"]
    results = {name: (row["result"], row["old"]) for name, row in rows(visitor).items()}
    assert results["When is fruit picked?"] == ("pass", False)
    # The result before the save stays until the question is asked again.
    assert results["How do I brew coffee?"] == ("pass", True)
    assert "2 not asked since the documents changed" in visitor.open("/questions").text
    assert visitor.open("/questions/one?file=questions.md&line=999").status == 404


def test_a_failure_ends_the_outcomes(server: Running, docs: Path) -> None:
    """It is shown above the results, and nothing is asked again."""
    (docs / "plums.md").unlink()
    (docs / "broken.md").write_bytes(b"# \xff\xfe\0")
    shown = Visitor(server).open(RUN)
    assert [node.get("role") for node in shown.all("p") if node.get("role") == "alert"]
    assert "data-poll" not in shown.html


def test_a_question_is_saved_with_its_ticks(tmp_path: Path, docs: Path) -> None:
    """It is added to the file below the root, once; one without a section, or with others than the known one,
    is refused, and so is a form of a token for other domains.
    """
    sights = {"all": Permissions(), "ann": Permissions(frozenset({"chat"}))}
    with visited(tmp_path, sights, "--write", files=FILES) as pages:
        visitor = pages.visitor("all")
        ask = "/ask?context=plums+in+July&file=plums.md"
        fields = visitor.open(ask).fields("/questions/save")
        answer = visitor.json(ask)["audit"]["matches"][0]["selector"]
        form = {name: value for name, value in fields.items() if name != "right"}
        assert "tick a section" in visitor.post("/questions/save", form).text
        done = visitor.post("/questions/save", {**form, "right": answer})
        assert "plums in July" in visitor.open(done.answer.headers["location"]).text
        saved = rows(visitor)["plums in July"]
        assert (saved["answers"], saved["file"]) == ([answer], "questions.md")
        text = (docs / "questions.md").read_text("utf-8")
        assert text == f"{LIST.rstrip()}\n\n## plums in July\n\n- {answer}\n"
        again = visitor.post("/questions/save", {**form, "right": answer})
        assert again.answer.headers["location"] == done.answer.headers["location"]
        for wrong in ({"right": "plums"}, {"right": answer, "text": "x" * 5_000}):
            assert "no question twice" in visitor.post("/questions/save", {**form, **wrong}).text
        assert pages.send("ann", "/questions/save", text="Mine?", right=answer).status == 404
        assert (docs / "questions.md").read_text("utf-8") == text
        assert not (tmp_path / "data" / "questions").exists()


def test_what_cannot_be_read_is_said_with_its_place(server: Running, docs: Path) -> None:
    (docs / "odd.questions.md").write_text("## Why?\n\n" + "Because.\n" * 90, encoding="utf-8")
    shown = Visitor(server).open("/questions")
    assert "odd.questions.md:3: expected a list item" in shown.text
    assert "40 more problems" in shown.text
    assert len(shown.html) < 20_000


def test_a_reader_of_some_folders_sees_their_questions(tmp_path: Path, docs: Path) -> None:
    """A token that only reads tests them, and changes none."""
    sights = {"all": Permissions(), "part": Permissions(roots=(str(docs),))}
    files = {**FILES, "shut/questions.md": "## Secret?\n\n- nowhere\n"}
    with visited(tmp_path, sights, readers=("part",), files=files) as pages:
        assert "Secret?" in rows(pages.visitor("all"), RUN)
        visitor = pages.visitor("part")
        assert rows(visitor).keys() == rows(visitor, RUN).keys()
        assert len(rows(visitor)) == 3
        assert "Save as test" not in visitor.open("/ask?context=plums").text
