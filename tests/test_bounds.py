"""A stranger's small input costs little: each reader that SECURITY.md lists stays within its bounds.

Each input is read by a process whose memory and processor time the system limits (:mod:`tests.bounded`). The
limits are many times what the reader needs, and less than it would need without its bound.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from npl_index.markdown.state import find_lines
from npl_mcp.config.toml import read_toml
from npl_mcp.stores.review.annotation import Comment, annotate
from tests.bounded import INPUT, READERS
from tests.npl_index.conftest import lines_run

ROOT = Path(__file__).resolve().parent.parent
DOTS = ".a" * 30_000
TOML = {
    f"a{DOTS} = 1": "more than 32 parts",
    f"[a{DOTS}]": "more than 32 parts",
    f"\n[[a{DOTS}]]": "more than 32 parts",
    f"x = {{a{DOTS} = 1}}": "more than 32 parts",
    "'x'" + ' . "x"' * 10_000 + " = 1": "more than 32 parts",
    'x = """\n' + '\\""' * 9 + '"""\na' + DOTS: "more than 32 parts",
    "a = 0x" + "f" * 60_000: "more than 1,000 characters",
    "a = " + "[" * 60_000: "too deep",
}


def fields(value: str, count: int) -> str:
    return "---\n" + "".join(f"k{number}: {value}\n" for number in range(count)) + "---\n"


def with_pipe(folder: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    os.mkfifo(folder / ".gitignore")


Content = str | bytes | Callable[[Path], object]
# By reader: the file that is read, its hostile contents, and words of the answer to each.
CASES: Mapping[str, tuple[str, Sequence[tuple[Content, str]]]] = {
    "settings": ("npl.toml", [*TOML.items()]),
    "project": (".mdt-config.toml", [*TOML.items()]),
    "client": (
        ".mcp.json",
        [
            ("[" + "[]," * 340_000 + "[]]", "is not an object"),
            ("[" + "[]," * 5_000_000 + "[]]", "larger than 1,048,576 bytes"),
            ("[" * 900_000, "it is not JSON"),
        ],
    ),
    "front matter": (
        INPUT,
        [
            ("---\n" + "a: [1]\n" * 140_000 + "---\n", "{'str': 1, 'list': 0"),
            (fields("[" + "a," * 7_000 + "]", 60), "{'str': 59, 'list': 1"),
            (fields("\n" + "- a\n" * 3_900, 60), "{'str': 59, 'list': 1"),
            (fields("[" * 8_000, 60), "{'str': 60, 'list': 0"),
            (fields("&a [x]\nb: [*a,*a]", 20_000), "'list': 0"),
            (fields("v", 300_000), "{'str': 0"),
        ],
    ),
    "Markdown": (
        INPUT,
        [
            ("> " * 100_000, "1"),
            ("- " * 100_000, "1"),
            ("[" * 2_000_000, "1"),
            ("# " + "*a **b _c " * 200_000, "2"),
            ("[^1]: " * 1_000_000, "1"),
            ("# a\n" * 30_000, "more than 20000 sections"),
            ("\n" * 16_000_000, "more than 2000000 lines"),
            ("a\n" * 8_000_000, "more than 2000000 lines"),
            ("---\n" * 1_500_000, "more than 200000 headings, fences"),
            ("- ~~~\n" * 1_500_000, "more than 200000 headings, fences"),
            ("? " * 300_000, "1"),
            ("a." * 500_000, "1"),
        ],
    ),
    "links": (INPUT, [("](" * 500_000, "0"), ("[a](x.md) " * 60_000, "60000"), ("[[a|" * 300_000, "0")]),
    "edit": (
        INPUT,
        [
            ("# A\n\n<a " + "id=x " * 100_000, "1"),
            ("# A\n\n" + "".join(f"*[l{number}]: x\n" for number in range(8_000)), "1"),
            ("# A\n\n" + "".join(f"[l{number}]: x\n" for number in range(8_000)) + "\n# B\n", "1"),
        ],
    ),
    "questions": (
        "questions.md",
        [
            ("## q?\n\n" + "- [[\n" * 40_000, "39,951 more problems"),
            ("## q?\n\n" + "- a > ## b\n" * 20_000, "at most 100 selectors"),
            ("## q?\n\n- " + "> " * 120_000, "(1, "),
            ("- [[\n" * 2_000_000, "larger than 262,144 bytes"),
        ],
    ),
    "page": (INPUT, [("![[]()" * 1_000_000, "0"), ("> " * 1_000_000, "0"), ("*a **b _c " * 500_000, "0")]),
    "JSON": (
        INPUT,
        [
            ("[" * 5_000_000, "more than 32,768 values"),
            ("[" + "[]," * 5_000_000 + "[]]", "more than 32,768 values"),
            ("[" * 100 + "]" * 100, "more than 64 levels"),
            (f"[{'9' * 5_000_000}]", "str"),
        ],
    ),
    "worklog": (INPUT, [("[" * 8_000_000, "{}"), (f'{{"a": {"9" * 8_000_000}}}', "{}")]),
    "name": (INPUT, [("/".join("é" * 1_365), "there is no document"), ("@" * 4_000 + "x.md", "no document")]),
    "pattern": (INPUT, [("*a" * 1_000_000, "64 wildcards"), ("a/" * 1_000_000, "64 segments")]),
    "rules": (
        ".gitignore",
        [
            ("*a" * 30 + "b\n*b*b", "[False, False]"),
            ("*\n" * 32_000, "[False, False]"),
            ("*\n" * 1_000_000, "F"),
        ],
    ),
    "walk": (".gitignore", [(("**/d/" * 30 + "no*\n") * 400 + "/nowhere/*.md", "400")]),
    "selector": (INPUT, [("a" * 5_000_000, "4096 characters"), ("a > " * 1_000, "32")]),
    "git": (".git", [(with_pipe, "git took longer than 2 seconds")]),
}


@pytest.mark.thorough
@pytest.mark.parametrize("reader", READERS)
def test_what_a_stranger_writes_costs_little(reader: str, tmp_path: Path) -> None:
    """The answer comes within the limits, and says what is wrong or leaves out the excess."""
    name, inputs = CASES[reader]
    for number, (content, said) in enumerate(inputs):
        folder = tmp_path / str(number)
        folder.mkdir()
        if callable(content):
            content(folder)
        else:
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        command = [sys.executable, "-m", "tests.bounded", reader, str(folder)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert (done.returncode, said in done.stdout) == (0, True), (number, done)


def test_each_reader_of_the_table_is_held_to_its_bounds() -> None:
    """A row without inputs, or inputs without a row, would say nothing."""
    _, _, after = (ROOT / "SECURITY.md").read_text(encoding="utf-8").partition("## Bounds of what is read\n")
    rows = re.findall(r"^\| ([^|]+?) \|", after.partition("\n## ")[0], re.MULTILINE)
    assert rows[1:] == list(READERS) == list(CASES)


@pytest.mark.parametrize(
    "text",
    [
        'a = """\n' + "a." * 5_000 + '"""\n',
        "a = '''\n" + "a." * 5_000 + "'''''\n",
        'a = """' + "a." * 400 + '"""""\nb.c = 1\n',
        'a = """\\"""' + "a." * 400 + '"""\n',
        'a = "http://a/' + "a." * 400 + '\\"' + "a." * 400 + '"\n',
        "a = 'C:\\' # it's " + "a." * 400 + "\n",
        "a = [" + "1.5, -2.5e-7, " * 4_000 + "]\n",
        "a = [" + "1979-05-27T07:32:00.999999-07:00, " * 500 + "]\n",
        '[tool."' + "a." * 400 + '".b]\nc = "' + "x" * 9_000 + '"\n',
        "a" + ".a" * 31 + " = 1\n",
        "a" * 1_000 + " = 1\n",
        '"""" = 1\n'.replace('""""', '""') + "b = {" + "c.d = 1, e.f = '.'" + "}\n",
    ],
)
def test_toml_that_people_write_is_not_refused(text: str) -> None:
    """Dots in texts, comments, numbers and times do not divide keys."""
    assert read_toml(text)


COMMENT = Comment(1, "line:1", "Why?", "alice", "")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("unit", "work"),
    [
        ("[^x]\r", lambda text: annotate(text, [("alice-1", COMMENT)])),
        ("a\n", lambda text: annotate(text, [("alice-1", COMMENT)])),
        ("a\n", find_lines),
        ("```\n~~~\n", find_lines),
    ],
)
def test_a_long_text_is_read_in_turns_with_other_threads(unit: str, work: Callable[[str], object]) -> None:
    """No call of a library makes a list of all its lines or marks, which would stop every other thread."""
    few, many = (lines_run(lambda count=count: work(unit * count)) for count in (100, 400_000))
    assert many - few >= 400_000 // 20_000
