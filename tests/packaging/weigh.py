"""``make weigh``: what each package of an installation weighs, and whether npl imports it.

The package is installed alone, as a user does. The sizes are those on the disk, with compiled modules. The
heaviest are written into OPERATIONS.md.
"""

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.common import put_between
from tests.packaging.project import PROJECT, ROOT

PAGE = ROOT / "OPERATIONS.md"
MARKS = ("<!-- weight -->", "<!-- /weight -->")
HEAVY = 5_000_000
"""Minimum bytes of a package that OPERATIONS.md names."""

IMPORT_ALL = """
import ast, json, sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
for package in map(import_module, ("npl_index", "npl_mcp")):
    for file in Path(package.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            for name in [node.module] if isinstance(node, ast.ImportFrom) else names:
                with suppress(ImportError):  # of an extra, or of another system
                    import_module(name)
import_module("npl_index.index.driver").driver()
print(json.dumps([module.__file__ for module in sys.modules.values() if getattr(module, "__file__", None)]))
"""
"""A program that imports what any line of npl imports, and prints the files of all modules."""


class Weight(NamedTuple):
    """A package that is installed.

    :param size: bytes on the disk.
    :param name: its name.
    :param needed_by: the packages that require it.
    :param imported: whether a line of npl imports it, directly or through others.
    """

    size: int
    name: str
    needed_by: Collection[str]
    imported: bool


def main() -> None:
    """Install in an environment of its own, print all packages, and name the heaviest in the page."""
    with TemporaryDirectory() as folder:
        python = Path(folder) / "env" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(python.parents[1])], check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", str(ROOT)]
        subprocess.run(pip, check=True)
        command = [str(python), "-c", IMPORT_ALL]
        modules = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
        (packages,) = python.parents[1].glob("lib/python*/site-packages")
        found = {str(canonicalize_name(one.name)): one for one in distributions(path=[str(packages)])}
        weights = weigh(found, set(json.loads(modules)))
    print("\n".join(lines(weights)))
    put_between(PAGE, MARKS, f"{sentence(weights)}\n")


def weigh(installed: Mapping[str, Distribution], modules: Collection[str]) -> list[Weight]:
    """Return the packages, heaviest first."""
    needs = defaultdict(set)
    waiting, seen = [(str(PROJECT["name"]), "")], set()
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen or name not in installed:
            continue
        seen.add((name, extra))
        for needed in map(Requirement, installed[name].requires or ()):
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                other = str(canonicalize_name(needed.name))
                needs[other].add(name)
                waiting += [(other, each) for each in ("", *needed.extras)]
    weights = []
    for name, package in installed.items():
        paths = {str(package.locate_file(file)) for file in package.files or ()}
        size = sum(Path(path).stat().st_blocks * 512 for path in paths if Path(path).is_file())
        weights.append(Weight(size, name, sorted(needs[name]), not paths.isdisjoint(modules)))
    return sorted(weights, reverse=True)


def lines(weights: list[Weight]) -> list[str]:
    """Return a line for each package, and one for all."""
    rows = [
        f"{one.size / 1e6:6.1f}  {one.name:<26}{'' if one.imported else 'not imported':<14}"
        f"{', '.join(one.needed_by)}"
        for one in weights
    ]
    unused = [one.size for one in weights if not one.imported]
    total = f"{sum(one.size for one in weights) / 1e6:6.1f}  MB in {len(weights)} packages"
    return [*rows, f"{total}, {sum(unused) / 1e6:.1f} MB in {len(unused)} that npl does not import"]


def sentence(weights: list[Weight]) -> str:
    """Return the sentence of the page."""
    heavy = [one for one in weights if one.size >= HEAVY]
    named = ", ".join(f"{one.name} {one.size / 1e6:.0f}" for one in heavy)
    rest = [one.size for one in weights if one.size < HEAVY]
    total = sum(one.size for one in weights)
    return f"{total / 1e6:.0f} MB: {named}, and {len(rest)} others {sum(rest) / 1e6:.0f}."


if __name__ == "__main__":
    main()
