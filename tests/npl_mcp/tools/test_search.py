"""One search over everything: each hit has its address, and only shown hits are counted."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.app.queries import words_of
from npl_mcp.app.searching import KINDS, SNIPPET, snippet
from npl_mcp.config.settings import Settings
from tests import engines
from tests.conftest import Call, Connect, cases
from tests.folders import fill

CR = "---\ncode: GRD-001\ntitle: Shears\nstatus: Proposed\ntype: Bug Fix\npriority: High\n---\n# Shears\n\n"


@pytest.fixture
def filled(call: Call, docs: Path) -> Call:
    """A server with something of each kind that is about shears."""
    (docs / "crs").mkdir()
    config = '[project]\ncode = "GRD"\nname = "Garden"\nticketsPath = "crs"\n'
    (docs / ".mdt-config.toml").write_text(config, encoding="utf-8")
    (docs / "crs" / "GRD-001-shears.md").write_text(f"{CR}The shears are blunt.\n", encoding="utf-8")
    call("chat_create_room", name="shed", members=["ann", "ben"])
    call("chat_send_message", room_id=1, persona="ann", message="Where are the SHEARS, @ben?")
    todo = {"persona": "ben", "description": "Sharpen 100% of the shears", "assigned_to": "ann"}
    call("chat_create_todo", room_id=1, **todo)
    call("worklog_init", session_id="spring")
    call("worklog_log", agent_id="ann", action="done", summary="Oiled the shears.", tags=["tools"])
    plan = {"filename": "plan.md", "content": "# Shears\n\nBuy.\n"}
    call("artifact_create", name="plan", artifact_type="document", **plan)
    call("artifact_create", name="shears photo", artifact_type="image", filename="a.txt", content="x")
    return call


def searched(call: Call, query: str, **arguments: Any) -> Any:
    return call.do("search", query=query, **arguments)


def test_every_hit_has_an_address(filled: Call) -> None:
    data = searched(filled, "shears", limit=50)
    assert data["total"] == len(data["items"]) == sum(data["counts"].values())
    assert set(data["counts"]) == set(KINDS)
    kinds = [hit["kind"] for hit in data["items"]]
    assert kinds == sorted(kinds, key=list(KINDS).index)
    for hit in data["items"]:
        if "selector" in hit:
            loaded = filled("npl_load_tailored", selectors=[hit["selector"]], file=hit["file"])
            assert hit["text"][:20] in " ".join(loaded["data"]["content"].split())
    by_kind = {hit["kind"]: hit for hit in reversed(data["items"])}
    assert by_kind["cr"]["key"] == "GRD-001"
    worklog = by_kind["worklog"]
    assert (worklog["session_id"], worklog["seq"], worklog["by"]) == ("spring", 1, "ann")
    assert by_kind["artifact"]["artifact_id"] == 1
    assert by_kind["artifact"]["revision"] == 0
    todo, message = (hit for hit in data["items"] if hit["kind"] == "message")
    feed = {event["id"]: event for event in filled("chat_get_feed", room_id=1)["data"]["items"]}
    assert feed[todo["event_id"]]["event_type"] == "todo_create"
    assert message["text"] == "Where are the SHEARS, @ben?"
    assert any(hit.get("artifact_id") == 2 and "file" not in hit for hit in data["items"])


def test_a_change_request_is_no_second_document(filled: Call, docs: Path) -> None:
    (docs / "care.md").write_text("# Shears\n\nOil them.\n", encoding="utf-8")
    assert {hit["file"] for hit in searched(filled, "shears", kinds="document")["items"]} == {
        "care.md",
        "guide.md",
    }
    both = searched(filled, "blunt", kinds="document,cr")
    assert [hit["file"] for hit in both["items"]] == ["cr:GRD-001"]


@pytest.mark.parametrize(
    ("query", "kinds", "texts"), cases("npl_mcp/tools/search")["rows_are_found_by_their_words"]
)
def test_rows_are_found_by_their_words(filled: Call, query: str, kinds: str, texts: list[str]) -> None:
    data = searched(filled, query, kinds=kinds)
    assert [hit["text"] for hit in data["items"]] == texts
    assert data["total"] == len(texts)


ROWS = cases("npl_mcp/tools/search")["rows"]


@pytest.mark.engine("sqlite")
def test_symbols_are_words(call: Call) -> None:
    call("chat_create_room", name="r", members=["ann"])
    call("chat_send_message", room_id=1, persona="ann", message="🎯 reached")
    assert searched(call, "🎯", kinds="message")["total"] == 1


def test_words_are_found_as_in_documents(call: Call) -> None:
    call("chat_create_room", name="r", members=["ann"])
    for text in ROWS:
        call("chat_send_message", room_id=1, persona="ann", message=text)
    for text, queries in ROWS.items():
        for query in queries:
            hits = searched(call, query, kinds="message")["items"]
            assert [hit["text"] for hit in hits] == [" ".join(text.split())], query


SPELT = cases("npl_mcp/tools/search")["spelt"]


@pytest.mark.parametrize(
    ("query", "number"), cases("npl_mcp/tools/search")["identifiers_are_found_as_written"]
)
def test_identifiers_are_found_as_written(call: Call, query: str, number: int) -> None:
    """Messages and worklogs may have any signs around and within them."""
    call("chat_create_room", name="r", members=["ann"])
    call("worklog_init", session_id="s")
    for text in SPELT:
        call("chat_send_message", room_id=1, persona="ann", message=text)
        call("worklog_log", agent_id="a", action="did", summary=text)
    hits = searched(call, query, kinds="message,worklog")["items"]
    entries = [hit["seq"] for hit in hits if hit["kind"] == "worklog"]
    messages = [hit["text"] for hit in hits if hit["kind"] == "message"]
    assert (entries, messages) == ([number + 1], [" ".join(SPELT[number].split())])


def test_pages(filled: Call) -> None:
    whole = searched(filled, "shears", limit=50)["items"]
    paged = [searched(filled, "shears", limit=2, offset=at)["items"] for at in range(0, len(whole), 2)]
    assert [hit for hit in whole if hit not in paged[0]] != whole
    assert sorted(map(repr, (hit for page in paged for hit in page))) == sorted(map(repr, whole))
    assert paged[0][0]["kind"] == "document"
    assert searched(filled, "shears", offset=1_000)["items"] == []


def test_what_is_archived_is_not_found(filled: Call) -> None:
    filled("chat_update_room", room_id=1, persona="ann", action="archive")
    filled("artifact_archive", artifact_id=2)
    filled("artifact_archive", artifact_id=1)
    filled("worklog_close", session_id="spring", archive=True)
    assert set(searched(filled, "shears")["counts"]) == {"document", "cr"}


@pytest.mark.parametrize(("arguments", "code"), cases("npl_mcp/tools/search")["what_cannot_be_searched"])
def test_what_cannot_be_searched(call: Call, arguments: dict[str, Any], code: str) -> None:
    assert call("search", **arguments)["error_code"] == code


def test_records_are_not_searched_by_a_filter_of_documents(filled: Call) -> None:
    data = searched(filled, "shears", kinds="message,cr", filter={"has_code": False})
    assert (data["counts"], data["not_searched"]) == ({"cr": 1}, ["message: the filter is one of documents"])


@pytest.mark.engine("sqlite")
def test_documents_are_found_without_the_database(settings: Settings, call: Call) -> None:
    """A damaged or absent database costs the records alone."""
    settings.data_folder.mkdir(parents=True, exist_ok=True)
    (settings.data_folder / "npl.db").write_bytes(b"this is no database" * 100)
    data = searched(call, "pruning")
    assert data["counts"]["document"] > 0
    assert {part.partition(":")[0] for part in data["not_searched"]} == {"message", "worklog", "artifact"}
    code, text = call.refused("npl_load_tailored", selectors=["nosuchdoc > ## X"])
    assert (code, "nosuchdoc" in text) == ("NOT_FOUND", True)


def test_nothing_is_made_and_only_domains_that_are_there_are_searched(
    settings: Settings, connect: Connect
) -> None:
    engines.unused(settings.data_folder)
    call = connect(replace(settings, domains=("search", "npl")))
    assert set(searched(call, "pruning")["counts"]) == {"document"}
    assert not (settings.data_folder / "npl.db").exists()


def test_snippets_are_short() -> None:
    text = f"{'word ' * 100}needle {'more ' * 100}"
    shown = snippet(text, ["needle"])
    assert "needle" in shown
    assert shown.startswith("… ")
    assert shown.endswith("…")
    assert len(shown) <= SNIPPET + 4
    assert snippet("a\n\n b", []) == "a b"
    assert snippet(text, ["needle"], 0) == ""
    assert words_of("a pump - of the siphon.") == ["pump", "the", "siphon"]
    assert words_of("C") == ["c"]


PAGES = cases("npl_mcp/tools/search")["pages"]


@pytest.fixture
def lines(settings: Settings, connect: Connect, tmp_path: Path) -> Callable[..., list[str]]:
    """Return the lines of an answer in Markdown over two pages."""
    over = connect(replace(settings, roots=(fill(tmp_path / "pages", PAGES),), format="markdown"))
    return lambda query, **arguments: over.text("search", query=query, **arguments).splitlines()


@pytest.mark.parametrize(("query", "first"), cases("npl_mcp/tools/search")["lines_of_sections"])
def test_lines_of_sections(lines: Callable[..., list[str]], query: str, first: list[str]) -> None:
    """A line has path, line, selector, tokens and text; absent words are named before."""
    shown = lines(query, kinds="document")
    assert [line[: len(wanted)] for line, wanted in zip(shown, first, strict=False)] == first


def test_nothing_is_found_only_if_a_word_is_nowhere(lines: Callable[..., list[str]], tmp_path: Path) -> None:
    """Other forms of the words, each in another section of many, are hits."""
    notes = "".join(f"## Note {number}\n\nPlain text {number}.\n\n" for number in range(1_500))
    zoo = "## Animals\n\nThe zebras sleep.\n\n## Streets\n\nMind the crossings.\n"
    (tmp_path / "pages" / "notes.md").write_text(f"{notes}{zoo}", encoding="utf-8")
    shown = lines("zebra crossing", kinds="document")
    assert {line.rpartition("  ")[2] for line in shown[:2]} == {"The zebras sleep.", "Mind the crossings."}
    phrase = lines('"zebra crossing"', kinds="document")
    assert phrase == ['no section has: "zebra crossing"', "nothing found"]
    shown = lines("zebra kafka terraform", kinds="document")
    assert shown == ["no section has: kafka, terraform", "nothing found"]


def test_other_kinds_come_in_groups(lines: Callable[..., list[str]], call: Call) -> None:
    call.do("chat_create_room", name="r", members=["ann"])
    call.do("chat_send_message", room_id=1, persona="ann", message="A siphon leaks.")
    shown = lines("siphon")
    assert shown[0].startswith("pumps.md:13  ")
    assert shown[1:] == ["messages 1:", "room 1 event 2  ann  A siphon leaks."]


def test_absent_words_have_fields(call: Call) -> None:
    data = searched(call, "kafka zookeeper rebalance terraform bluetooth prunning")
    assert data["items"] == []
    assert set(data["absent"]) == {"kafka", "zookeeper", "rebalance", "terraform", "bluetooth", "prunning"}
    assert data["near"]["prunning"] == ["Pruning"]


def test_the_beginning_of_a_word_is_near_the_most_frequent_word(call: Call, tmp_path: Path) -> None:
    """The word may be in a title of front matter alone, or a part of an identifier."""
    text = "---\ntitle: Zymurgy\n---\nWe quandle.\n\n# Quandle_usd\n\nQuandle.\n\n# Other\n\nQuanta.\n"
    (tmp_path / "docs" / "beer.md").write_text(text)
    near = searched(call, "zymu quan")["near"]
    assert near == {"zymu": ["Zymurgy"], "quan": ["quandle", "Quanta"]}


@pytest.mark.parametrize(
    ("query", "absent"), cases("npl_mcp/tools/search")["what_stands_in_a_section_is_not_absent"]
)
def test_what_stands_in_a_section_is_not_absent(call: Call, docs: Path, query: str, absent: object) -> None:
    """A phrase may begin within an identifier, and a heading has an address that it does not show."""
    text = (
        "# Runs\n\nUse --dry-run.\n\n> how to\n> end a page's\n> *run*\n\n## [Norm](https://examplehost)\n\n"
    )
    (docs / "runs.md").write_text(f"{text}numpy.linalg.norm on 10.0.0.7\n", encoding="utf-8")
    assert searched(call, query).get("absent") == absent


def test_more_documents_may_have_a_word_than_are_ranked(call: Call, docs: Path) -> None:
    fill(docs, {f"{number}.md": f"# {number}\n\nzebra {str(number) * 9}\n" for number in range(70)})
    found = searched(call, "zebra", kinds="document")
    assert (found["total"] < 70, found["capped"]) == (True, ["document"])


def test_conditions_narrow_hits_and_their_number(filled: Call) -> None:
    """Parts of the path and excluded words narrow documents and records; records have no path."""
    every = searched(filled, "shears", limit=50)
    only = searched(filled, "shears", path=["grd-001"])
    assert only["counts"] == {"cr": every["counts"]["cr"]}
    assert only["total"] == len(only["items"]) < every["total"]
    without = searched(filled, "shears", without=["oiled", "blunt", "photo"], limit=50)
    missing = {kind: every["counts"][kind] - without["counts"].get(kind, 0) for kind in every["counts"]}
    assert missing["worklog"] == missing["cr"] == missing["artifact"] == 1
    assert missing["message"] == 0
    assert without["total"] == sum(without["counts"].values()) == len(without["items"])
