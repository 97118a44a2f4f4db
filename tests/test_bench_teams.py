"""The benchmarks of teams, run for a moment with few rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import bench_news, bench_teams
from benchmarks.bench_teams import HEAD, MARKS


def table(readme: Path) -> list[list[str]]:
    """Return the cells of the rows that were written."""
    text = readme.read_text(encoding="utf-8")
    before, rest = text.split(MARKS[0])
    written, after = rest.split(MARKS[1])
    assert (before, after) == ("before\n", "\nafter\n")
    assert written.startswith(f"\n{HEAD}")
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in written.strip().splitlines()[2:]
    ]


def measured(tmp_path: Path, *options: str) -> list[list[str]]:
    """Measure for a moment without a failed call; return the rows of the table."""
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{MARKS[0]}\nold\n{MARKS[1]}\nafter\n", encoding="utf-8")
    given = ["--rows", "100", "--seconds", "0.3", "--readme", str(readme), *options]
    assert bench_teams.main(given) == 0
    return table(readme)


@pytest.mark.engine("postgres")
def test_both_engines_are_measured(tmp_path: Path) -> None:
    """Each row says who called, how long it took and what was busy; PostgreSQL says who had the turn."""
    rows = measured(tmp_path, "--clients", "3", "--replicas", "2")
    assert [(row[0], row[1]) for row in rows] == [
        ("no-op, 1 server", "1"),
        ("SQLite, 100 rows", "3"),
        ("SQLite, 100 rows, messages only", "1"),
        ("no-op, 2 servers", "3"),
        ("PostgreSQL, 100 rows, 2 servers", "3"),
        ("PostgreSQL, 100 rows, 2 servers, messages only", "3"),
    ]
    for row in rows:
        assert len(row) == 9
        assert all(float(cell) > 0 for cell in row[2:6])
    assert [row[7].endswith("/ –") for row in rows] == [True, True, True, False, False, False]
    assert "(" in rows[4][7] + rows[5][7]


@pytest.mark.engine("postgres")
def test_what_servers_tell_each_other_is_measured(capfd: pytest.CaptureFixture[str]) -> None:
    """A reader at the writer's server wakes, and one at another."""
    bench_news.main(rounds=3)
    lines = capfd.readouterr().out.splitlines()
    for start in ("a reader wakes, the same server", "a reader wakes, another server"):
        assert any(line.startswith(start) and " p95 " in line for line in lines)
