"""One application seen from several working directories."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from npl_index.library.documents import DocumentRef
from npl_mcp.app.app import App
from npl_mcp.app.context import Context
from npl_mcp.config.settings import Settings
from npl_mcp.tools.worklog import worklog_init, worklog_status
from tests.conftest import THOROUGH
from tests.folders import fill
from tests.tools import npl_load_tailored, npl_section_index


@pytest.fixture
def app(settings: Settings) -> Iterator[App]:
    with closing(App(settings)) as app:
        yield app


def in_folder(app: App, folder: Path) -> Context:
    return Context(app.state, app.documents_for(cwd=folder))


def test_a_view_has_its_own_roots_and_project_and_the_same_state(
    settings: Settings, app: App, tmp_path: Path
) -> None:
    """Files and worklogs are those of the directory; caches and database are shared."""
    here, there = tmp_path / "here", tmp_path / "there"
    for folder, heading in ((here, "One"), (there, "Two")):
        fill(folder, {"notes.md": f"# {heading}\n"})
    first, second = in_folder(app, here), in_folder(app, there)
    assert npl_section_index(first, file="notes.md").sections[0].name == "One"
    assert npl_section_index(second, file="notes.md").sections[0].name == "Two"
    assert npl_section_index(first, file="guide.md").total_sections > 3
    worklog_init(first, session_id="s1")
    worklog_init(second, session_id="s2")
    assert worklog_status(first).session_id == "s1"
    assert worklog_status(second).session_id == "s2"
    assert first.stores is second.stores
    assert first.state is app.state
    assert app.documents_for() is app.documents
    assert in_folder(app, here).documents is first.documents


def test_a_set_is_kept_until_a_file_changes(settings: Settings, app: App) -> None:
    """Another caller gets the same set; a changed file leads to a new one."""
    for path in (settings.roots[0] / "plants").iterdir():
        os.utime(path, (0, 0))
    first = app.gather(DocumentRef(file="plants")).collection
    elsewhere = App(replace(settings, cwd=settings.home), app.state)
    assert app.gather(DocumentRef(file="plants")).collection is first
    assert elsewhere.gather(DocumentRef(file="plants")).collection is first
    (settings.roots[0] / "plants" / "beans.md").write_text("# Broad beans\n", encoding="utf-8")
    assert app.gather(DocumentRef(file="plants")).collection is not first


WRITER = """
import os, sys
for line in sys.stdin:
    path, how, word = line.split()
    text = f"# Page\\n\\nThe {word} is here.\\n"
    if how == "replaced":
        with open(path + "~", "w") as file: file.write(text)
        os.replace(path + "~", path)
    else:
        with open(path, "r+") as file: file.write(text)
    if how == "dated": os.utime(path, (0, 0))
    print("done", flush=True)
"""


def test_what_another_process_wrote_is_in_the_next_answer(settings: Settings, app: App) -> None:
    """Words of one length, written many times within a tick of the clock, leave equal states of the file."""
    root, chance = settings.roots[0] / "many", Random(1)
    names = (f"folder{number % 3}/page{number}.md" for number in range(20))
    fill(root, dict.fromkeys(names, "# Page\n\nThe word00000 is here.\n"))
    paths = sorted(root.rglob("*.md"))
    with subprocess.Popen(
        [sys.executable, "-c", WRITER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        for trial in range(1, 300 if THOROUGH else 100):
            path = chance.choice(paths[:4])
            how = chance.choice(("replaced", "written", "dated"))
            writer.stdin.write(f"{path} {how} word{trial:05}\n")
            writer.stdin.flush()
            writer.stdout.readline()
            answer = npl_load_tailored(app, context=f"word{trial:05}", file="many").value
            assert [section.file for section in answer.sections] == [str(path.relative_to(settings.roots[0]))]
            assert f"word{trial:05}" in answer.content
        writer.stdin.close()


def test_a_file_of_an_earlier_root_changes_names(settings: Settings, tmp_path: Path) -> None:
    """The same path below an earlier root means that file, from the moment it is there."""
    first = tmp_path / "first"
    first.mkdir()
    with closing(App(replace(settings, roots=(first, settings.roots[0])))) as app:
        ref = DocumentRef(file=str(settings.roots[0]))
        assert "guide.md" in app.gather(ref).files
        (first / "guide.md").write_text("# Other\n", encoding="utf-8")
        assert "docs:guide.md" in app.gather(ref).files
        (first / "guide.md").unlink()
        assert "guide.md" in app.gather(ref).files
