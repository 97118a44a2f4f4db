"""The page Ask without a browser: its data, its commands, and the permissions to see and to save."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlencode

import pytest

from npl_mcp.stores.access import Permissions
from npl_mcp.web.pages.ask import SCALE, ruler
from tests.npl_mcp.http.http_server import Running, call, serving
from tests.npl_mcp.web.browsing import Visitor, visited

QUESTION = {"context": "prune the plums", "topics": "pruning, plums", "budget": "400"}
ARGUMENTS = {"context": "prune the plums", "topics": ["pruning", "plums"], "token_budget": 400}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of a folder that all see and of one that some do not."""
    files = {
        "open/plums.md": "# Plums\n\n## Pruning\n\nPlums are pruned in July.\n",
        "shut/secret.md": "# Secret\n\n## Pruning plums\n\nThe secret of plums.\n",
    }
    with serving(tmp_path_factory.mktemp("ask"), files=files) as running:
        yield running


@pytest.fixture
def visitor(server: Running) -> Visitor:
    return Visitor(server)


def at(query: Mapping[str, str | list[str]]) -> str:
    """Return the address of a question."""
    return f"/ask?{urlencode(query, doseq=True)}"


DEFAULT = {name: value for name, value in ARGUMENTS.items() if name != "token_budget"}
"""The same request without a budget."""


@pytest.mark.parametrize(("budget", "arguments"), [("400", ARGUMENTS), ("700", DEFAULT), ("", DEFAULT)])
def test_the_page_says_what_an_agent_gets(
    server: Running, visitor: Visitor, budget: str, arguments: Mapping[str, object]
) -> None:
    """The data of the page have the Markdown that clients get, to the byte, also for the default budget."""
    shown = visitor.json(at({**QUESTION, "budget": budget}))
    assert shown["asked"] == arguments
    answer = shown["audit"]
    plain = call(server, "npl_load_tailored", {**arguments, "format": "markdown"})
    assert plain.body.decode() == answer["text"]
    assert answer["tokens"] <= int(budget or 700)
    assert not [name for name in shown if name.startswith("_")]


def test_the_same_request_elsewhere(visitor: Visitor) -> None:
    """The copied call asks the same, for any text in it."""
    context = "it's `plums` -- $HOME"
    copies = visitor.json(at({"context": context, "budget": "0"}))["copies"]
    arguments = {"context": context, "token_budget": 0, "format": "markdown"}
    assert json.loads(copies["tool call"]) == {"name": "npl_load_tailored", "arguments": arguments}


def test_what_is_missing_is_said(server: Running, visitor: Visitor) -> None:
    broken = server.folder / "open" / "broken.md"
    broken.write_bytes(b"# \xff\xfe\x00")
    try:
        address = at({**QUESTION, "selectors": "## Pruning\n## Nowhere"})
        audit = visitor.json(address)["audit"]
        assert [len(audit[name]) for name in ("not_found", "unreadable")] == [1, 1]
        shown = visitor.open(address).html
        assert "Nowhere" in shown
        assert "broken.md: " in shown
    finally:
        broken.unlink()


def test_a_question_that_nothing_answers_leads_on(visitor: Visitor) -> None:
    """The page says so, and offers the search for the same words."""
    shown = visitor.open(at({"context": "zzz qqq", "budget": "400"}))
    links = [link.get("href", "") for link in shown.all("a")]
    assert "No section has a word of this question." in shown.text
    assert "/search?q=zzz+qqq" in links
    assert "0 parts" not in shown.text


@pytest.mark.parametrize("question", ["prune the plums", "zzz"])
def test_a_budget_that_no_answer_fits_is_not_called_kept(visitor: Visitor, question: str) -> None:
    shown = visitor.open(at({"context": question, "budget": "1"}))
    assert re.search(r"\d+ tokens, the smallest answer, for a budget of 1", shown.text)
    assert " of 1 tokens" not in shown.text


def test_a_root_is_found_by_the_name_that_is_shown(server: Running, visitor: Visitor) -> None:
    """The colon of an address may be left out; a file or folder of the same name comes first."""
    (server.folder / "shut" / "open").mkdir()
    (server.folder / "shut" / "open" / "inner.md").write_text("# Inner\n\nPlums inside.\n", encoding="utf-8")
    try:
        for name, file in (("shut", "secret.md"), ("shut:", "secret.md"), ("open", "inner.md")):
            audit = visitor.json(at({**QUESTION, "file": name}))["audit"]
            assert file in json.dumps(audit), name
    finally:
        (server.folder / "shut" / "open" / "inner.md").unlink()
        (server.folder / "shut" / "open").rmdir()


def test_every_place_that_is_served_has_a_page(server: Running, visitor: Visitor) -> None:
    """A project folder with only exported worklogs is not a place."""
    (server.folder / "work" / ".npl" / "sessions").mkdir(parents=True)
    links = [link.get("href", "") for link in visitor.open("/").all("a")]
    places = [link for link in links if link.startswith("/documents/")]
    assert {"/documents/open%3A", "/documents/shut%3A"} <= set(places)
    for place in places:
        assert visitor.open(place).status == 200, place


def test_a_form_sends_back_what_it_was_given(visitor: Visitor) -> None:
    """Marks of direction of Hebrew and Arabic stay."""
    given = {"context": "\u05d0\u200f(1)", "topics": "\u200ea", "selectors": "# Plums\n## Pruning"}
    shown = visitor.open(at(given))
    assert {name: shown.fields("/ask")[name] for name in given} == given
    assert shown.fields("/questions/save")["text"] == given["context"]


def test_bad_addresses_are_told(visitor: Visitor) -> None:
    for query, status, words in (
        ({"context": "a", "budget": "many"}, 400, "Budget: a whole number, not 'many'"),
        ({"context": "a", "file": "nowhere.md"}, 404, "nowhere.md"),
        ({"context": "plums", "section": "## Nowhere"}, 404, "Nowhere"),
        ({"selectors": "a > > b"}, 400, "selector"),
    ):
        answer = visitor.send("GET", at(query).replace("/ask", "/ask.json"))
        assert (answer.status, words in answer.data["error"]) == (status, True)
        assert visitor.open(at(query)).status == status
    shown = visitor.open(at({**QUESTION, "budget": "many"}))
    assert [box.get("name") for box in shown.all("input") if box.get("aria-invalid")] == ["budget"]


def test_the_ruler_adds_up_to_the_tokens(visitor: Visitor) -> None:
    """Sent sections and pointers end where the answer does; omitted ones follow."""
    audit = visitor.json(at(QUESTION))["audit"]
    blocks = ruler(audit, 400)["blocks"]
    used = [(start, width) for _, state, start, width, _ in blocks if state in ("taken", "frame")]
    left = [start for _, state, start, _, _ in blocks if state not in ("taken", "frame")]
    assert sum(width for _, width in used) == pytest.approx(100 * audit["tokens"] / SCALE, abs=0.01)
    assert all(start >= sum(used[-1]) - 0.01 for start in left)


def test_a_reader_who_sees_less_is_shown_less(tmp_path: Path) -> None:
    files = {f"{name}/{name}.md": f"# {name}\n\nPlums of {name}.\n" for name in ("open", "shut")}
    sights = {
        "ann": Permissions(roots=(str(tmp_path / "open"),)),
        "ben": Permissions(domains=frozenset({"chat"})),
    }
    with visited(tmp_path, sights, readers=("ann",), files=files) as pages:
        shown = pages.data("ann", at({"context": "plums"}))
        assert shown["audit"]["documents"] == 1
        assert "shut" not in json.dumps(shown)
        assert pages.get("ben", at({"context": "a"})).status == 404


@pytest.mark.thorough
def test_a_large_folder_is_answered_from_what_is_ready(tmp_path: Path) -> None:
    """Until all of it is indexed the page says so and reloads; its form is always there."""
    files = {f"docs/n{number}.md": f"# Plum {number}\n\nPlums of {number}.\n" for number in range(3_000)}
    with serving(tmp_path, files=files) as running:
        visitor = Visitor(running)
        for _ in range(600):
            shown = visitor.open(at({"context": "plums"}))
            assert shown.fields("/ask")["context"] == "plums"
            waits = "being indexed" in shown.text or "Indexing" in shown.text
            assert ("data-poll" in shown.html) == waits
            if not waits:
                break
        assert visitor.json(at({"context": "plums"}))["audit"]["documents"] == 3_000
