"""Every regular expression of the program takes time in proportion to any text.

A slow expression stops the whole process, since ``re`` holds the interpreter's lock.
"""

import ast
import fnmatch
import importlib
import re
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from npl_index.items import notation
from npl_index.ranking import spelling
from npl_index.tokens.estimated import piece_pattern
from npl_mcp.config import kinds
from npl_mcp.stores.base import postgres, sqlite
from npl_mcp.stores.chat import mentions

ROOT = Path(__file__).resolve().parent.parent
SEARCHING = frozenset({"search", "finditer", "findall", "sub", "subn", "split"})
ANCHORED = frozenset({"match", "fullmatch"})


def glob(text: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(text))


# Expressions that are put together when the program runs. Each is represented by all there are, or by
# instances with everything that can be put in.
MADE = {
    "npl_index/tokens/estimated.py": (
        "search",
        [
            piece_pattern(model, ascii_only=ascii_only)
            for model in ("o200k_base", "cl100k_base")
            for ascii_only in (True, False)
        ],
    ),
    "npl_index/ranking/spelling.py": ("search", [re.compile(spelling.pattern("ab c"))]),
    "npl_index/ranking/standing.py": ("search", [re.compile(r"[\u0400-\u04ff]")]),
    "npl_index/items/notation.py": ("search", [re.compile(text) for _, _, text in notation._TABLE]),
    "npl_index/library/patterns.py": ("match", list(map(glob, ("*a*b*c*", "a?[b-d]*e")))),
    "npl_index/library/ignoring.py": ("match", [re.compile(fnmatch.translate("*a*b*") + "|" + "ab")]),
    "npl_mcp/web/pages/search.py": ("search", [re.compile("ab|a|b", re.IGNORECASE)]),
    "npl_mcp/app/queries.py": (
        "search",
        [
            re.compile(text, re.IGNORECASE)
            for text in (r"(?<!\w)a\ b(?!\w)", r"(?<!\w)a(?!\w)|(?<!\w)aa(?!\w)|é")
        ],
    ),
    "npl_mcp/app/searching.py": ("search", [re.compile(r"(?<!\w)a\ b(?!\w)")]),
    "npl_mcp/config/kinds.py": (
        "fullmatch",
        [re.compile(kind.pattern) for kind in vars(kinds).values() if isinstance(kind, kinds.ValueKind)],
    ),
    "npl_mcp/documents/change_requests.py": ("match", [re.compile(r"AB-0*1(?![0-9])", re.IGNORECASE)]),
    "npl_mcp/stores/chat/mentions.py": ("search", [mentions.mention_of(["bo", "bo-2", "Cy D"])]),
    "npl_mcp/stores/base/sqlite.py": ("search", [re.compile(r"IN :ab\b")]),
    "npl_mcp/stores/base/postgres.py": ("search", [re.compile(r"IN :ab\b")]),
    "npl_mcp/stores/base/engine.py": (
        "search",
        [re.compile(reason.pattern) for reason in (*postgres._REASONS, *sqlite._REASONS)],
    ),
    # The user's own expression, over the user's own files, in the process of the command line.
    "npl_index/items/agents.py": ("search", []),
}

FOUND_SLOW = {
    "footnote": (r"\[\^([^\]\s]+)\]", 0, "search"),
    "number": (r"\d+(?:\.\d+)*[.)]?[ \t]+", 0, "search"),
    "field": (r"(?m)^[ \t]+(name|version)[ \t]*:[ \t]*(.*?)[ \t]*(?:[ \t]#.*)?$", 0, "search"),
    "plain title": (rb"#[ \t]+([^ \t\r\n\0#\\][^\r\n\0#\\]*?)[ \t]*(?:[\r\n]|\Z)", 0, "match"),
    "version": (r"(?m)^[ \t]+version:[ \t]*(.*?)[ \t]*(?:[ \t]#.*)?$", 0, "search"),
    "comment": (r"(?:^|[ \t]+)#(?:[ \t]|$)", 0, "search"),
    "end": (r"[\r\n]*\Z", 0, "search"),
    "nested": (r"(?:a+)+b", 0, "match"),
    "two ways": (r"(?:a|a)*b", 0, "match"),
    "empty ends": (r"a*a*a*b", 0, "match"),
    "looks back": (
        r"(?m)[:(*!](?:(?<=[:(])(?:[^\S\n]|[*)\] ])*$|(?<=[*])[*][^\S\n]*$|(?<=!)!!)",
        0,
        "search",
    ),
    "far apart": (r"x.*?y.*?z", 0, "match"),
}
"""Former expressions with quadratic time, and textbook cases: the test must detect them."""


class Expression(NamedTuple):
    """An expression and one way in which it is used."""

    where: str
    pattern: re.Pattern[Any]
    use: str


@cache
def expressions(folder: Path) -> tuple[Expression, ...]:
    """Return every expression in the source files of a folder with each way it is used."""
    unique: dict[tuple[str, Any, int, str], Expression] = {}
    for path in sources()[folder]:
        name = path.relative_to(ROOT).as_posix()
        module = importlib.import_module(name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        for label, pattern, uses in (*kept(module, methods(nodes)), *written(module, nodes, name)):
            for use in sorted(uses):
                where = f"{name}:{label}"
                unique.setdefault(
                    (name, pattern.pattern, pattern.flags, use), Expression(where, pattern, use)
                )
    return tuple(unique.values())


@cache
def sources() -> dict[Path, list[Path]]:
    """Return the source files of the program by folder."""
    files: dict[Path, list[Path]] = {}
    for top in ("npl_index", "npl_mcp"):
        for path in sorted((ROOT / top).rglob("*.py")):
            if path.name != "__main__.py":  # it runs when it is imported; it holds no expression
                files.setdefault(path.parent, []).append(path)
    return files


def methods(nodes: Collection[ast.AST]) -> dict[str, set[str]]:
    """Return, for each name in a module, the methods of expressions that are called on it."""
    calls: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr in SEARCHING | ANCHORED:
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
            calls.setdefault(name, set()).add(node.attr)
    return calls


def kept(module: Any, called: dict[str, set[str]]) -> Iterator[tuple[str, re.Pattern[Any], set[str]]]:
    """Return the compiled expressions a module or its classes keep, its own and those it imports."""
    holders = [module, *(value for value in vars(module).values() if isinstance(value, type))]
    for name, value in [pair for holder in holders for pair in vars(holder).items()]:
        parts = value.values() if isinstance(value, dict) else value
        for part in parts if isinstance(parts, Collection) and not isinstance(parts, str) else [value]:
            if isinstance(part, re.Pattern):
                yield name, part, used(called.get(name, set()))


def used(called: set[str]) -> set[str]:
    """Return the ways of use that differ in their cost; one not called by its name may be searched."""
    ways = {"search"} if called & SEARCHING or not called else set()
    return ways | called & ANCHORED


def written(
    module: Any, nodes: Collection[ast.AST], name: str
) -> Iterator[tuple[str, re.Pattern[Any], set[str]]]:
    """Return the expressions in calls such as ``re.compile("…")`` and ``re.sub("…", …)``."""
    for node in nodes:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.args):
            continue
        if node.func.attr not in SEARCHING | ANCHORED | {"compile"}:
            continue
        flags = [part for part in (*node.args[1:], *(key.value for key in node.keywords)) if is_flag(part)]
        try:
            space = {**vars(module), "re": re}
            source = eval(compile(ast.Expression(node.args[0]), name, "eval"), space)
            given = sum(eval(compile(ast.Expression(part), name, "eval"), space) for part in flags)
            patterns = [re.compile(source, given)]
            use = node.func.attr if node.func.attr in ANCHORED else "search"
        except NameError:  # a local variable: put together when it runs
            use, patterns = MADE[name]
        for pattern in patterns:
            if node.func.attr != "compile" or pattern not in list(vars(module).values()):
                yield f"line {node.lineno}", pattern, {use}


def is_flag(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr.isupper() for part in ast.walk(node))


def slow_text(*expressions: tuple[str | bytes, int, str]) -> str | None:
    """Return the first expression with a text that takes it too long, if there is one."""
    lines = "".join(f"{expression!r}\n" for expression in expressions)
    command = [sys.executable, "-m", "tests.expressions"]
    done = subprocess.run(command, cwd=ROOT, input=lines, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode in (0, -signal.SIGVTALRM)
    return done.stdout.splitlines()[-1] if done.returncode else None


@pytest.mark.thorough
@pytest.mark.parametrize("name", FOUND_SLOW)
def test_a_slow_expression_is_found(name: str) -> None:
    assert slow_text(FOUND_SLOW[name]) is not None


@pytest.mark.thorough
@pytest.mark.parametrize("folder", sources(), ids=lambda folder: folder.relative_to(ROOT).as_posix())
def test_time_grows_with_the_text_and_no_faster(folder: Path) -> None:
    every = expressions(folder)
    tried = ((one.pattern.pattern, int(one.pattern.flags), one.use) for one in every)
    assert slow_text(*tried) is None


def test_all_expressions_are_looked_at() -> None:
    places = {expression.where for folder in sources() for expression in expressions(folder)}
    for name in ("annotation.py:_FOOTNOTE", "paths.py:_NUMBERING"):
        assert any(name in where for where in places), name
    assert len(places) > 60
