"""SQLite never reads every row of a growing table to answer a tool."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.app.app import App
from npl_mcp.config.domains import PRESETS
from npl_mcp.stores.chat.todos import FILTERS
from npl_mcp.tools.domains import listed_tools, tool_named
from tests.conftest import cases
from tests.npl_mcp.stores.writer import settings_in

pytestmark = pytest.mark.engine("sqlite")

ROWS = 2_000

FILL = f"""
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
INSERT INTO event (room_id, position, event_type, persona, timestamp, data)
SELECT 1, 100 + i, 'message', 'ann', '2099-01-01T00:00:00.000000Z', '{{"message": "m"}}' FROM n"""

GROWING = ("event", "notification", "reaction", "todo", "revision", "review_comment", "worklog_entry")

WRITES: list[tuple[str, dict[str, Any]]] = cases("npl_mcp/stores/plans")["writes"]

READS: list[tuple[str, dict[str, Any]]] = [
    *cases("npl_mcp/stores/plans")["reads"],
    *(("chat_list_todos", {"persona": "ann", "filter": chosen}) for chosen in FILTERS),
    *(("chat_list_todos", {"room_id": 1, "persona": "ann", "filter": chosen}) for chosen in FILTERS),
    *(("chat_get_feed", {"room_id": 1, **more}) for more in ({}, {"since": 3}, {"since": "2030-01-01"})),
    *(
        ("chat_get_notifications", {"persona": "bo", **more})
        for more in ({}, {"unread_only": True}, {"since": 1})
    ),
]


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    (tmp_path / "project").mkdir()
    made = App(settings_in(tmp_path))
    for tool, arguments in WRITES[:2]:
        tool_named(tool)(made, **arguments)
    with made.stores.database.write() as tx:
        tx.run(FILL)
        tx.run(f"UPDATE room SET event_count = {ROWS + 100}")
    yield made
    made.close()


def test_no_tool_looks_at_all_rows(app: App) -> None:
    reading = {spec.name for spec in listed_tools(PRESETS["coordination"]) if spec.read_only}
    assert reading <= {tool for tool, _ in READS}
    database = app.stores.database
    seen: dict[str, str] = {}
    for tool, arguments in (*WRITES[2:], *READS):
        statements: list[str] = []
        for begin in (database.read, database.write):
            with begin() as tx:
                tx.raw.set_trace_callback(statements.append)
        tool_named(tool)(app, **arguments)
        for begin in (database.read, database.write):
            with begin() as tx:
                tx.raw.set_trace_callback(None)
        seen |= {statement: tool for statement in statements if statement.lstrip()[:4] in WORDS}
    assert len(seen) > 90
    with database.read() as tx:
        plans = {
            (tool, statement): [row[3] for row in tx.raw.execute(f"EXPLAIN QUERY PLAN {statement}")]
            for statement, tool in seen.items()
        }
    assert not {key: plan for key, plan in plans.items() if any(map(SCAN.match, plan))}


WORDS = ("SELE", "WITH", "UPDA", "DELE")
"""Beginnings of statements that look for rows; the plan of an INSERT with RETURNING names its table too."""

SCAN = re.compile(rf"SCAN ({'|'.join(GROWING)})\b(?! USING INDEX todo_open)")
"""Open todos have their own index, which has no other rows."""
