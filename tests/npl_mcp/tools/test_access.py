"""The annotations of a tool name its actor and the other domains that it refers to."""

import inspect
from collections.abc import Iterator

import pytest

from npl_mcp.config.domains import LISTED, NEEDS, PRESETS, Of
from npl_mcp.tools.contract.spec import ToolSpec, answer_fields
from npl_mcp.tools.domains import declared_tools, listed_tools
from tests.conftest import cases

EVERY = declared_tools()
each_tool = pytest.mark.parametrize("spec", EVERY, ids=lambda spec: spec.name)

OTHERS = cases("npl_mcp/tools/access")["others"]
"""Parameters whose names only look like an actor's, with their meanings."""

FILTERS = {("chat_list_rooms", "persona"), ("review_list", "reviewer_persona")}
"""Parameters with an actor's name that only filter a list."""

_SOUNDS = ("persona", "agent", "reviewer", "author", "user", "owner", "member", "name", "assign")


def parameters(spec: ToolSpec) -> list[str]:
    return list(inspect.signature(spec.function).parameters)[1:]


@each_tool
def test_every_parameter_that_says_who_acts_is_declared(spec: ToolSpec) -> None:
    """A new parameter of this kind has to be declared."""
    for name in parameters(spec):
        if name.endswith("_by") or any(part in name for part in _SOUNDS):
            assert name in spec.actors or name in OTHERS or (spec.name, name) in FILTERS


def test_the_exceptions_are_there() -> None:
    """No row names a removed parameter or tool."""
    assert OTHERS.keys() <= {name for spec in EVERY for name in parameters(spec)}
    assert {(spec.name, name) for spec in EVERY for name in parameters(spec)} >= FILTERS
    assert {*NEEDS, *(name for names in NEEDS.values() for name in names)} <= set(LISTED)


IDS = {"session_id": "session", "artifact_id": "artifact", "room_id": "chat", "review_id": "review"}


def others(spec: ToolSpec) -> set[str]:
    """Return the domains that a caller of a tool may not see; a worklog's sessions are its own."""
    own = {spec.domain, *NEEDS.get(spec.domain or "", ())}
    return set(LISTED) - own - ({"session"} if spec.domain == "worklog" else set())


@each_tool
def test_parameters_that_name_a_record_of_another_domain_are_declared(spec: ToolSpec) -> None:
    named = {name: IDS[name] for name in parameters(spec) if IDS.get(name) in others(spec)}
    assert spec.references == named


_TELL = {"room": "chat", "chat": "chat", "artifact": "artifact", "review": "review", "worklog": "worklog"}
_STORES = {f"npl_mcp.{package}.{domain}": domain for package in ("stores", "tools") for domain in LISTED}


def domains_in(name: str, parts: list[object]) -> Iterator[str]:
    """Yield the domains that a field's name or the types of its values tell of."""
    yield from (domain for word, domain in _TELL.items() if word in name)
    for part in parts:
        home = ".".join(getattr(part, "__module__", "").split(".")[:3])
        yield from filter(None, [_STORES.get(home)])


@each_tool
def test_fields_with_data_of_another_domain_are_declared(spec: ToolSpec) -> None:
    """Fields inside a declared one are left out with it."""
    hidden = {part.domain for _, _, parts in answer_fields(spec.function) for part in parts if of(part)}
    for owner, name, parts in answer_fields(spec.function):
        inside = _STORES.get(".".join(owner.__module__.split(".")[:3])) in hidden - {spec.domain}
        told = set(domains_in(name, parts)) & others(spec)
        assert inside or not told or spec.fields.get(name) in told, (owner, name)


def of(part: object) -> bool:
    return isinstance(part, Of)


PATHS = {"cr": {"path"}, "npl": {"location", "source_path"}}
"""Names of paths that may lie outside the roots; a caller with a token gets their ends."""


@each_tool
def test_absolute_paths_are_declared(spec: ToolSpec) -> None:
    names = {name for _, name, _ in answer_fields(spec.function)}
    assert spec.paths == names & PATHS.get(spec.domain or "", set())


def test_every_tool_has_a_domain() -> None:
    """Tools of command lines have the domain of their module."""
    assert {spec.domain for spec in listed_tools()} == set(LISTED)
    assert not [spec.name for spec in EVERY if spec.domain is None]
    assert set(PRESETS["all"]) == set(LISTED)
