"""Arguments as agents send them: empty optional ones, other names, a text for a list of one."""

import inspect
from typing import Any

import pytest

from npl_mcp.config.settings import Settings
from npl_mcp.tools.contract.parameters import EMPTY
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.tools.domains import declared_tools
from tests.conftest import Call, calls

SPECS = [spec for spec in declared_tools() if len(inspect.signature(spec.function).parameters) > 1]
QUESTION = "how often is each bed watered"


def optional(spec: ToolSpec) -> list[str]:
    parameters = list(inspect.signature(spec.function).parameters.values())[1:]
    return [parameter.name for parameter in parameters if parameter.default is not parameter.empty]


@pytest.mark.thorough
@pytest.mark.parametrize("spec", SPECS, ids=[spec.name for spec in SPECS])
def test_an_empty_optional_argument_is_not_given(settings: Settings, spec: ToolSpec) -> None:
    """The answer equals one without it, or refuses the empty value; null never changes an answer."""
    cases = [(name, empty) for name in optional(spec) for empty in (None, "", [])]
    base = {name: value for name, value in spec.example.items() if name not in EMPTY}
    required = {name: value for name, value in base.items() if name not in optional(spec)}
    requests: list[tuple[str, dict[str, Any]]] = [
        (spec.name, {**required, name: empty}) for name, empty in cases
    ]
    plain, *answers = calls(settings, [(spec.name, required), *requests])
    for (name, empty), answer in zip(cases, answers, strict=True):
        if empty is None or name not in EMPTY:
            assert answer.get("parameter") == plain.get("parameter"), (name, empty, answer)
            assert not spec.read_only or answer == plain, (name, empty)
        elif EMPTY[name] is not None:
            assert answer["error_code"] == "INVALID_PARAMETER", (name, empty, answer)
            assert f"{name} is empty; give {EMPTY[name]}" in answer["error"]


def test_an_empty_id_of_a_request_is_refused(call: Call) -> None:
    """Its caller relies on it; null means that there is no id."""
    assert "request_id is empty" in call("session_create", title="a", request_id="")["error"]
    assert call("session_create", title="a", request_id=None)["success"]


@pytest.mark.parametrize(
    ("tool", "sent", "same"),
    [
        ("npl_load_tailored", {"query": QUESTION}, {"context": QUESTION}),
        ("npl_load_tailored", {"q": QUESTION, "context": QUESTION}, {"context": QUESTION}),
        (
            "npl_load_tailored",
            {"question": QUESTION, "path": "guide.md"},
            {"context": QUESTION, "file": "guide.md"},
        ),
        ("npl_load_tailored", {"topics": "Watering"}, {"topics": ["Watering"]}),
        ("npl_load_tailored", {"selectors": "guide > ## A, B"}, {"selectors": ["guide > ## A, B"]}),
        ("npl_section_index", {"path": ["guide.md"], "file": ""}, {"file": "guide.md"}),
        ("search", {"context": "water"}, {"query": "water"}),
        ("search", {"q": "water", "path": "plants"}, {"query": "water", "path": ["plants"]}),
    ],
)
def test_what_is_meant(call: Call, tool: str, sent: dict[str, Any], same: dict[str, Any]) -> None:
    assert call(tool, **sent) == call(tool, **same)


def test_two_values_of_one_parameter_are_refused(call: Call) -> None:
    answer = call("npl_load_tailored", query="a b", context="c d")
    assert (answer["error_code"], answer["parameter"]) == ("INVALID_PARAMETER", "context")
    assert "two arguments give 'context' different values" in answer["error"]
    assert "'question' is not a parameter" in call("npl_load_agent", agent_name="a", question="b")["error"]
