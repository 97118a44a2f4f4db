"""Every tool declares its actor and its references to other domains."""

import dataclasses
import inspect
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from npl_mcp.config.domains import LISTED, PRESETS
from npl_mcp.tools.access import ACTORS, FIELDS, FILTERS, NEEDS, REFERENCES, actors
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.tools.domains import domain_of, listed_tools, tool_named, unlisted_tools

EVERY = (*listed_tools(), *unlisted_tools())

OTHERS = {
    "agent_name": "which definition is loaded",
    "agent_type": "what kind of agent acts",
    "assigned_to": "who is to act",
    "members": "who may act",
    "name": "what something is called",
    "filename": "what a file is called",
}
"""Parameters whose names only look like an actor's, with their meanings."""

_SOUNDS = ("persona", "agent", "reviewer", "author", "user", "owner", "member", "name", "assign")


def parameters(spec: ToolSpec) -> list[str]:
    return list(inspect.signature(spec.function).parameters)[1:]


@pytest.mark.parametrize("spec", EVERY, ids=lambda spec: spec.name)
def test_every_parameter_that_says_who_acts_is_declared(spec: ToolSpec) -> None:
    """A new parameter of this kind has to be declared."""
    for name in parameters(spec):
        if name.endswith("_by") or any(part in name for part in _SOUNDS):
            assert name in ACTORS or name in OTHERS, name
    assert set(actors(spec.function)) <= set(ACTORS)


def test_what_is_declared_is_there() -> None:
    """No row names a removed parameter or tool."""
    every = {name for spec in EVERY for name in parameters(spec)}
    assert set(ACTORS) | set(OTHERS) <= every
    for tool, name in FILTERS:
        assert name in parameters(tool_named(tool))
        assert name not in actors(tool_named(tool).function)
    for domain, names in REFERENCES.items():
        here = {name for spec in EVERY if domain_of(spec) == domain for name in parameters(spec)}
        assert set(names) <= here
        assert set(names.values()) <= set(LISTED) - {domain}
    assert set(FIELDS) <= set(LISTED)
    assert set(NEEDS) <= set(LISTED)
    assert {name for names in NEEDS.values() for name in names} <= set(LISTED)


@pytest.mark.parametrize("domain", LISTED)
def test_parameters_that_name_something_of_another_domain_are_declared(domain: str) -> None:
    """They are ids of rows of other domains; a worklog's sessions are its own."""
    ids = {"session_id": "session", "artifact_id": "artifact", "room_id": "chat", "review_id": "review"}
    own = {name for name, other in ids.items() if other in NEEDS.get(domain, ())}
    own |= {"session_id"} if domain == "worklog" else set()
    for spec in EVERY:
        if domain_of(spec) == domain:
            for name in set(parameters(spec)) & set(ids) - own:
                assert ids[name] == domain or REFERENCES[domain][name] == ids[name], spec.name


_TELL = {"room": "chat", "chat": "chat", "artifact": "artifact", "review": "review", "worklog": "worklog"}


def fields(answer: Any) -> set[str]:
    names: set[str] = set()
    waiting, looked_at = [answer], list[Any]()
    while waiting:
        kind = waiting.pop()
        if kind in looked_at:
            continue
        looked_at.append(kind)
        waiting += get_args(kind)
        if dataclasses.is_dataclass(kind := get_origin(kind) or kind):
            hints = get_type_hints(kind)
            names |= hints.keys()
            waiting += hints.values()
    return names


@pytest.mark.parametrize("domain", LISTED)
def test_fields_that_tell_of_another_domain_are_declared(domain: str) -> None:
    own = set(NEEDS.get(domain, ()))
    for spec in EVERY:
        if domain_of(spec) == domain:
            answer = inspect.signature(spec.function, eval_str=True).return_annotation
            for name in fields(answer):
                told = {other for word, other in _TELL.items() if word in name} - own - {domain}
                assert not told or FIELDS.get(domain, {}).get(name) in told, (spec.name, name)


def test_every_tool_has_a_domain() -> None:
    """Tools of command lines have the domain of their module."""
    assert {domain_of(spec) for spec in listed_tools()} == set(LISTED)
    assert not [spec.name for spec in EVERY if domain_of(spec) is None]
    assert set(PRESETS["all"]) == set(LISTED)
