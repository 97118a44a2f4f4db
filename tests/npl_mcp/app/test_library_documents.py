"""Documents of libraries: found, selected and ranked like the files of a folder, as they are now."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npl_index.errors import DocumentNotFoundError, NPLError
from npl_mcp.app.app import App
from npl_mcp.app.document_sets import BACKGROUND_BYTES
from npl_mcp.app.libraries import Libraries
from npl_mcp.config.settings import Settings
from npl_mcp.stores.access import Sight
from npl_mcp.stores.base.sqlite import driver
from npl_mcp.stores.data_folder import Stores
from npl_mcp.tools.npl import IndexReply, npl_load_tailored, npl_section_index
from tests import engines
from tests.conftest import GUIDE, Call, calls
from tests.npl_mcp.app.many import put, write

Push = Callable[..., int]


@pytest.fixture
def push(settings: Settings, docs: Path) -> Push:
    """Push a folder, by default that of the documents, and return the number of the revision."""

    def work(folder: Path = docs, name: str = "docs") -> int:
        stores = Stores(settings.data_folder)
        try:
            return Libraries(stores.library, settings.limits).push(folder, name).push.number
        finally:
            stores.close()

    return work


def damage(settings: Settings, content: str) -> None:
    """Change a content in the database behind its back."""
    with closing(driver().connect(settings.data_folder / "npl.db")) as connection:
        statement = "UPDATE library_content SET data = x'23' WHERE CAST(data AS TEXT) LIKE ?"
        assert connection.execute(statement, (content,)).rowcount == 1
        connection.commit()


def without_place(answer: dict[str, Any]) -> dict[str, Any]:
    """Leave out what names the documents."""
    text = json.dumps(answer["data"]).replace("lib:docs/", "")
    return {name: value for name, value in json.loads(text).items() if name not in ("file", "path")}


QUESTIONS: dict[str, dict[str, Any]] = {
    "task": {"context": "when to prune fruit trees and roses", "token_budget": 600, "explain": True},
    "selector": {"selectors": ["plants/roses > ## Pruning"]},
    "heading": {"selectors": ["## Sowing"], "context": "water"},
    "topics": {"topics": ["drip line", "beans"], "explain": True},
}


def test_a_library_is_tailored_like_the_folder(call: Call, push: Push) -> None:
    """The same sections, scores and counts, from the same documents."""
    push()
    for case, request in QUESTIONS.items():
        of_library, of_folder = (
            without_place(call("npl_load_tailored", file=file, **request)) for file in ("lib:docs", "**/*.md")
        )
        # Marks in the content are longer, so the answers are.
        longer = of_library.pop("total_tokens") - of_folder.pop("total_tokens")
        assert longer > 0
        assert of_library == of_folder, case


def test_the_tree_of_a_document_is_that_of_the_file(call: Call, push: Push) -> None:
    """Selectors, lines, sizes and traits are the same; so is a set of trees."""
    push()
    for library, folder in (
        ("lib:docs/guide.md", "guide.md"),
        ("lib:docs", "."),
        ("lib:docs/plants", "plants"),
    ):
        assert without_place(call("npl_section_index", file=library)) == without_place(
            call("npl_section_index", file=folder)
        )


@pytest.mark.thorough
def test_a_large_library_ranks_like_its_folder(settings: Settings, push: Push, tmp_path: Path) -> None:
    """Bit for bit, before and after an edit; what did not change is not indexed again."""
    root = tmp_path / "many"
    write(root, 300)
    push(root, "many")
    app = App(replace(settings, roots=(root,)))

    def ranked(file: str) -> list[Any]:
        found: list[Any] = []
        for question in ("care of the valve", "oil a spoon of number7", "pump sieve"):
            answer = npl_load_tailored(app, context=question, file=file, explain=True).value
            found += [(one.title, one.start_line, one.score) for one in answer.ranking or ()]
            found += [(one.title, one.relevance_score, one.token_count) for one in answer.sections]
        return found

    before = ranked(".")
    assert ranked("lib:many") == before
    built = app.state.sets.built
    put(root / "part1" / "page001.md", "# Changed\n\nThe valve is a spoon now.\n")
    (root / "part2" / "page002.md").unlink()
    put(root / "new.md", "# New\n\nA sieve for oil.\n")
    assert push(root, "many") == 2
    assert ranked("lib:many") == ranked(".") != before
    assert app.state.sets.built - built == 2 * 2
    assert ranked("lib:many@1") == before
    app.close()


@pytest.mark.thorough
def test_other_processes_index_a_library_as_this_one_does(
    settings: Settings, push: Push, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They get the documents themselves; one that is damaged is left out and named, wherever it is read."""
    root = tmp_path / "large"
    for number in range(80):
        words = "a line of words about pumps and sieves\n" * (BACKGROUND_BYTES // 80 // 39 + 20)
        put(root / f"page{number:02}.md", f"# Page {number}\n\nOil the valve of number{number}.\n\n{words}")
    push(root, "large")
    damage(settings, "# Page 7\n%")

    def told() -> tuple[object, ...]:
        app = App(replace(settings, cache_mode="memory"))
        try:
            answer = npl_load_tailored(app, context="oil the valve", file="lib:large", explain=True).value
            assert app.state.sets.built == 79
            return answer.ranking, answer.content, answer.unreadable
        finally:
            app.close()

    answer = told()
    assert answer[2] == ("lib:large/page07.md: 'lib:large/page07.md' is damaged",)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert told() == answer


NAMES = {
    "lib:docs": ["guide.md", "plants/beans.md", "plants/roses.md"],
    "lib:docs/": ["guide.md", "plants/beans.md", "plants/roses.md"],
    "lib:docs/.": ["guide.md", "plants/beans.md", "plants/roses.md"],
    "lib:docs/plants": ["plants/beans.md", "plants/roses.md"],
    "lib:docs/plants/": ["plants/beans.md", "plants/roses.md"],
    "lib:docs/plants/../plants/./": ["plants/beans.md", "plants/roses.md"],
    "lib:docs/**/*.md": ["guide.md", "plants/beans.md", "plants/roses.md"],
    "lib:docs/**": ["guide.md", "plants/beans.md", "plants/roses.md"],
    "lib:docs/*": ["guide.md"],
    "lib:docs/plants/r*": ["plants/roses.md"],
    "lib:docs/{guide,plants/beans}.md": ["guide.md", "plants/beans.md"],
    "lib:docs/{guide,plants}": ["guide.md", "plants/beans.md", "plants/roses.md"],
    "lib:docs/guide.md, lib:docs/plants/b*": ["guide.md", "plants/beans.md"],
    "lib:docs/plants, lib:docs": ["plants/beans.md", "plants/roses.md", "guide.md"],
    "lib:*": ["guide.md", "plants/beans.md", "plants/roses.md"],
    "lib:docs@1": ["@1/guide.md", "@1/plants/beans.md", "@1/plants/roses.md"],
    "lib:docs@1/plants": ["@1/plants/beans.md", "@1/plants/roses.md"],
}


def test_names_of_sets_are_those_of_folders(call: Call, push: Push) -> None:
    """Folders, patterns, lists and revisions; each document has a name that leads to it alone."""
    push()
    for name, expected in NAMES.items():
        data = call("npl_section_index", file=name)["data"]
        found = [node["name"] for node in data["sections"]]
        assert found == [f"lib:docs{'' if one[0] == '@' else '/'}{one}" for one in expected], name
        for one in found:
            alone = call("npl_section_index", file=one)["data"]
            assert alone["file"] == one


def test_a_document_may_lack_its_suffix(call: Call, push: Push) -> None:
    """As a file may, and what is one document is no set."""
    push()
    for name in ("lib:docs/guide", "lib:docs/guide.md", "lib:docs/./guide", "lib:docs@1/plants/roses"):
        assert call("npl_section_index", file=name)["data"]["sections"][0]["level"] == 1


def test_odd_names_lead_to_their_documents(call: Call, push: Push, docs: Path) -> None:
    """Commas, braces, brackets, marks, spaces and other alphabets."""
    odd = ("a, b.md", "x{y,z}.md", "[ab]*.md", "at@2.md", "two  spaces.md", "\u5806\u80a5.md", "q?=1.md")
    for name in odd:
        (docs / name).write_text(f"# Of {name}\n\nText.\n", encoding="utf-8")
    push()
    for name in odd:
        data = call("npl_section_index", file=f"lib:docs/{name}")["data"]
        assert data["file"] == f"lib:docs/{name}"
        selector = data["sections"][0]["selector"]
        for file in ({"file": "lib:docs"}, {}):
            found = call("npl_load_tailored", selectors=[selector], **file)
            assert "Text." in found["data"]["content"], (selector, found)


def test_selectors_from_answers_select_the_same_again(call: Call, push: Push) -> None:
    """With the name of the set and without; a name without a scheme leads there if no file has it."""
    push()
    data = call("npl_load_tailored", file="lib:docs", context="sow beans")["data"]
    selector = data["sections"][0]["selector"]
    assert selector == "lib:docs/plants/beans > ## Sowing"
    assert data["sections"][0]["file"] == "lib:docs/plants/beans.md"
    for file in ({"file": "lib:docs"}, {"file": "lib:docs/plants/beans.md"}, {}):
        again = call("npl_load_tailored", selectors=[selector], **file)["data"]
        assert "Sow beans in May" in again["content"]
    others = call("npl_load_tailored", context="sow beans", file="lib:docs", exclude=[selector])
    assert "Sow beans in May" not in str(others)


def test_a_selector_finds_a_document_of_a_library(
    call: Call, push: Push, settings: Settings, docs: Path
) -> None:
    """By its path or the end of it."""
    push(docs, "docs")
    for path in sorted(docs.rglob("*.md")):
        path.unlink()
    for name in ("plants/roses", "roses", "lib:docs/plants/roses", "plants/roses.md"):
        found = call("npl_load_tailored", selectors=[f"{name} > ## Pruning"])["data"]
        assert "outward bud" in found["content"]


def test_an_edit_pushed_through_one_server_is_seen_by_the_next_call_of_another(
    settings: Settings, docs: Path, push: Push
) -> None:
    """Also by one that had answered before; a revision that is named stays what it is."""
    push()
    one, other = App(settings), App(settings)

    def told(app: App, file: str) -> str:
        return npl_load_tailored(app, selectors=["// *"], file=file).value.content

    try:
        for name in ("lib:docs", "lib:docs/guide.md"):
            assert told(one, name) == told(other, name)
        for number in range(2, 6):
            (docs / "guide.md").write_text(GUIDE.replace("morning", f"night {number}"), encoding="utf-8")
            assert Libraries(one.stores.library, settings.limits).push(docs, "docs").push.number == number
            for name in ("lib:docs", "lib:docs/guide.md", f"lib:docs@{number}", "lib:docs/*.md"):
                assert f"night {number}" in told(other, name)
        assert "morning" in told(other, "lib:docs@1")
        assert "morning" in told(other, "lib:docs@1/guide.md")
        assert "night 3" in told(other, "lib:docs@3/guide.md")
        (docs / "guide.md").unlink()
        Libraries(other.stores.library, settings.limits).push(docs, "docs")
        assert "Garden" not in told(one, "lib:docs")
        assert "morning" in told(one, "lib:docs@1/guide.md")
    finally:
        one.close()
        other.close()


WRONG = {
    "lib:": ("INVALID_PARAMETER", "lib:docs@12"),
    "lib:Docs": ("INVALID_PARAMETER", "lib:docs@12"),
    "lib:../x": ("INVALID_PARAMETER", "lib:docs@12"),
    "lib:docs@0": ("INVALID_PARAMETER", "from 1 on"),
    "lib:docs@": ("INVALID_PARAMETER", "from 1 on"),
    "lib:docs@x/guide.md": ("INVALID_PARAMETER", "from 1 on"),
    "lib:docs@99999999999999999999": ("INVALID_PARAMETER", "from 1 on"),
    "lib:docs@2": ("NOT_FOUND", "it has only revision 1"),
    "lib:docks": ("NOT_FOUND", "near: lib:docs"),
    "lib:docs/../x": ("PERMISSION_DENIED", "leads out of the library"),
    "lib:docs/../../etc/passwd": ("PERMISSION_DENIED", "leads out of the library"),
    "lib:docs/guide.txt": ("NOT_FOUND", "near: lib:docs/guide.md"),
    "lib:docs/plant": ("NOT_FOUND", "near: lib:docs/plants"),
    "lib:docs/*.txt": ("NOT_FOUND", "there is no document"),
    "lib:docs/**/**": ("INVALID_PARAMETER", "once in a pattern"),
    "lib:docs/guide.md/x": ("NOT_FOUND", "there is no document"),
}


def test_a_wrong_name_gets_a_clear_error(call: Call, push: Push) -> None:
    """The code says what is missing, the text what to write."""
    push()
    for file, (code, text) in WRONG.items():
        answer = call("npl_section_index", file=file)
        assert answer["error_code"] == code, file
        assert text in answer["error"], file


def test_a_name_that_means_nothing_makes_no_database(call: Call, settings: Settings) -> None:
    """Neither a library that is not there nor a selector."""
    engines.unused(settings.data_folder)
    assert call("npl_section_index", file="lib:docs")["error_code"] == "NOT_FOUND"
    assert call("npl_section_index", file="lib:*")["error_code"] == "NOT_FOUND"
    assert call("npl_load_tailored", selectors=["nobody > ## X"])["success"] is False
    assert not (settings.data_folder / "npl.db").exists()


def test_a_folder_may_be_called_like_the_scheme(settings: Settings, tmp_path: Path) -> None:
    """Its files have another label where they need one."""
    roots = (tmp_path / "first", tmp_path / "own" / "lib")
    for number, root in enumerate(roots):
        put(root / "same.md", f"# Root {number}\n\nA valve.\n")
    found = calls(replace(settings, roots=roots), [("npl_load_tailored", {"context": "valve"})])[0]["data"]
    names = {section["file"] for section in found["sections"]}
    assert names == {"same.md", "own/lib:same.md"}
    again = calls(replace(settings, roots=roots), [("npl_section_index", {"file": "own/lib:same.md"})])[0]
    assert again["data"]["sections"][0]["heading"] == "Root 1"


def test_what_a_caller_may_not_see_is_not_there(settings: Settings, push: Push, docs: Path) -> None:
    """Errors, patterns and selectors know nothing of other libraries."""
    push()
    push(docs / "plants", "docs2")
    with closing(App(replace(settings, roots=()))) as app:
        seen = app.seen_by(Sight(libraries=("docs2",)))
        for name in ("lib:docs", "lib:docs@1/guide.md", "lib:docs3"):
            with pytest.raises(DocumentNotFoundError) as refused:
                npl_section_index(seen, file=name)
            assert refused.value.hint == "near: lib:docs2"
        every = npl_section_index(seen, file="lib:*")
        assert isinstance(every, IndexReply)
        assert [node.name for node in every.sections] == ["lib:docs2/beans.md", "lib:docs2/roses.md"]
        with pytest.raises(NPLError):
            npl_load_tailored(seen, selectors=["lib:docs/guide > ## Compost"])


def test_a_damaged_content_is_left_out_and_named(call: Call, push: Push, settings: Settings) -> None:
    """The other documents are searched; nothing that was not pushed is shown."""
    push()
    damage(settings, "# Roses%")
    found = call("npl_load_tailored", file="lib:docs", context="sow beans")["data"]
    assert found["sections"][0]["title"] == "Sowing"
    assert "plants/roses.md" in found["unreadable"][0]
    alone = call("npl_section_index", file="lib:docs/plants/roses.md")
    assert alone["error_code"] == "FILE_SYSTEM_ERROR"
    assert "damaged" in alone["error"]
