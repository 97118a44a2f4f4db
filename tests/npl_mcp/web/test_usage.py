"""The log of calls: off by default, shown on its page, and never delaying a call."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.stores.access import Permissions
from tests.conftest import cases
from tests.folders import fill
from tests.npl_mcp.http.http_server import call, serving
from tests.npl_mcp.web.browsing import Pages, Visitor, visited
from tests.until import until

PARTS = "".join(f"## Part {at}\n\nThe siphon lifts water over edge {at}.\n\n" for at in range(8))

SIPHON = {"file": "siphons.md", "context": "siphon edge 1"}

WHO = {
    "all": Permissions(),
    "prompts": Permissions(domains=frozenset({"npl"})),
    "rooms": Permissions(domains=frozenset({"chat", "session"})),
}


DOCS = {"docs/siphons.md": f"# Siphons\n\n{PARTS}"}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    folder = tmp_path_factory.mktemp("calls")
    sights = {**WHO, "docs": Permissions(roots=(str(folder / "docs"),))}
    with visited(folder, sights, "--log-calls", "contexts", files=DOCS) as site:
        yield site


def test_calls_are_logged_and_shown_to_those_that_may_see_them(pages: Pages) -> None:
    def seen(name: str, query: str = "show=all") -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = pages.data(name, f"/usage?{query}")["items"]
        return items

    assert seen("all") == []
    task = {"file": "siphons.md", "context": "siphon edge 3 \0 <b>", "token_budget": 300}
    first = pages.call("prompts", "npl_load_tailored", **task)
    offered = first["suggestions"][0]["selector"]
    pages.call("prompts", "npl_load_tailored", file="siphons.md", selectors=[offered])
    pages.call("docs", "npl_load_tailored", file="siphons.md", context="edge 5")
    pages.call("rooms", "chat_list_rooms")
    call(pages.server, "no_such_tool", {}, Authorization=f"Bearer {pages.tokens['rooms']}")
    until(lambda: len(seen("all")) >= 5)
    assert [(row["who"], row["tool"]) for row in seen("all")] == [
        ("rooms", "unknown"),
        ("rooms", "chat_list_rooms"),
        ("docs", "npl_load_tailored"),
        ("prompts", "npl_load_tailored"),
        ("prompts", "npl_load_tailored"),
    ]
    loaded = seen("all")[-1]
    assert loaded["used"] == first["total_tokens"]
    assert loaded["context"] == "siphon edge 3 \ufffd <b>"
    # The link shows what the agent got, with its file and its budget.
    got = pages.data("all", loaded["href"])
    assert (got["asked"]["file"], got["asked"]["token_budget"]) == ("siphons.md", 300)
    assert got["audit"]["content_tokens"] == first["total_tokens"]
    assert {name: {row["who"] for row in seen(name)} for name in pages.tokens} == {
        "all": {"prompts", "docs", "rooms"},
        "prompts": {"prompts", "docs"},
        "rooms": {"rooms"},
        "docs": {"docs"},
    }
    assert [row["context"] for row in seen("all", "show=all&filter=siphon+edge")] == [loaded["context"]]
    failed = pages.visitor("all").open("/usage?show=failed").text
    assert "NOT_FOUND" in failed
    assert "there is no tool 'no_such_tool'" in failed


CASES: dict[str, Any] = cases("npl_mcp/web/usage")
"""Questions, most of which nothing answers; arguments, with the address where a person asks the same."""


def test_questions_without_an_answer_come_first(tmp_path: Path) -> None:
    """Each has the words that no section has, and its place in the question files."""
    with serving(tmp_path, "--log-calls", "contexts", files=DOCS) as running:
        visitor = Visitor(running)
        for who, context in CASES["questions"]:
            call(running, "npl_load_tailored", {"context": context}, **{"User-Agent": who})
        until(lambda: len(visitor.json("/usage?show=all")["items"]) == len(CASES["questions"]))
        rows = {row["call"]: row for row in visitor.json("/usage")["items"]}
        assert not {"lifts water over edge 2", "edge 4"} & rows.keys()
        missing = rows["the valve of the bilge pumps"]
        assert (missing["answer"], missing["who"]) == ("nothing", "ben")
        assert {"bilge", "valve"} <= set(missing["reason"].split(", "))
        links = [link.get("href") for link in visitor.open("/usage").all("a")]
        assert "/ask?context=the+valve+of+the+bilge+pumps" in links
        fill(tmp_path, {"docs/questions.md": "## valve of the bilge pumps\n\n- nowhere\n"})
        assert "In the questions" in visitor.open("/usage").text
        for given, _ in CASES["asked"]:
            call(running, "npl_load_tailored", given)
        asked = len(CASES["asked"])
        total = asked + len(CASES["questions"])
        until(lambda: len(visitor.json("/usage?show=all")["items"]) == total)
        hrefs = [row["href"] for row in visitor.json("/usage?show=all")["items"][:asked]]
        assert hrefs[::-1] == [href for _, href in CASES["asked"]]


@pytest.mark.parametrize("log", ["off", "on"])
def test_a_log_without_questions_says_how_to_keep_them(tmp_path: Path, log: str) -> None:
    with serving(tmp_path, "--log-calls", log, files=DOCS) as running:
        visitor = Visitor(running)
        assert call(running, "npl_load_tailored", SIPHON).status == 200
        until(lambda: len(visitor.json("/usage?show=all")["items"]) == int(log == "on"))
        assert visitor.json("/usage")["items"] == []
        assert "--log-calls contexts" in visitor.open("/usage").text
        assert (tmp_path / "data" / "npl.db").exists() == (log == "on")
