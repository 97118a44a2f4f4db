"""Questions: lists, edits, runs in the background that outlast the server, and who sees which."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.stores.access import Sight
from npl_mcp.stores.data_folder import Stores
from tests.npl_mcp.http.http_server import Running, serving
from tests.npl_mcp.web.browsing import Shown, Visitor

PLUMS = "# Plums\n\n## Pruning\n\nPlums are pruned in July.\n\n## Picking\n\nPlums are picked in August.\n"
LIST = """\
# Questions

## When are plums pruned?

- plums > ## Pruning

## When is fruit picked?

- plums > ## Pruning

## How do I brew coffee?

- nowhere
"""


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    made.mkdir()
    (made / "plums.md").write_text(PLUMS, encoding="utf-8")
    (made / "questions.md").write_text(LIST, encoding="utf-8")
    return made


@pytest.fixture
def server(tmp_path: Path, docs: Path) -> Iterator[Running]:
    with serving(tmp_path, "--root", str(docs), "--write") as running:
        yield running


def rows(visitor: Visitor, path: str = "/questions") -> dict[str, Any]:
    """Return the questions of a page in their order."""
    return {one["question"]: one for one in visitor.json(path)["items"]}


def ended(visitor: Visitor, shown: Shown) -> str:
    """Return the address of a run once it is over."""
    assert shown.status == 303
    path = shown.answer.headers["location"]
    until(lambda: visitor.json(path)["run"]["state"] != "running")
    return path


def until(wanted: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + 30
    while not wanted():
        assert time.monotonic() < end
        time.sleep(0.05)


def run(visitor: Visitor, **chosen: str) -> str:
    fields = visitor.open("/questions").fields("/questions/run")
    return ended(visitor, visitor.post("/questions/run", {**fields, **chosen}))


def test_questions_are_run_and_stay_known(tmp_path: Path, docs: Path) -> None:
    """The worst stand first, with what stood above the right section; a new server knows the run as well."""
    with serving(tmp_path, "--root", str(docs)) as running:
        visitor = Visitor(running)
        assert [one["held"] for one in rows(visitor).values()] == [None, None, None]
        path = run(visitor)
    with serving(tmp_path, "--root", str(docs)) as running:
        visitor = Visitor(running)
        found = rows(visitor)
        assert [one["held"] for one in found.values()] == ["no", "yes", "yes"]
        bad = found["When is fruit picked?"]
        assert bad["above"] == ["plums.md > ## Picking"]
        assert found["When are plums pruned?"]["rank"] == 1
        data = visitor.json(path)
        assert (data["run"]["held"], data["run"]["total"], data["run"]["state"]) == (2, 3, "done")
        shown = visitor.open("/questions")
        assert "Better placed: plums.md > ## Picking" in shown.text
        titles = [(one.text or "").strip() for one in shown.all("figcaption")]
        assert titles == ["Held by the first answer", "Mean reciprocal rank", "Tokens of an answer"]


def test_two_runs_are_compared(server: Running, docs: Path) -> None:
    """What got worse comes first; a run of one question is compared with runs of the same."""
    visitor = Visitor(server)
    run(visitor)
    (docs / "plums.md").write_text(
        PLUMS.replace("Pruning", "Cutting").replace("pruned", "cut"), encoding="utf-8"
    )
    second = run(visitor)
    data = visitor.json(second)
    first = data["differences"][0]
    assert (first["after"]["question"]["text"], first["worse"]) == ("When are plums pruned?", True)
    assert "worse" in visitor.open(second).text
    assert "selects nothing" in visitor.open(second).text or "no section" in visitor.open(second).text.lower()
    alone = run(visitor, file="questions.md", line=str(rows(visitor)["How do I brew coffee?"]["line"]))
    assert visitor.json(alone)["run"]["total"] == 1
    assert visitor.json(alone)["before"] is None


def test_a_run_is_cancelled(server: Running, docs: Path) -> None:
    many = "".join(f"## When are plums pruned in year {number}?\n\n- plums\n\n" for number in range(900))
    (docs / "many.questions.md").write_text(many, encoding="utf-8")
    visitor = Visitor(server)
    fields = visitor.open("/questions").fields("/questions/run")
    started = visitor.post("/questions/run", fields)
    path = started.answer.headers["location"]
    assert "in progress" in visitor.post("/questions/run", fields).text
    assert "Cancel" in visitor.open(path).text
    visitor.submit(path, f"{path}/cancel")
    ended(visitor, started)
    found = visitor.json(path)["run"]
    assert found["state"] == "cancelled"
    assert found["asked"] < found["total"] == 903
    assert "Cancelled after" in visitor.open(path).text
    assert run(visitor, file="questions.md") != path


def test_a_question_is_changed_and_removed(server: Running, docs: Path) -> None:
    """The rest of the file stays; a change by others is noticed, and what was typed is kept."""
    visitor = Visitor(server)
    line = rows(visitor)["When is fruit picked?"]["line"]
    path = f"/questions/edit?file=questions.md&line={line}"
    done = visitor.submit(path, "/questions/save", others="plums > ## Picking")
    assert done.status == 303
    text = (docs / "questions.md").read_text("utf-8")
    assert text == LIST.replace("picked?\n\n- plums > ## Pruning", "picked?\n\n- plums > ## Picking")
    fields = visitor.open(path).fields("/questions/save")
    (docs / "questions.md").write_text(f"{text}\n## New?\n\n- plums\n", encoding="utf-8")
    refused = visitor.post("/questions/save", {**fields, "others": "plums > ## Mine"})
    assert refused.status in (409, 422)
    assert "has changed since it was read" in refused.text
    assert refused.fields("/questions/save")["others"] == "plums > ## Mine"
    fields = visitor.open(path).fields("/questions/save")
    assert visitor.post("/questions/save", {**fields, "delete": "1"}).status == 303
    assert "When is fruit picked?" not in rows(visitor)
    assert visitor.open(path).status in (200, 404)


def test_a_question_is_saved_with_its_ticks(server: Running, docs: Path) -> None:
    """Again under the same words it is replaced; without a section its form asks for one."""
    visitor = Visitor(server)
    ask = "/ask?context=plums+in+July&file=plums.md"
    fields = visitor.open(ask).fields("/questions/save")
    answers = [row["selector"] for row in visitor.json(ask)["audit"]["matches"]]
    empty = {name: value for name, value in fields.items() if name != "right"}
    asked = visitor.post("/questions/save", empty)
    assert asked.answer.headers["location"].startswith("/questions/edit?text=plums+in+July")
    assert visitor.open(asked.answer.headers["location"]).fields("/questions/save")["text"] == "plums in July"
    for answer in answers[:2]:
        assert visitor.post("/questions/save", {**empty, "right": answer}).status == 303
        saved = rows(visitor)["plums in July"]
        assert (saved["answers"], saved["file"]) == ([answer], "data folder:questions.md")
        assert answer.startswith("plums.md")
    nowhere = {**empty, "text": "What is a quokka?", "nowhere": "1"}
    assert visitor.post("/questions/save", nowhere).status == 303
    assert rows(visitor)["What is a quokka?"]["answers"] == []
    assert len((server.folder / "data" / "questions" / "questions.md").read_text("utf-8").split("## ")) == 3
    run(visitor)
    assert [one["question"] for one in visitor.json("/questions?filter=quokka")["items"]] == [
        "What is a quokka?"
    ]


def test_what_cannot_be_read_is_said_with_its_place(server: Running, docs: Path) -> None:
    (docs / "odd.questions.md").write_text("## Why?\n\nBecause.\n", encoding="utf-8")
    assert "odd.questions.md, line 3: expected a list item" in Visitor(server).open("/questions").text


def test_who_sees_some_folders_sees_their_questions(tmp_path: Path, docs: Path) -> None:
    """And only own runs; who only reads has no buttons, and others' runs cannot be seen or cancelled."""
    shut = tmp_path / "shut"
    shut.mkdir()
    (shut / "questions.md").write_text("## Secret?\n\n- nowhere\n", encoding="utf-8")
    stores = Stores(tmp_path / "data", 1 << 20)
    some = Sight(roots=(str(docs),))
    tokens = {
        "all": stores.access.add("all", Sight()),
        "some": stores.access.add("some", some),
        "reader": stores.access.add("reader", some, read_only=True),
    }
    stores.close()
    with serving(tmp_path, "--root", str(docs), "--root", str(shut)) as running:
        visitors = {name: Visitor(running, token) for name, token in tokens.items()}
        assert "Secret?" in rows(visitors["all"])
        assert "Secret?" not in rows(visitors["some"])
        path = run(visitors["all"])
        assert visitors["some"].open(path).status == 404
        assert visitors["some"].json("/questions")["runs"] == []
        own = run(visitors["some"])
        assert visitors["some"].json(own)["run"]["total"] == 3
        assert "Run all" not in visitors["reader"].open("/questions").text
