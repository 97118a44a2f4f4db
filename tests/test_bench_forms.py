"""The benchmark of forms of naming, over two files."""

from pathlib import Path

import pytest

from benchmarks.forms import FORMS, main


def test_each_form_is_asked(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lamps.md").write_text("# Lamps\n\n## lamp_delay\n\nTen.\n\n## Usage\n\nHang it.\n", "utf-8")
    (tmp_path / "news.md").write_text("# Big news\n\n## 1.2.0\n\nA lamp.\n\n## Usage\n\nRead it.\n", "utf-8")
    assert main([str(tmp_path), "--count", "1"]) == 0
    *forms, absent = capfd.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in forms] == list(FORMS)
    assert all("1 of   1   invented   0 of 1" in line for line in forms)
    assert absent.endswith("0 of 8 with text")
