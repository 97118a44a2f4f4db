"""The benchmark of large folders: its table and its picture, and a run on a small folder."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import bench_scale
from benchmarks.bench_scale import LINES, MARKS, Figures, main

SVG = "{http://www.w3.org/2000/svg}"


def test_figures_that_were_kept_are_written_and_drawn(tmp_path: Path) -> None:
    """One column and one point on each line for every run; costs that grow tenfold rise by the same."""
    runs = [
        {field.name: number * factor for number, field in enumerate(fields(Figures), 1)}
        for factor in (1_000, 10, 100)
    ]
    kept, readme, picture = tmp_path / "runs.json", tmp_path / "README.md", tmp_path / "lines.svg"
    kept.write_text(json.dumps(runs), encoding="utf-8")
    readme.write_text(f"before\n{MARKS[0]}\nstale figures\n{MARKS[1]}\nafter\n", encoding="utf-8")
    assert main(["--keep", str(kept), "--readme", str(readme), "--svg", str(picture)]) == 0
    lines = readme.read_text(encoding="utf-8").splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert "| 10 files, 20 sections, 30 MB | 100 files, 200 sections, 300 MB | 1,000 files," in lines[2]
    assert any(line.startswith("| freshness") and line.count("|") == 7 for line in lines)
    drawn = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    names = {text.text for text in drawn.iter(f"{SVG}text")}
    assert names >= {*LINES, "sections", "milliseconds", "20", "200", "2,000", "1,000"}
    for line in drawn.iter(f"{SVG}polyline"):
        points = line.get("points", "").split()
        (x1, y1), (x2, y2), (x3, y3) = (map(float, point.split(",")) for point in points)
        assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)
        assert y1 - y2 == pytest.approx(y2 - y3, abs=0.2)
        assert y1 > y2 > y3


@pytest.mark.thorough
def test_a_small_folder_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every figure is there, and is kept for a later run."""
    for name, few in (("QUESTIONS", 3), ("EDITS", 2), ("ALONE", 1), ("SETTLED", 0.1)):
        monkeypatch.setattr(bench_scale, name, few)
    kept = tmp_path / "runs.json"
    assert main(["66", "--keep", str(kept)]) == 0
    (run,) = json.loads(kept.read_text(encoding="utf-8"))
    assert run == asdict(Figures(**run))
    assert run["files"] == 66
    assert run["sections"] > 66
    assert all(value > 0 for value in run.values())
    assert "| first call after a restart, times a no-op |" in capfd.readouterr().out
