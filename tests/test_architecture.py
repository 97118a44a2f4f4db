"""The direction of imports and the other rules that can be read off the syntax tree."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Each module may import names of modules in earlier rows, and of earlier modules in its own row.
ORDER = (
    "npl_index.errors npl_index.choices npl_index.references npl_index.patterns npl_index.catalog",
    "npl_index.finding npl_index.documents npl_index.cache",
    "npl_index.front_matter npl_index.loading npl_index.agents npl_index.notation",
    "npl_index.traits npl_index.blockstate npl_index.leafblocks npl_index.blocks npl_index.preambles",
    "npl_index.headings npl_index.sections npl_index.pieces npl_index.editing",
    "npl_index.labels npl_index.versions npl_index.versioned npl_index.predicates npl_index.selectors",
    "npl_index.hierarchy npl_index.matching npl_index.selection",
    "npl_index.analysis npl_index.postings npl_index.indexing npl_index.scoring",
    "npl_index.tokens npl_index.counting npl_index.outline",
    "npl_index.cutting npl_index.budget npl_index.suggestions npl_index.assembling npl_index.tailoring",
    "npl_index",
    "npl_mcp",
    "npl_mcp.reach npl_mcp.settings npl_mcp.bounded npl_mcp.logs npl_mcp.startup",
    "npl_mcp.stores.index_cache",
    "npl_mcp.stores.errors npl_mcp.stores.checks npl_mcp.stores.paging",
    "npl_mcp.stores.sqlite npl_mcp.stores.database",
    "npl_mcp.stores.migrations npl_mcp.stores.migrations.env npl_mcp.stores.migrations.versions.0001_first",
    "npl_mcp.stores.session npl_mcp.stores.files npl_mcp.stores.artifact",
    "npl_mcp.stores.mentions npl_mcp.stores.feed npl_mcp.stores.rooms npl_mcp.stores.inbox",
    "npl_mcp.stores.todos npl_mcp.stores.chat",
    "npl_mcp.stores.annotation npl_mcp.stores.overlay npl_mcp.stores.review",
    "npl_mcp.stores.worklog_format npl_mcp.stores.worklog_files npl_mcp.stores.worklog_rows",
    "npl_mcp.stores.worklog_import npl_mcp.stores.worklog_export npl_mcp.stores.worklog",
    "npl_mcp.stores.cr_files npl_mcp.stores.cr_format npl_mcp.stores.cr_projects npl_mcp.stores.cr_index",
    "npl_mcp.stores.cr_answers npl_mcp.stores.cr_filters npl_mcp.stores.cr_sections",
    "npl_mcp.stores.cr_editing npl_mcp.stores.cr_templates npl_mcp.stores.cr_new",
    "npl_mcp.stores.cr_suggestions npl_mcp.stores.cr",
    "npl_mcp.stores.cr_documents npl_mcp.stores",
    "npl_mcp.maintenance npl_mcp.git npl_mcp.directive npl_mcp.sources npl_mcp.shelf npl_mcp.app",
    "npl_mcp.calls",
    "npl_mcp.tools.responses npl_mcp.tools.errors npl_mcp.tools.spec npl_mcp.tools.npl",
    "npl_mcp.tools.session npl_mcp.tools.artifact npl_mcp.tools.chat npl_mcp.tools.review",
    "npl_mcp.tools.worklog npl_mcp.tools.utility npl_mcp.tools.cr npl_mcp.tools.directive",
    "npl_mcp.tools.items npl_mcp.tools.survey npl_mcp.tools.worklog_commands npl_mcp.tools.cr_templates",
    "npl_mcp.tools.aliases npl_mcp.tools npl_mcp.options",
    "npl_mcp.tools.registry npl_mcp.small_list npl_mcp.offers npl_mcp.framing npl_mcp.server",
    "npl_mcp.http npl_mcp.http.metrics npl_mcp.http.guard npl_mcp.http.app npl_mcp.http.service",
    "npl_mcp.http.listening npl_mcp.http.serving",
    "npl_mcp.__main__ npl_mcp.demo npl_mcp.reference",
    "npl_mcp.cli npl_mcp.cli.arguments npl_mcp.cli.display npl_mcp.cli.progress",
    "npl_mcp.cli.wire npl_mcp.cli.far npl_mcp.cli.servers npl_mcp.cli.stdio npl_mcp.cli.direct",
    "npl_mcp.cli.client npl_mcp.cli.asking npl_mcp.cli.whole npl_mcp.cli.notation",
    "npl_mcp.cli.claude_file npl_mcp.cli.sections",
    "npl_mcp.cli.help npl_mcp.cli.completion npl_mcp.cli.load npl_mcp.cli.worklog_help npl_mcp.cli.worklog",
)
RANK = {name: place for place, name in enumerate(" ".join(ORDER).split())}

# Own modules that are imported inside a function, with the reason.
LATE = {
    ("npl_mcp.cli.direct", "npl_mcp.shelf"): "a command that needs no files does without",
    ("npl_mcp.cli.direct", "npl_mcp.app"): "whole items need none of it, and it takes three times as long",
    ("npl_mcp.cli.direct", "npl_mcp.tools.errors"): "only failures need it; it knows all stores",
    (
        "npl_mcp.http.serving",
        "npl_mcp.http.listening",
    ): "FastMCP takes most of a second; status and stop need none of it",
    ("npl_mcp.__main__", "npl_mcp.server"): "FastMCP takes most of a second; --help needs none of it",
}

# A failure becomes a reply in exactly one place; a failing report of a call must not end the reports.
BROAD = {"npl_mcp.server": 1, "npl_mcp.calls": 1}

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60


def modules() -> dict[str, Path]:
    found = {}
    for package in ("npl_index", "npl_mcp"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def parsed(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in MODULES else node.module
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_every_module_has_a_place_in_the_order() -> None:
    """A new module is put into the order, and a gone one is taken out."""
    assert set(RANK) == set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_imports_run_one_way(name: str) -> None:
    """A module imports only modules that stand before it."""
    late = {target for source, target in LATE if source == name}
    wrong = [
        target
        for target in imported(parsed(name))
        if target.split(".")[0] in ("npl_index", "npl_mcp")
        and target not in late
        and RANK[target] >= RANK[name]
    ]
    assert wrong == []


@pytest.mark.parametrize("name", MODULES)
def test_own_modules_are_imported_at_the_top(name: str) -> None:
    """No function hides an edge of the import graph, but for the listed ones."""
    hidden = {
        (name, target)
        for function in functions(parsed(name))
        for target in imported(function)
        if target.split(".")[0] in ("npl_index", "npl_mcp")
    }
    assert hidden <= set(LATE)


@pytest.mark.parametrize("name", MODULES)
def test_broad_handlers_stand_only_where_a_failure_becomes_a_reply(name: str) -> None:
    """What is not expected is not caught."""
    broad = [
        node.lineno
        for node in ast.walk(parsed(name))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or getattr(node.type, "id", "") in ("Exception", "BaseException"))
        and not any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
    ]
    assert len(broad) == BROAD.get(name, 0), broad


READERS = ("npl_mcp.settings", "npl_mcp.reach")


@pytest.mark.parametrize("name", [name for name in MODULES if name not in READERS])
def test_only_the_settings_read_the_environment(name: str) -> None:
    """Nothing but npl_mcp.settings, and its light part for the command lines, looks at the environment."""
    reads = [
        node.lineno
        for node in ast.walk(parsed(name))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in {("os", "environ"), ("os", "getenv"), ("os", "environb")}
    ]
    assert reads == []


@pytest.mark.parametrize("name", MODULES)
def test_files_and_functions_stay_small(name: str) -> None:
    """A file that grows because nobody looked fails here."""
    assert MODULES[name].read_text(encoding="utf-8").count("\n") <= MAX_FILE_LINES
    long = {
        function.name: lines
        for function in functions(parsed(name))
        if (lines := (function.end_lineno or 0) - function.body[0].lineno + 1) > MAX_FUNCTION_LINES
    }
    assert long == {}


HEAVY = ("fastmcp", "mcp", "mcp_types", "pydantic", "sqlalchemy", "httpx", "numpy", "tiktoken", "rank_bm25")


@pytest.mark.parametrize(
    "statement",
    ["import npl_index", "import npl_mcp.tools.npl", "import npl_mcp.app", "import npl_mcp.__main__"],
)
def test_the_core_and_the_tools_import_nothing_heavy(statement: str) -> None:
    """What the command line will need starts without the protocol's packages, numpy and vocabularies."""
    code = f"{statement}\nimport sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == []


def test_the_library_knows_no_face() -> None:
    """npl_index imports neither npl_mcp nor anything of MCP or SQL."""
    outside = {
        target.split(".")[0]
        for name in MODULES
        if name.startswith("npl_index")
        for target in imported(parsed(name))
    }
    assert outside.isdisjoint({"npl_mcp", "mcp", "mcp_types", "fastmcp", "sqlite3", "sqlalchemy", "pydantic"})
