"""First calls of an agent that has seen only the list of tools.

``intents.json`` was written by somebody who saw the list alone: for each tool what a user would say, and what
must be true afterwards. ``calls.json`` is what an agent called that saw the list and the sentences of users.
A call is judged by its schema, and by what it did to a small world: an effect looks at the answer, or at that
of a reading call made ``after`` it. The world begins again for each.
"""

import json
import shutil
import subprocess
from collections.abc import Callable
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import anyio
import pytest
from fastmcp import Client
from jsonschema import Draft202012Validator

from npl_index import estimator
from npl_mcp.config.settings import Settings
from npl_mcp.projects.directive import scaffold
from npl_mcp.server.server import create_server
from npl_mcp.tools.domains import listed_tools
from tests.conftest import cases
from tests.folders import fill

pytestmark = pytest.mark.thorough

CASES = Path(__file__).parents[2] / "cases" / "first-calls"


WORLD, INTENTS, CALLS = (
    json.loads((CASES / f"{name}.json").read_text(encoding="utf-8")) for name in ("world", "intents", "calls")
)


class World:
    """A project and the changes of agents; each server begins with the same."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._kept = folder / "world", folder / "kept"
        work = fill(self._folder / "work", WORLD["files"])
        scaffold(work)
        subprocess.run(["git", "init", "--quiet"], cwd=work, check=True, capture_output=True, timeout=30)
        self._settings = Settings(
            cwd=work,
            home=self._folder / "home",
            system=self._folder / "system",
            roots=(work,),
            data_dir=self._folder / "data",
            vocabulary_folders=(),
            warm_up=False,
        )
        assert all(json.loads(text)["success"] for text in self.ask(*WORLD["calls"]))
        shutil.copytree(self._folder, self._kept, symlinks=True)

    def ask(self, *calls: tuple[str, dict[str, Any]]) -> list[str]:
        """Return the text of each answer of one server."""

        async def run() -> list[str]:
            async with Client(create_server(self._settings)) as client:
                answers = [await client.call_tool(*call, raise_on_error=False) for call in calls]
                return [answer.content[0].text for answer in answers]

        return anyio.run(run)

    @cached_property
    def schemas(self) -> dict[str, Draft202012Validator]:
        """Return the list's schema of each tool's arguments, which allows no others."""

        async def run() -> list[Any]:
            async with Client(create_server(self._settings)) as client:
                return await client.list_tools()

        closed = {"additionalProperties": False}
        return {tool.name: Draft202012Validator({**tool.input_schema, **closed}) for tool in anyio.run(run)}

    def begin_again(self) -> None:
        shutil.rmtree(self._folder)
        shutil.copytree(self._kept, self._folder, symlinks=True)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("first-calls"))


def read(text: str) -> dict[str, Any]:
    """Return an answer's envelope; Markdown comes without one."""
    body: dict[str, Any] = json.loads(text) if text.startswith("{") else {"success": True, "data": text}
    return body


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def fits(expected: Any, value: Any) -> bool:
    """Return whether the expected part is there: keys of objects, entries of lists in any order."""
    if isinstance(expected, dict):
        return isinstance(value, dict) and all(fits(part, value.get(key)) for key, part in expected.items())
    if isinstance(expected, list):
        return isinstance(value, list) and all(any(fits(part, entry) for entry in value) for part in expected)
    return bool(value == expected)


CHECKS: dict[str, Callable[[Any, Any], bool]] = {
    "is": lambda expected, value: bool(value == expected),
    "has": fits,
    "says": lambda expected, value: all(part in as_text(value) for part in expected),
    "lacks": lambda expected, value: not any(part in as_text(value) for part in expected),
    "count": lambda expected, value: len(value) == expected,
    "most": lambda expected, value: bool(value <= expected),
    "tokens": lambda expected, value: estimator("o200k_base").count(as_text(value)) <= expected,
}
"""Checks of a part of an answer, by the word of the effect."""


def problems(effect: dict[str, Any], text: str, said: dict[str, Any]) -> list[str]:
    """Return what an effect misses.

    :param text: the answer it looks at.
    :param said: the call's arguments; an effect that no answer shows is looked up there, e.g. how long
        the call may wait.
    """
    body = read(text)
    if "refused" in effect:
        return [] if body.get("error_code") == effect["refused"] else [text]
    if not body["success"]:
        return [text]
    value = body["data"]
    for step in effect["at"].split(".") if "at" in effect else ():
        value = value[step]
    checks = effect.keys() - {"after", "at", "said"}
    wrong = [f"{name} {effect[name]}: {value}" for name in checks if not CHECKS[name](effect[name], value)]
    return wrong if fits(effect.get("said", {}), said) else [*wrong, f"said {said}"]


def judged(world: World, tool: str, call: dict[str, Any]) -> list[str]:
    """Return what is wrong with a call that was meant for the purpose of a tool."""
    effects, said = INTENTS[tool]["effect"], call["arguments"]
    if call["tool"] != tool:
        return [f"called {call['tool']}"]
    if wrong := [error.message for error in world.schemas[tool].iter_errors(said)]:
        return wrong
    world.begin_again()
    looks = [effect["after"] for effect in effects if "after" in effect]
    first, *later = world.ask((tool, said), *looks)
    rest = iter(later)
    answers = [next(rest) if "after" in effect else first for effect in effects]
    misses = [problems(effect, text, said) for effect, text in zip(effects, answers, strict=True)]
    return [*([] if read(first)["success"] else [first]), *chain.from_iterable(misses)]


@pytest.mark.parametrize("tool", INTENTS)
def test_the_first_call_is_right(world: World, tool: str) -> None:
    assert judged(world, tool, CALLS[tool]) == []


WRONG: dict[str, dict[str, Any]] = cases("npl_mcp/server/first_calls")
"""Calls that are nearly right: another tool, another type, an unknown parameter, a fact wrong or left out."""


@pytest.mark.parametrize("tool", WRONG)
def test_a_wrong_call_is_found_out(world: World, tool: str) -> None:
    """The judge detects calls that only look right."""
    assert judged(world, tool, WRONG[tool]) != []


def test_every_tool_has_an_intent() -> None:
    assert list(INTENTS) == list(CALLS)
    assert set(INTENTS) == {spec.name for spec in listed_tools()}
    assert all(case["intent"] and case["effect"] for case in INTENTS.values())
