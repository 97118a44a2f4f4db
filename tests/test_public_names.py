"""The public surface of the library."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import npl_index

SOURCE = Path(npl_index.__file__).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", npl_index.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    """Each can be imported from the package and has a docstring."""
    value = getattr(npl_index, name)
    assert inspect.getdoc(value)
    assert value.__module__.startswith("npl_index.")


def test_the_names_for_type_checkers_are_those_for_programs() -> None:
    """The package's two lists agree."""
    (block,) = [node for node in ast.parse(SOURCE).body if isinstance(node, ast.If)]
    listed = {
        (alias.name, node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(name for name, _ in listed) == npl_index.__all__ == sorted(npl_index.__all__)
    assert all(getattr(npl_index, name).__module__ == module for name, module in listed)


def test_a_name_that_is_not_public_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'tailored'"):
        npl_index.tailored  # noqa: B018


CLIENT = """\
from npl_index import Tailored, load_tailored, section_index

answer: Tailored = load_tailored("docs", "how do I begin", budget=500)
lines: int = section_index("docs/guide.md")[0].end_line
wrong: int = answer.content
"""


@pytest.mark.thorough
def test_strict_type_checkers_see_the_names(tmp_path: Path) -> None:
    """Exactly a client's mistake is reported."""
    (tmp_path / "client.py").write_text(CLIENT, encoding="utf-8")
    options = ["--strict", "--config-file=", "--follow-imports=silent", "--no-error-summary"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "--cache-dir", str(tmp_path / "cache"), "client.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "client.py:5: error: Incompatible types in assignment" in done.stdout
    assert done.stdout.count("error") == 1
