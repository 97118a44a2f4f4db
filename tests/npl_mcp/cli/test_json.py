"""Every command that prints rows also prints them as JSON."""

import json
from pathlib import Path

from npl_mcp.cli.commands import load, mcp, serving, worklog
from npl_mcp.cli.terminal.arguments import parsers_of
from tests.conftest import cases
from tests.folders import fill
from tests.programs import Run

# What prints rows, the exit code, and the fields that it has: those of a row, where there is a list of them.
SESSION = "session_id status created task entry_count agents last_entry"
ROWS: dict[str, tuple[int, str]] = cases("npl_mcp/cli/json")


def test_every_option_is_tried() -> None:
    """The table above has each command with ``--json``."""
    taking = {
        f"{module.PROGRAM.name} {name}"
        for module in (load, worklog, mcp, serving)
        for name, parser in parsers_of(module.PROGRAM.parser()).items()
        if any("--json" in action.option_strings for action in parser._actions)
    }
    kinds = {f"npl-load {name}" for name in load.TYPES} - {"npl-load c"}  # they are one command
    assert taking - kinds == {
        name for name in taking if any(f"{row} ".startswith(f"{name} ") for row in ROWS)
    }


def test_rows_are_printed_as_json(data: Path, program: Run) -> None:
    """The output is one JSON value with the fields of the table."""
    garden = "# Garden\n\n## Pruning\n\nPrune apples.\n"
    questions = "## How do I prune?\n\n- garden > ## Pruning\n"
    fill(Path("docs"), {"garden.md": garden, "questions.md": questions})
    assert program("npl-mcp", "token", "add", "kim").code == 0
    assert program("npl-load", "init-claude").code == 1
    assert program("npl-worklog", "log", "--agent", "a", "--action", "did", "--summary", "s").code == 0
    for line, (code, fields) in ROWS.items():
        done = program(*line.split(), "--json")
        assert done.code == code, line
        printed = json.loads(done.out)
        row = printed[0] if isinstance(printed, list) and printed else printed
        assert set(fields.split()) <= set(row), (line, row)
