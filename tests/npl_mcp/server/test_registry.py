"""The tool list keeps its promises, and an answer has two forms."""

import gc
import json
import logging
import re
import threading
import weakref
from dataclasses import replace
from typing import Any

import pytest
from fastmcp import Client

from npl_index import NPLError, estimator
from npl_mcp.app.app import App
from npl_mcp.calls.invoking import ToolCalls, to_text
from npl_mcp.config.docstrings import parameters
from npl_mcp.config.domains import LISTED
from npl_mcp.config.settings import Settings
from npl_mcp.server.server import create_server
from npl_mcp.tools.contract.error_codes import ErrorCode, code_of
from npl_mcp.tools.contract.parameters import unlisted
from npl_mcp.tools.contract.responses import encode
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.tools.domains import listed_tools
from tests.conftest import Connect, calls, cases, client_of, envelope, listed
from tests.until import soon

LIST_BUDGETS = cases("npl_mcp/server/registry")
"""Maximum tokens of each domain's tools, which every agent pays."""


@pytest.mark.parametrize("domain", LISTED)
def test_the_list_is_cheap(settings: Settings, domain: str) -> None:
    """It has no output schemas and no repeated defaults; each domain stays within its budget."""
    names = {spec.name for spec in listed_tools([domain])}
    tools = [tool for tool in listed(settings) if tool["name"] in names]
    assert len(tools) == len(names)
    text = json.dumps(tools, separators=(",", ":"), ensure_ascii=False)
    budget = LIST_BUDGETS[domain]
    assert estimator("o200k_base").count(text) <= budget * 1.04
    for word in ('"outputSchema"', '"default":null', '"default":false', '"anyOf"'):
        assert word not in text
    closed = [tool["name"] for tool in tools if "additionalProperties" in tool["inputSchema"]]
    assert closed == (["directive_file_get"] if domain == "directive" else [])


# Tools that remove something, or overwrite it without a copy.
DESTRUCTIVE = {"session_update", "update_cr_status", "update_cr_attrs", "manage_cr_sections", "delete_cr"}


def test_tools_claim_what_they_are(settings: Settings) -> None:
    """No tool claims an open world; readers and non-destructive writers say so. Hosts ask before they call
    destructive ones; all others only add, or can be undone. Titles are short, unique and written for people.
    """
    tools = listed(settings)
    for tool, spec in zip(tools, listed_tools(), strict=True):
        claimed = {"openWorldHint": False}
        if spec.read_only:
            claimed["readOnlyHint"] = True
        if not spec.read_only and not spec.destructive:
            claimed["destructiveHint"] = False
        if spec.idempotent and not spec.read_only:
            claimed["idempotentHint"] = True
        assert tool["annotations"] == claimed
        assert tool["description"].endswith((".", ")"))
    assert {spec.name for spec in listed_tools() if spec.destructive} == DESTRUCTIVE
    titles = [tool["title"] for tool in tools]
    assert len(set(titles)) == len(titles)
    assert all(re.fullmatch(r"[A-Z]\w+( \w+){0,3}", title) for title in titles)
    # Two servers list the same bytes, so that prompt caches hit.
    assert listed(settings) == tools


def test_no_tool_takes_what_the_list_does_not_show(settings: Settings) -> None:
    """An unknown argument is refused by name, before other mistakes."""
    requests = [(spec.name, {"nonsense": 1}) for spec in listed_tools()]
    for answer in calls(settings, requests):
        assert answer["error_code"] == "INVALID_PARAMETER"
        assert "'nonsense' is not a parameter" in answer["error"]


ALWAYS = ["search", "npl_load_tailored", "npl_section_index"]


def test_tools_for_reading_come_first(settings: Settings) -> None:
    """A model takes the first that fits. Clients that load tools late load three at once; those that take 40
    have all tools for documents, also those that a setting adds.
    """
    for write in (False, True):
        tools = listed(settings, write=write)
        names = [tool["name"] for tool in tools]
        assert names[:3] == ALWAYS
        metas = {tool["name"]: tool["_meta"] for tool in tools if "_meta" in tool}
        assert metas == {name: {"anthropic/alwaysLoad": True} for name in ALWAYS}
        wanted = {spec.name for spec in listed_tools(("npl", "cr", "directive", "utility"))}
        assert wanted < set(names[:40])
        assert ("npl_update_section" in names[:8]) is write


def test_examples_fit_the_parameters(settings: Settings) -> None:
    """Each parameter has an example value, which error messages show and which is valid."""
    for tool, spec in zip(listed(settings), listed_tools(), strict=True):
        shown = [name for name in spec.examples if name not in unlisted(spec.function)]
        assert shown == list(tool["inputSchema"]["properties"])
    requests = [
        (spec.name, {name: value})
        for spec in listed_tools()
        for name, value in spec.examples.items()
        if name in ("items", "agent_name", "context", "topics", "depth", "filter")
    ]
    for (tool, arguments), answer in zip(requests, calls(settings, requests), strict=True):
        assert answer["success"] or answer["error_code"] == "MISSING_REQUIRED", (tool, arguments, answer)


def test_structured_answers_follow_their_schema(settings: Settings, connect: Connect) -> None:
    """With the setting both forms say the same, and the listed schema holds for successes."""
    requests: list[tuple[str, dict[str, Any]]] = [
        ("npl_load_tailored", {"context": "pruning", "file": "guide.md", "explain": True}),
        ("npl_section_index", {"file": "guide.md"}),
        ("npl_load_components", {"items": "syntax"}),
        ("npl_load_agent", {"agent_name": "nobody"}),
    ]

    tools = {tool["name"]: tool for tool in listed(settings, structured=True)}
    assert all(tool["outputSchema"]["type"] == "object" for tool in tools.values())
    call = connect(replace(settings, structured=True))
    for name, arguments in requests:
        # The client itself checks structured content against the listed schema.
        result = call.result(name, **arguments)
        assert result.structured_content == envelope(result)


@pytest.mark.parametrize(
    ("wanted", "near"),
    cases("npl_mcp/server/registry")["an_unknown_tool_gets_near_names"],
)
def test_an_unknown_tool_gets_near_names(settings: Settings, wanted: str, near: str) -> None:
    """The answer is an envelope; near names may include tools that write."""
    answer = calls(settings, [(wanted, {})])[0]
    assert answer["error_code"] == "NOT_FOUND"
    assert near in answer["error"]


def error_classes(kind: type[NPLError]) -> list[type[NPLError]]:
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in error_classes(child))]


@pytest.mark.parametrize("kind", error_classes(NPLError))
def test_every_error_of_the_library_has_a_code(kind: type[NPLError]) -> None:
    assert code_of(kind) is not ErrorCode.INTERNAL_ERROR
    assert code_of(kind).name in parameters(ErrorCode)


def test_a_defect_is_masked_and_logged(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The caller learns only that it is a defect; the log has the traceback."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr("npl_mcp.app.context.Context.documents_of", broken)
    with caplog.at_level(logging.ERROR, "npl_mcp"):
        answer = calls(settings, [("npl_section_index", {})])[0]
    assert answer["error_code"] == "INTERNAL_ERROR"
    assert "secret" not in answer["error"]
    assert "secret detail" in caplog.text


async def test_warm_up_runs_next_to_the_server_and_ends_with_it(settings: Settings) -> None:
    """The core reference is indexed without a call, and the task ends with the server."""
    async with client_of(settings, warm_up=True):
        await soon(lambda: any(thread.name == "npl-warm-up" for thread in threading.enumerate()))
    assert not any(thread.name == "npl-warm-up" for thread in threading.enumerate())


@pytest.mark.parametrize("text", ['堆 ⌜é⌝ \n\t"', "a\ud800b", "\x00\x7f\u2028"])
def test_the_two_writers_of_json_agree(text: str) -> None:
    """The fast and the plain one agree, also for text that no UTF-8 stream can carry."""
    body = {"success": True, "data": {"content": text, "score": 0.25, "rows": [1, None]}}
    assert to_text(body) == encode(body)


async def test_a_call_that_fails_holds_no_memory(settings: Settings, request: pytest.FixtureRequest) -> None:
    """Its frames are freed with the answer, since the collector may run a gigabyte later."""

    class State:
        """The state of a parser."""

    states = []

    def fails(app: App) -> str:
        """Fail.

        :returns: nothing.
        :raises NPLError: always.
        """
        state = State()
        states.append(weakref.ref(state))
        try:
            raise ValueError(state)
        except ValueError as error:
            raise NPLError("it took too long") from error

    gc.disable()
    request.addfinalizer(gc.enable)
    server = create_server(settings, ToolCalls(App(settings), more=[ToolSpec(fails, read_only=True)]))
    async with Client(server) as client:
        for _ in range(2):
            answer = await client.call_tool("fails", {}, raise_on_error=False)
            assert "it took too long" in answer.content[0].text
        assert [state() for state in states] == [None, None]
