"""Two ways to a cheaper list of tools: chosen domains, and two tools that find and call the others."""

import gc
import json
import re
import sys
from dataclasses import replace
from typing import Any
from weakref import ReferenceType, ref

import anyio
import pytest
from fastmcp import Client

from npl_index import estimator
from npl_index.errors import InvalidRequestError
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import Call as Report
from npl_mcp.app.call_reports import Reports
from npl_mcp.config.domains import LISTED, domains_named
from npl_mcp.config.settings import Settings, corpus_folder
from npl_mcp.server.server import create_server, tool_calls
from npl_mcp.tools.contract.aliases import ALIASES
from npl_mcp.tools.domains import listed_tools
from tests.conftest import calls, cases, listed, with_client

ALWAYS = ["search", "npl_load_tailored", "npl_section_index"]
SMALL = [*ALWAYS, "search_tools", "call_tool"]
NAMES = list(LISTED)
PROMPTS = sum(1 for kind in ("prompts", "agents") for _ in (corpus_folder() / kind).glob("*.md"))


def cost(tools: list[dict[str, Any]]) -> int:
    text = json.dumps({"tools": tools}, separators=(",", ":"), ensure_ascii=False)
    return estimator("o200k_base").count(text)


def small(settings: Settings, **changes: Any) -> Settings:
    return replace(settings, small_list=True, **changes)


@pytest.mark.parametrize("exact", [False, True])
def test_the_small_list(settings: Settings, exact: bool) -> None:
    """Three tools read, one finds and one calls, under 780 tokens together."""
    tools = listed(settings, small_list=True, exact_names=exact)
    assert [tool["name"] for tool in tools] == SMALL
    assert cost(tools) < 780
    assert not any("outputSchema" in tool for tool in tools)
    *_, find, call = tools
    assert [find["title"], call["title"]] == ["Find Tools", "Call Tool"]
    for name in NAMES:
        assert name in find["description"]


def test_the_whole_list_stays_within_its_budget(settings: Settings) -> None:
    assert cost(listed(settings)) <= 5_900
    assert cost(listed(settings, domains=("reading",))) <= 650


def test_no_description_gives_examples(settings: Settings) -> None:
    """Examples cost every agent tokens and narrow its attempts; errors and API.md have them."""
    said = json.dumps(listed(settings)) + json.dumps(listed(settings, small_list=True))
    assert not re.search(r"e\.g|for example|for instance|such as", said, re.IGNORECASE)


def test_a_template_says_what_comes_with_it(settings: Settings) -> None:
    said = {tool["name"]: tool["description"] for tool in listed(settings)}
    for kind, name in (("spec", "Spec"), ("impact", "Impact"), ("tdr", "TDR")):
        text = f"Return AOP, Agent Context, {name} template, and a concise Primer."
        assert said[f"directive_{kind}_template"] == text
    assert "`path`" in said["directive_file_get"]


def test_every_tool_says_what_it_returns_and_raises() -> None:
    """Its docstring says it; errors of all tools of a module are in the module's."""
    for spec in listed_tools():
        module = sys.modules[spec.function.__module__]
        said = f"{spec.function.__doc__}\n{module.__doc__}"
        assert ":returns: " in said, spec.name
        assert ":raises " in said, spec.name


def test_every_other_tool_is_found_by_the_words_of_its_name(settings: Settings) -> None:
    """Results look as in the list, and leave out listed tools."""
    whole = {tool["name"]: tool for tool in listed(settings)}
    names = [spec.name for spec in listed_tools()]
    asked = [("search_tools", {"query": name.replace("_", " ")}) for name in names]
    for name, answer in zip(names, calls(small(settings), asked), strict=True):
        tools = {tool["name"]: tool for tool in answer["data"]["tools"]}
        assert len(tools) <= 5, name
        assert tools.get(name) == (None if name in SMALL else whole[name])


@pytest.mark.parametrize(
    ("query", "name"),
    cases("npl_mcp/server/small_list_tables")["tools_are_found_by_what_they_do"],
)
def test_tools_are_found_by_what_they_do(settings: Settings, query: str, name: str) -> None:
    data = calls(small(settings), [("search_tools", {"query": query})])[0]["data"]
    assert name in [tool["name"] for tool in data["tools"]]
    assert "names" not in data


def test_where_nothing_fits_all_names_are_told(settings: Settings) -> None:
    """No search is a dead end; tools of the command lines stay out of sight."""
    for query in ("zzzz", "", "?"):
        data = calls(small(settings), [("search_tools", {"query": query})])[0]["data"]
        assert data == {"tools": [], "names": [spec.name for spec in listed_tools()]}


def test_a_tool_is_called_through_the_other(settings: Settings) -> None:
    """The current or a former name works, with or without arguments; the answer is the tool's."""
    direct = ("npl_load_components", {"items": "syntax"})
    answers = calls(
        small(settings),
        [
            direct,
            ("call_tool", {"name": direct[0], "arguments": direct[1]}),
            ("call_tool", {"name": "npl_load", "arguments": {"resource_type": "c", **direct[1]}}),
            ("session_list", {}),
            ("call_tool", {"name": "session_list"}),
            ("call_tool", {"name": "session_list", "arguments": None}),
            ("call_tool", {"name": "session_list", "arguments": {}}),
            ("call_tool", {"name": "session_list", "arguments": "{}"}),
            ("call_tool", {"name": "session_list", "arguments": {}, "request_id": "x"}),
        ],
    )
    assert all(answer["success"] for answer in answers)
    assert answers[:3] == [answers[0]] * 3
    assert answers[3:] == [answers[3]] * 6


@pytest.mark.parametrize(("tool", "arguments", "code", "text"), cases("npl_mcp/server/small_list"))
def test_failures_are_told_in_the_envelope(
    settings: Settings, tool: str, arguments: dict[str, Any], code: str, text: str
) -> None:
    """Failures of the called tool look as if it had been called by name."""
    answer = calls(small(settings), [(tool, arguments)])[0]
    assert answer["error_code"] == code
    assert text in answer["error"]


def test_without_the_small_list_there_are_no_such_tools(settings: Settings) -> None:
    answers = calls(settings, [("call_tool", {"name": "session_list"}), ("search_tools", {"query": "a"})])
    assert [answer["error_code"] for answer in answers] == ["NOT_FOUND", "NOT_FOUND"]


def test_exact_names_are_found_and_called(settings: Settings) -> None:
    told = small(settings, exact_names=True)
    data = calls(told, [("search_tools", {"query": "create session"})])[0]["data"]
    names = [tool["name"] for tool in data["tools"]]
    assert "create_session" in names
    assert {alias.new for alias in ALIASES.values()}.isdisjoint(names)
    made = {"name": "create_session", "arguments": {"title": "A"}}
    assert calls(told, [("call_tool", made)])[0]["success"]


async def test_a_call_is_reported_once_as_the_tool_it_was_for(settings: Settings) -> None:
    """Logs and metrics do not distinguish the two ways."""
    seen: list[Report] = []
    server = create_server(small(settings), tool_calls(App(small(settings)), Reports(seen.append)))

    async with Client(server) as client:
        await client.call_tool("call_tool", {"name": "session_list"})
    assert [report.tool for report in seen] == ["session_list"]


def test_an_ended_server_leaves_nothing(settings: Settings) -> None:
    async def use() -> ReferenceType[App]:
        app = App(small(settings))  # libraries keep what they know of functions
        async with Client(create_server(app.settings, tool_calls(app))) as client:
            await client.call_tool("search_tools", {"query": "entries"})
            await client.read_resource("npl://map")
        return ref(app)

    ended = anyio.run(use)
    gc.collect()
    assert ended() is None


CHOICES: dict[str, list[str]] = cases("npl_mcp/server/small_list_tables")["choices"]


@pytest.mark.parametrize("text", CHOICES)
def test_chosen_domains_are_listed_and_no_others(settings: Settings, text: str) -> None:
    """Names of domains or presets choose them; their order stays."""
    chosen = tuple(filter(None, text.split(",")))
    expected = [spec.name for spec in listed_tools(CHOICES[text])]
    assert [tool["name"] for tool in listed(settings, domains=chosen)] == expected
    assert domains_named(chosen) == tuple(CHOICES[text])


@pytest.mark.parametrize(("text", "changes", "more"), cases("npl_mcp/server/small_list_tables")["reading"])
def test_the_group_for_reading_lists_no_tools_for_prompts(
    settings: Settings, text: str, changes: dict[str, Any], more: list[str]
) -> None:
    """A second name can list them; they can be called all the same."""
    chosen = replace(settings, domains=tuple(text.split(",")), **changes)
    assert [tool["name"] for tool in listed(chosen)] == [*ALWAYS, *more]
    assert calls(chosen, [("npl_load_components", {"items": "syntax"})])[0]["success"]


def test_what_is_not_chosen_cannot_be_called(settings: Settings) -> None:
    """It has no name, former name or other way, and is never proposed."""
    for told in (replace(settings, domains=("npl",)), small(settings, domains=("npl",))):
        for name in ("session_list", "list_sessions", "worklog_status", "directive/files.list"):
            answers = calls(told, [(name, {}), ("call_tool", {"name": name})])
            assert [answer["error_code"] for answer in answers] == ["NOT_FOUND", "NOT_FOUND"]
            assert "session" not in answers[0]["error"].replace(name, "")


def test_resources_and_prompts_come_with_their_domain(settings: Settings) -> None:
    """Other domains have none; resources cost nothing in the list of tools."""

    async def ask(client: Client[Any]) -> list[int]:
        lists: list[Any] = [client.list_resources, client.list_resource_templates, client.list_prompts]
        return [len(await read()) for read in lists]

    bundled = replace(settings, roots=())
    assert with_client(bundled, ask) == [1, 2, PROMPTS]
    assert with_client(bundled, ask, domains=("npl", "chat")) == [1, 2, PROMPTS]
    assert with_client(bundled, ask, domains=("chat",)) == [0, 0, 0]


def test_the_small_list_of_chosen_domains(settings: Settings) -> None:
    """Without the domains for reading no tool is pinned."""
    for domain, pinned in {"chat": [], "npl": ALWAYS[1:], "search": ALWAYS[:1]}.items():
        names = [tool["name"] for tool in listed(settings, small_list=True, domains=(domain,))]
        assert names == [*pinned, *SMALL[3:]]
    told = small(settings, domains=("npl", "chat"))
    data = calls(told, [("search_tools", {"query": "create"})])[0]["data"]
    assert {tool["name"].partition("_")[0] for tool in data["tools"]} == {"chat"}


def test_an_unknown_domain_is_an_error(settings: Settings) -> None:
    for word in ("zzzz", "z" * 100_000):
        with pytest.raises(InvalidRequestError) as caught:
            create_server(replace(settings, domains=("npl", word)))
        assert str(caught.value).startswith(
            f"there is no domain {word[:64]!r}; use some of search, npl, cr, "
        )
