"""One application seen from several working directories."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from npl_index.library.documents import DocumentRef
from npl_mcp.config.settings import Settings
from npl_mcp.core.app import App
from npl_mcp.tools.artifact import artifact_create
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
    assert first.state is app.state
    assert app.at(settings.cwd) is app
    assert app.at(here) is first
    app.close()


def test_a_file_is_in_memory_once_a_call_has_read_it(settings: Settings, docs: Path) -> None:
    """Until it changes; looking has no effect. Folders, patterns and other sources never are."""
    guide = docs / "guide.md"
    os.utime(guide, (1, 1))
    app = App(settings)
    ref = DocumentRef(file="guide.md")
    assert not app.in_memory(ref)
    assert not app.in_memory(ref)
    assert app.state.indices.statistics.built == 0
    npl_section_index(app, file="guide.md")
    assert app.in_memory(ref)
    guide.write_text("# Other\n", encoding="utf-8")
    os.utime(guide, (2, 2))
    assert not app.in_memory(ref)
    assert npl_section_index(app, file="guide.md").total_sections == 1
    assert app.in_memory(ref)
    guide.unlink()
    assert not app.in_memory(ref)
    npl_section_index(app, file="plants")
    stored = artifact_create(app, "a", "document", "IyBB", "a.md")
    npl_section_index(app, file=f"artifact:{stored.artifact_id}")
    for other in ("plants", "plants/*.md", f"artifact:{stored.artifact_id}"):
        assert not app.in_memory(DocumentRef(file=other))
    app.close()


def test_a_set_is_kept_until_a_file_changes(settings: Settings) -> None:
    """Another caller gets the same one; a changed file makes another one."""
    for path in (settings.roots[0] / "plants").iterdir():
        os.utime(path, (0, 0))
    app = App(settings)
    first = app.gather(DocumentRef(file="plants")).collection
    elsewhere = App(replace(settings, cwd=settings.home), app.state)
    assert app.gather(DocumentRef(file="plants")).collection is first
    assert elsewhere.gather(DocumentRef(file="plants")).collection is first
    (settings.roots[0] / "plants" / "beans.md").write_text("# Broad beans\n", encoding="utf-8")
    assert app.gather(DocumentRef(file="plants")).collection is not first
    app.close()
