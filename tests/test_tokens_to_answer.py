"""The benchmark of what an answer costs, on a set of one page."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.tokens_to_answer import MARKS, main

PAGE = "# Garden\n\n" + "".join(
    f"## Chapter {number}\n\nThis is about thing {number} and nothing else.\n\n" * 1 for number in range(60)
)


def test_each_way_is_counted_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole file costs what it has; a way that finds the section costs less."""
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "garden.md").write_text(PAGE, encoding="utf-8")
    label = {"file": "garden.md", "heading": "Chapter 7"}
    question = {"query": "what does chapter 7 say about thing 7", "relevant": [label]}
    (tmp_path / "queries.jsonl").write_text(json.dumps(question) + "\n", encoding="utf-8")
    readme, picture = tmp_path / "README.md", tmp_path / "bars.svg"
    readme.write_text(f"before\n{MARKS[0]}\nstale figures\n{MARKS[1]}\nafter\n", encoding="utf-8")
    assert main(["--set", str(tmp_path), "--svg", str(picture), "--readme", str(readme)]) == 0
    text = readme.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "stale" not in text
    assert text.split(MARKS[0])[1].split(MARKS[1])[0].strip() in capsys.readouterr().out
    row = next(line for line in text.splitlines() if line.startswith(f"| {tmp_path.name} "))
    whole, _, outline, _, tailored = (int(cell.replace(",", "")) for cell in row.split(" | ")[1:6])
    assert tailored < whole
    assert outline < 2 * whole
    drawn = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    assert len(drawn.findall("{http://www.w3.org/2000/svg}rect")) == 1 + 2 * 5
