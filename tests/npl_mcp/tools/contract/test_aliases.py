"""Former names of tools are accepted."""

import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.config.settings import Settings
from npl_mcp.tools.contract.aliases import ALIASES, Alias, usable_aliases
from npl_mcp.tools.domains import listed_tools
from tests.conftest import Call, Connect, by_name, case_text, cases, envelope

# The migration map of the requirement: every tool the predecessor had.
MIGRATION = case_text("texts/old-names.txt")
ROWS = [tuple(line.split()) for line in MIGRATION.split("\n") if line]
RENAMED_ROWS = [(old, new) for old, new in ROWS if old not in (new, "npl_load")]


def test_the_table_is_the_migration_map() -> None:
    """All twenty-seven old names lead to their new ones; three keep their name, ``npl_load`` is a tool."""
    assert len(ROWS) == 27
    listed = {old: alias.new for old, alias in ALIASES.items() if alias.listed}
    directive = {old for old, new in listed.items() if new.startswith("directive_")}
    assert {old: listed[old] for old in listed.keys() - directive} == dict(RENAMED_ROWS)


@pytest.mark.parametrize(("old", "new"), RENAMED_ROWS)
def test_an_old_name_is_offered_where_its_tool_is(old: str, new: str) -> None:
    everything = {target for _, target in ROWS}
    assert old in usable_aliases(everything)
    assert old not in usable_aliases(everything - {new})


def test_the_migration_document_has_every_old_name() -> None:
    """Each has a line with its new name; the switch that lists them is named."""
    text = (Path(__file__).resolve().parents[4] / "MIGRATION.md").read_text(encoding="utf-8")
    for old, new in ROWS:
        assert any(f"`{old}`" in line and f"`{new}`" in line for line in text.splitlines()), old
    assert "--exact-names" in text


def test_new_names_are_what_model_providers_take() -> None:
    """Old names need not be accepted, and none is a new one as well."""
    for spec in listed_tools():
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", spec.name)
        assert spec.name not in ALIASES


@pytest.mark.parametrize(
    ("kind", "tool", "items"),
    [
        ("c", "npl_load_components", "syntax"),
        ("m", "npl_load_meta", "symbol-table"),
        ("s", "npl_load_style", "commit-message"),
    ],
)
def test_npl_load_goes_to_the_tool_of_its_kind(call: Call, kind: str, tool: str, items: str) -> None:
    """The new tool answers, envelope and all, and gets ``skip``."""
    old = call.do("npl_load", resource_type=kind, items=items)
    assert old == call.do(tool, items=items)
    assert old["loaded_items"] == [items]
    assert call.do("npl_load", resource_type=kind, items=items, skip=items)["skipped"] == [items]


@pytest.mark.parametrize("kind", ["x", "C", " ", ["c"], {}, 0, False])
def test_another_kind_is_refused(call: Call, kind: object) -> None:
    answer = call("npl_load", resource_type=kind, items="syntax")
    assert answer["error_code"] == "INVALID_PARAMETER"
    assert all(word in answer["error"] for word in ("resource_type", "'c'", "'m'", "'s'"))


@pytest.mark.parametrize(
    "kind", [{}, {"resource_type": None}, {"resource_type": ""}], ids=["absent", "null", "empty"]
)
def test_without_a_kind_components_are_loaded(call: Call, kind: dict[str, None]) -> None:
    assert call("npl_load", items="syntax", **kind)["data"]["loaded_items"] == ["syntax"]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    cases("npl_mcp/tools/contract/aliases")["other_arguments_are_checked_as_those_of_the_new_name"],
)
def test_other_arguments_are_checked_as_those_of_the_new_name(
    call: Call, arguments: dict[str, Any], code: str, text: str
) -> None:
    """An old name lets no other argument through."""
    answer = call("npl_load", **arguments)
    assert answer["error_code"] == code
    assert text in answer["error"]


def test_the_first_use_of_an_old_name_is_told(call: Call, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "npl_mcp.calls.invoking"):
        for name in ("list_sessions", "list_sessions", "session_list"):
            call.do(name)
    told = [
        (record.levelname, record.getMessage())
        for record in caplog.records
        if record.name == "npl_mcp.calls.invoking"
    ]
    message = "the tool name 'list_sessions' is deprecated; call 'session_list'"
    assert told == [("WARNING", message)]


def test_old_names_are_not_listed(settings: Settings) -> None:
    assert list(by_name(settings)) == [spec.name for spec in listed_tools()]


def test_the_setting_lists_old_names_instead_of_new_ones(settings: Settings) -> None:
    """Order, descriptions and parameters stay; new tools keep their names."""
    new, old = by_name(settings), by_name(settings, exact_names=True)
    renamed = {alias.new: name for name, alias in usable_aliases(new).items() if alias.listed}
    assert [name for name in old if name != "npl_load"] == [renamed.get(name, name) for name in new]
    assert {"npl_load", "git_tree", "npl_section_index"} <= set(old)
    assert set(renamed).isdisjoint(old)
    for name, tool in old.items():
        if name != "npl_load":
            assert tool == {**new[ALIASES.get(name, Alias(name)).new], "name": name}


def test_npl_load_is_listed_with_its_own_parameters(settings: Settings) -> None:
    """The kind may be left out; the others are those of the new tools."""
    tools = by_name(settings, exact_names=True)
    schema = tools["npl_load"]["inputSchema"]
    assert list(schema["properties"]) == ["items", "resource_type", "skip"]
    assert schema["required"] == ["items"]
    assert schema["properties"]["resource_type"]["enum"] == ["c", "m", "s"]
    assert "style" in tools["npl_load"]["description"]


@pytest.mark.thorough
@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("exact", [False, True])
def test_both_names_are_accepted_whichever_is_listed(
    settings: Settings, connect: Connect, exact: bool, structured: bool
) -> None:
    call = connect(replace(settings, exact_names=exact, structured=structured))
    old = call.result("npl_load", resource_type="c", items="syntax")
    new = call.result("npl_load_components", items="syntax")
    assert envelope(old) == envelope(new)
    assert old.structured_content == new.structured_content == (envelope(new) if structured else None)


@pytest.mark.parametrize(("exact", "nearest"), [(False, "npl_load_meta"), (True, "npl_load")])
def test_a_name_like_an_old_one_gets_the_new_name(
    settings: Settings, connect: Connect, exact: bool, nearest: str
) -> None:
    code, text = connect(replace(settings, exact_names=exact)).refused("npl_laod")
    assert code == "NOT_FOUND"
    near = text.partition("near: ")[2].split(", ")
    assert near[0] == nearest
    assert set(near) <= {spec.name for spec in listed_tools()} | {"npl_load"}


def test_a_name_like_none_gets_all_that_are_listed(call: Call) -> None:
    error = call.refused("zzzzzz")[1]
    assert [error.count(f" {name}") for name in ("dump_files", "git_tree,", "npl_section_index")] == [1, 1, 1]
    assert "npl_load," not in error
