"""One function opens files; this module lists the exceptions with their reasons."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import npl_index
import npl_mcp
from tests.conftest import cases

PACKAGES = [Path(package.__file__).parent for package in (npl_index, npl_mcp)]

# What opens a file if it is called: plain names, and attributes of whatever object.
NAMES = {"open"}
ATTRIBUTES = {"open", "fdopen", "read_text", "read_bytes", "write_text", "write_bytes", "copyfile", "copy2"}
ATTRIBUTES |= {"copytree", "mkfifo", "mknod", "open_code", "FileIO", "TemporaryFile", "NamedTemporaryFile"}

ONE_WAY = "npl_index/library/files.py"


ALLOWED = cases("npl_index/library/opening")["allowed"]


def opened(source: str) -> Iterator[str]:
    """Return the callables that open a file, as they are written."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func
            plain = isinstance(name, ast.Name) and name.id in NAMES
            if plain or (isinstance(name, ast.Attribute) and name.attr in ATTRIBUTES):
                yield ast.unparse(name)


def test_files_are_opened_in_one_place() -> None:
    """Each other opening has a row in the table, and each row an opening."""
    openings = {
        f"{package.name}/{path.relative_to(package).as_posix()}": set(
            opened(path.read_text(encoding="utf-8"))
        )
        for package in PACKAGES
        for path in package.rglob("*.py")
    }
    del openings[ONE_WAY]
    assert {name: calls for name, calls in openings.items() if calls} == {
        name: set(calls) for name, calls in ALLOWED.items()
    }


@pytest.mark.parametrize(
    "written",
    ["open(a)", "io.open(a)", "Path(a).read_text()", "a.open('rb')", "os.open(a, 0)", "os.fdopen(1)"],
)
def test_every_way_of_opening_is_seen(written: str) -> None:
    """The walk recognizes every form of opening a file."""
    assert len(list(opened(written))) == 1
