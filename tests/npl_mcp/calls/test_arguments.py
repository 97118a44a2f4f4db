"""Arguments that are too many, too long or too deep, and values of a wrong type, are refused."""

import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from npl_index.errors import InvalidRequestError, NPLError
from npl_mcp.calls.arguments import MAX_ENTRIES, validated
from npl_mcp.calls.messages import MAX_VALUES
from npl_mcp.config.settings import Settings
from npl_mcp.server.registry import ListedTool
from npl_mcp.tools.contract.error_codes import MAX_ERROR_BYTES, MAX_PROBLEMS, invalid_arguments, shortened
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.tools.domains import declared_tools, tool_named
from tests.conftest import Call, cases
from tests.npl_mcp.tools.strategies import types_of

MANY = 100_000

TOO_MUCH: dict[str, tuple[str, Callable[[], dict[str, Any]], str]] = {
    "many numbers": ("npl_load_tailored", lambda: {"topics": list(range(MANY))}, "100,000 entries"),
    "many texts": ("npl_load_tailored", lambda: {"selectors": ["a"] * MANY}, "100,000 entries"),
    "many keys": ("npl_section_index", lambda: dict.fromkeys(map(str, range(MANY)), 1), "100,000 arguments"),
    "a long name": ("npl_section_index", lambda: {"x" * MANY: 1}, "is not a parameter"),
}
"""Tools with arguments, which are made on demand, and a part of the error."""


@pytest.mark.parametrize("case", TOO_MUCH)
def test_too_much_is_refused_before_anything_walks_it(settings: Settings, case: str) -> None:
    """The short error names the excess, and next to no memory is needed for it."""
    name, make, text = TOO_MUCH[case]
    arguments = make()
    spec = tool_named(name)
    with pytest.raises(InvalidRequestError):
        validated(spec, {"nonsense": 1})  # what is imported then is not counted
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRequestError) as raised:
            validated(spec, arguments)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert text in str(raised.value)
    assert len(str(raised.value)) < 1_000
    assert peak < 2 * MANY


def test_too_much_ends_in_the_envelope(call: Call) -> None:
    answer = call("npl_load_tailored", topics=[1] * (MAX_ENTRIES + 1))
    assert answer == {
        "success": False,
        "error": "npl_load_tailored: topics: there are 1,001 entries; at most 1,000, "
        'e.g. topics=["example fence", "placeholder"]',
        "error_code": "INVALID_PARAMETER",
        "parameter": "topics",
    }


def test_what_stores_keep_is_not_too_much(call: Call) -> None:
    """A parameter for any JSON takes the values of 64 Ki characters, and a truth value."""
    data = {"a": [1] * (MAX_VALUES - 10)}
    call("worklog_init", session_id="s")
    for kept in (data, True):
        assert call("worklog_log", agent_id="a", action="b", summary="c", data=kept)["success"]


def test_an_error_names_the_first_ten_problems(call: Call) -> None:
    answer = call("npl_load_tailored", topics=list(range(MAX_ENTRIES)))
    assert answer["error"].count("topics[") == MAX_PROBLEMS
    assert answer["error"].endswith(f"and {MAX_ENTRIES - MAX_PROBLEMS} more problems")
    assert "topics[9]" in answer["error"]
    few = invalid_arguments([{"type": "a", "loc": ("x",), "msg": "No"}] * 2, "t", {})
    assert str(few) == "t: x: no"


MEANT = cases("npl_mcp/calls/arguments")["meant"]


@pytest.mark.parametrize(("tool", "name", "meant"), MEANT)
def test_a_wrong_name_leads_to_the_right_one(call: Call, tool: str, name: str, meant: str) -> None:
    assert f"'{name}' is not a parameter; {meant}" in call(tool, **{name: 1})["error"]


MIDDLES = {"long": "x" * MANY, "control characters": "\x01" * MAX_ERROR_BYTES}
MIDDLES |= {"wide characters": "😀" * MAX_ERROR_BYTES, "quotes": '"\\' * MAX_ERROR_BYTES}
TEXTS = {name: f"what is wrong {middle}; what to do" for name, middle in MIDDLES.items()}
TEXTS |= {"short": "a", "as long as may be": "a" * (MAX_ERROR_BYTES - 102)}


@pytest.mark.parametrize("case", TEXTS)
def test_no_error_is_larger_than_four_kilobytes(case: str) -> None:
    """It begins with the mistake and ends with the remedy; a short one stays as it is."""
    text = TEXTS[case]
    short = shortened(text)
    assert len(json.dumps(short, ensure_ascii=False).encode()) <= MAX_ERROR_BYTES - 100
    assert (short == text) is (len(text) < MAX_ERROR_BYTES)
    assert short[:12] == text[:12]
    assert short[-12:] == text[-12:]


LONG_NAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "a tool": ("x\x01" * MANY, {}),
    "a file": ("npl_section_index", {"file": "\x01" * 4_000}),
    "a selector": ("npl_load_tailored", {"selectors": ["## " + "\x01" * 4_000] * 60}),
    "an item": ("npl_load_components", {"items": ",".join(["\x1b" * 300] * 300)}),
    "a choice": ("session_list", {"status": "\x01" * MANY}),
}


@pytest.mark.parametrize("case", LONG_NAMES)
def test_no_tool_answers_a_mistake_with_more(call: Call, case: str) -> None:
    """The limit holds for every part of the arguments that an error quotes."""
    tool, arguments = LONG_NAMES[case]
    answer = call(tool, **arguments)
    assert answer["success"] is False
    assert len(json.dumps(answer, ensure_ascii=False).encode()) <= MAX_ERROR_BYTES


@pytest.mark.parametrize("given", [3, 3.0, "3"])
def test_a_whole_number_may_be_written_in_other_ways(call: Call, given: object) -> None:
    """JSON has one kind of number, and some clients send texts."""
    assert call("chat_list_rooms", limit=given)["data"]["limit"] == 3


NO_NUMBERS = [
    ("artifact_get", "artifact_id", given) for given in (True, False, 3.5, "three", "3.5", None, [3], {})
]
NO_TRUTHS = [("worklog_read", "peek", given) for given in (1, 0, 1.0, "yes", "on", "t", " ", [True])]


@pytest.mark.parametrize(("tool", "name", "given"), NO_NUMBERS + NO_TRUTHS)
def test_a_value_of_another_kind_is_refused(call: Call, tool: str, name: str, given: object) -> None:
    """``true`` is no number, which would be the artifact 1; a number or another word is no truth value."""
    answer = call(tool, **{"agent_id": "a"} if name == "peek" else {}, **{name: given})
    assert (answer["success"], answer["error_code"]) == (False, "INVALID_PARAMETER")
    assert ("true or false" if name == "peek" else name) in answer["error"]


@pytest.mark.parametrize("given", [True, "true", "True", False, "false"])
def test_a_truth_value_may_be_a_text(call: Call, given: object) -> None:
    call("worklog_init", session_id="s")
    assert call("worklog_read", agent_id="a", peek=given)["success"]


def test_lists_and_objects_may_be_json_in_a_text(call: Call) -> None:
    """Some clients write them so; a list of names may also be names with commas."""
    assert call("chat_create_room", name="r", members='["ann", "bob"]')["data"]["members"] == ["ann", "bob"]
    call("worklog_init", session_id="s")
    entry = {"agent_id": "a", "action": "b", "summary": "c"}
    assert call("worklog_log", **entry, tags='["t"]', refs=' {"files": ["a.py:3"]}', data="[1]")["success"]
    (read,) = call("worklog_read", agent_id="a")["data"]["items"]
    assert (read["tags"], read["refs"], read["data"]) == (["t"], {"files": ["a.py:3"]}, "[1]")
    index = call("npl_section_index", file='["guide.md", "plants"]', filter='{"has_tables": true}')["data"]
    assert [section["name"] for section in index["sections"]] == ["guide.md"]
    for items in (["syntax", "fences"], '["syntax", "fences"]'):
        loaded = call("npl_load_components", items=items, skip=["syntax"])["data"]
        assert (loaded["loaded_items"], loaded["skipped"]) == (["fences"], ["syntax"])


@pytest.mark.parametrize(
    "text",
    ["", "a, b", "[", "[1,", "{}", '"a"', "[[]]", "[NaN]", "[" * 100, f"[{'1,' * MAX_VALUES}1]", "[\ud800]"],
)
def test_a_text_that_holds_no_list_is_refused(call: Call, text: str) -> None:
    answer = call("chat_create_room", name="r", members=text)
    assert (answer["success"], answer["error_code"]) == (False, "INVALID_PARAMETER")
    assert 'members=["planner", "coder"]' in answer["error"]
    many = call("chat_create_room", name="r", members=json.dumps(["a"] * (MAX_ENTRIES + 1)))
    assert f"members: there are {MAX_ENTRIES + 1:,} entries; at most {MAX_ENTRIES:,}" in many["error"]


SPECS = declared_tools()
WRONG = {"integer": True, "number": False, "boolean": 1}


@pytest.mark.parametrize("spec", SPECS, ids=[spec.name for spec in SPECS])
def test_every_number_and_truth_value_of_every_tool_is_guarded(settings: Settings, spec: ToolSpec) -> None:
    """The form of its annotation does not matter."""
    tool = ListedTool.of(spec, settings.token_budget, structured=False)
    for name, schema in tool.parameters.get("properties", {}).items():
        for kind in set(types_of(schema)) & WRONG.keys():
            with pytest.raises(NPLError, match=f"{name}: input should be .*true or false"):
                validated(spec, {**spec.examples, name: WRONG[kind]})
