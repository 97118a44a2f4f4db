"""``make weigh``: what an installation brings, in the table of OPERATIONS.md.

The package is installed alone, as a user does. A package counts for the first row that needs it.
"""

import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.packaging.project import PROJECT, ROOT

PAGE = ROOT / "OPERATIONS.md"
MARKS = ("<!-- weight -->\n", "<!-- /weight -->\n")
HEAVY = 5_000_000
"""Minimum bytes of a package that is named in a row."""


class Row(NamedTuple):
    """Packages that are there for one reason.

    :param roots: the requested packages; they bring their own needs.
    :param why: the reason.
    """

    roots: tuple[str, ...]
    why: str


ROWS = (
    Row(("rank-bm25",), "ranking; numpy's arrays are the index, mapped from files"),
    Row(
        ("fastmcp",),
        "the protocol on standard streams and over HTTP, tokens, TLS; fastmcp-slim alone has no server",
    ),
    Row(
        ("pysqlite3",), "a SQLite that several processes can write, if a wheel exists; otherwise Python's own"
    ),
    Row(("rapidfuzz",), "near names in errors and suggestions"),
    Row(("tiktoken",), "exact counts, where a vocabulary is there"),
    Row((PROJECT["name"],), "npl with its prompts, and small packages: parser, stemmer, templates, metrics"),
)


def main() -> None:
    """Install in an environment of its own, and write the table."""
    with TemporaryDirectory() as folder:
        python = Path(folder) / "env" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(python.parents[1])], check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", str(ROOT)]
        subprocess.run(pip, check=True)
        (packages,) = python.parents[1].glob("lib/python*/site-packages")
        installed = {
            canonicalize_name(package.metadata["Name"]): package
            for package in distributions(path=[str(packages)])
        }
        rows = table(installed)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0])
    PAGE.write_text(before + MARKS[0] + rows + MARKS[1] + rest.partition(MARKS[1])[2], encoding="utf-8")


def table(installed: dict[str, Distribution]) -> str:
    """Return the rows, heaviest first, and their sum."""
    left = {name: size(package) for name, package in installed.items()}
    rows = []
    for roots, why in ROWS:
        names = [name for name in closure(installed, roots) if name in left]
        sizes = {name: left.pop(name) for name in names}
        heavy = sorted((name for name in names if sizes[name] >= HEAVY), key=sizes.__getitem__, reverse=True)
        rows.append((sum(sizes.values()), len(names), dict.fromkeys((*roots, *heavy)), why))
    assert not left, left
    total = (sum(row[0] for row in rows), sum(row[1] for row in rows))
    lines = ["| packages | MB | number | why |", "|:--|--:|--:|:--|"]
    lines += [
        f"| {', '.join(named)} | {megabytes(weight)} | {number} | {why} |"
        for weight, number, named, why in sorted(rows, key=lambda row: -row[0])
    ]
    return "\n".join([*lines, f"| all | {megabytes(total[0])} | {total[1]} | |", ""])


def size(package: Distribution) -> int:
    """Return how many bytes a package takes on the disk, compiled modules included."""
    paths = {Path(str(package.locate_file(file))) for file in package.files or ()}
    return sum(path.stat().st_blocks * 512 for path in paths if path.is_file())


def megabytes(count: int) -> str:
    return f"{count / 1e6:.0f}"


def closure(installed: dict[str, Distribution], roots: tuple[str, ...]) -> Iterable[str]:
    """Return installed packages and all they need."""
    seen: set[tuple[str, str]] = set()
    waiting = [(root, "") for root in roots]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen or name not in installed:
            continue
        seen.add((name, extra))
        for text in installed[name].requires or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                other = canonicalize_name(needed.name)
                waiting += [(other, each) for each in ("", *needed.extras)]
    return {name for name, _ in seen}


if __name__ == "__main__":
    main()
