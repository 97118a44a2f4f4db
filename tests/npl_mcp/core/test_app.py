"""One application seen from several working directories."""

from __future__ import annotations

from pathlib import Path

from npl_mcp.config.settings import Settings
from npl_mcp.core.app import App
from npl_mcp.tools.npl import npl_section_index
from npl_mcp.tools.worklog import worklog_init, worklog_status


def test_a_view_has_its_own_roots_and_project_and_the_same_state(settings: Settings, tmp_path: Path) -> None:
    """Files and worklogs are those of the directory; caches and database are shared."""
    here, there = tmp_path / "here", tmp_path / "there"
    for folder, heading in ((here, "One"), (there, "Two")):
        folder.mkdir()
        (folder / "notes.md").write_text(f"# {heading}\n", encoding="utf-8")
    app = App(settings)
    first, second = app.at(here), app.at(there)
    assert npl_section_index(first, file="notes.md").sections[0].name == "One"
    assert npl_section_index(second, file="notes.md").sections[0].name == "Two"
    assert npl_section_index(first, file="guide.md").total_sections > 3
    worklog_init(first, session_id="s1")
    worklog_init(second, session_id="s2")
    assert worklog_status(first).session_id == "s1"
    assert worklog_status(second).session_id == "s2"
    assert first.stores is second.stores
    assert first.indices is app.indices
    assert app.at(settings.cwd) is app
    assert app.at(here) is first
    app.close()
