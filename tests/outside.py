"""Checks on files that cannot be part of the project; ``make test`` does without them.

Usage: ``python -m tests.outside PATH ...``. Each path is one of

* a Markdown file, or a folder of them: blocks are those of markdown-it-py, and the selector of every section
  selects just that section;
* CommonMark's examples, the ``spec.json`` of its site: the blocks of each are those of markdown-it-py;
* a ``*.json`` with recorded ``headings`` of a Markdown ``file``, which lies beside it or in ``../files``;
* a ``*.json`` with recorded runs of ``npl-load``; the prompts they need are a folder given with ``--home``.
  One run differs on purpose: ``--quiet c **.*`` names no patches, since a patch is no item.

Prints one line for each difference and a count at the end; the exit code is 1 if there is any difference,
and 2 if there was nothing to check.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from npl_index.errors import NPLError
from npl_index.markdown.sections import parse_sections
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.selection import select
from npl_index.selectors.writing import selectors_of
from tests.npl_index.markdown.test_blocks import fast, has_foreign_term, stock

_DATES = ((r"\d{4}-\d\d-\d\dT[\d:]+Z", "<time>"), (r"\d{4}-\d\d-\d\d", "<date>"))


def check_blocks(text: str) -> Iterator[str]:
    """Yield a message if the blocks are not those of markdown-it-py."""
    text = "\n" + text.replace("\r\n", "\n").replace("\r", "\n").replace("npl-instructions:", "npl:")
    if not has_foreign_term(text) and fast(text) != stock(text):
        yield "blocks differ from markdown-it-py's"


def check_document(path: Path) -> Iterator[str]:
    """Yield what is wrong with one Markdown file's tree."""
    data = path.read_bytes()
    yield from check_blocks(data.decode("utf-8-sig"))
    tree = parse_sections(data, path.stem)
    for index, text in enumerate(selectors_of(tree)):
        found = select([tree], compile_selector(text))
        if [match.head for match in found] != [index]:
            yield f"selector {text} selects {len(found)} sections"


def check_headings(path: Path, recorded: dict[str, Any]) -> Iterator[str]:
    """Yield where a tree's headings are not the recorded ones."""
    names = (path.parent / recorded["file"], path.parents[1] / "files" / recorded["file"])
    data = next(name for name in names if name.exists()).read_bytes()
    wanted = [heading for heading in recorded["headings"] if not heading["container"]]
    found = parse_sections(data, "x").sections[1:]
    if len(found) != len(wanted):
        yield f"{len(found)} headings instead of {len(wanted)}"
    for section, want in zip(found, wanted, strict=False):
        flags, own = want["flags"], section.own_traits
        if (
            (section.level, section.own.start + 1) != (want["level"], want["start_line"])
            or section.name not in (want["text"], want["text_with_alt"])
            or own.has_code != (flags["code_fence"] or flags["indented_code"])
            or (own.has_tables, own.has_definitions) != (flags["table"], flags["definitions"])
        ):
            yield f"line {want['start_line']}: {section.name!r}"


def check_run(case: dict[str, Any], fixtures: dict[str, Any], prompts: str) -> Iterator[str]:
    """Yield a message if ``npl-load`` prints something else than it was recorded to print."""
    with tempfile.TemporaryDirectory() as place:
        for name in ("fixture", "home_fixture"):
            tree = fixtures[case[name]] if isinstance(case[name], str) else case[name]
            Path(place, name).mkdir()
            for file, text in tree.items():
                Path(place, name, file).parent.mkdir(parents=True, exist_ok=True)
                Path(place, name, file).write_text(text, encoding="utf-8")
        env = {name: value.replace("{NPL_HOME}", prompts) for name, value in case["env"].items()}
        done = subprocess.run(
            [sys.executable, "-m", "npl_mcp.cli.commands.load", *case["argv"]],
            cwd=Path(place, "fixture"),
            env={**os.environ, "HOME": str(Path(place, "home_fixture")), **env},
            capture_output=True,
            text=True,
            check=False,
        )
    text = done.stdout
    for pattern, mask in _DATES:
        text = re.sub(pattern, mask, text)
    if (done.returncode, text) != (case["exit"], case["stdout"]):
        yield f"{' '.join(case['argv'])}: prints something else"


def checks(path: Path, prompts: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each thing checked, and what is wrong with it."""
    if path.is_dir():
        for inside in sorted((*path.rglob("*.md"), *path.rglob("*.json"))):
            yield from checks(inside, prompts)
    elif path.suffix == ".md":
        try:
            yield str(path), list(check_document(path))
        except NPLError as error:
            yield str(path), [str(error)]
    else:
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, list):
            for number, example in enumerate(content, 1):
                if isinstance(example, dict) and "markdown" in example:
                    yield f"{path} {number}", list(check_blocks(example["markdown"]))
        elif "headings" in content:
            yield str(path), list(check_headings(path, content))
        elif "fixtures" in content:
            for case in content["cases"]:
                yield f"{path} {case['name']}", list(check_run(case, content["fixtures"], prompts))


def main() -> int:
    """Check the paths of the command line."""
    parser = argparse.ArgumentParser(description="Check documents that are not part of the project.")
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--home", default="", help="folder of NPL prompts for recorded runs")
    words = parser.parse_args()
    checked = wrong = 0
    for path in words.paths:
        for name, problems in checks(path, str(Path(words.home).resolve()) if words.home else ""):
            checked += 1
            wrong += bool(problems)
            for problem in problems[:5]:
                print(f"{name}: {problem}")
    print(f"{checked} checked, {wrong} differ")
    return 2 if not checked else int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
