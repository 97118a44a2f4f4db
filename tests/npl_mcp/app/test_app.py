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

from npl_index.answer.forms import Json
from npl_index.answer.request import TailorRequest
from npl_index.answer.tailoring import write
from npl_index.library.documents import DocumentRef
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import Caller, FolderRefusedError
from npl_mcp.app.context import Context
from npl_mcp.app.reading import ReadSections, read_sections_of
from npl_mcp.config.settings import Settings
from npl_mcp.tools.worklog import worklog_init, worklog_status
from tests.conftest import GUIDE, THOROUGH
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


FOLDERS = {
    "a loop of links": "{here}/one",
    "below a loop": "{here}/one/a/b",
    "many folders": "/" + "a/" * 3_000,
    "a long name": "/" + "x" * 300,
    "a file": "{here}/file",
    "below a file": "{here}/file/a",
    "half of a surrogate pair": "/\ud800",
    "a byte that is not UTF-8": "/\udc80",
    "NUL": "/a\0b",
    "not absolute": "a",
}


@pytest.mark.parametrize("case", FOLDERS)
@pytest.mark.parametrize("trusted", [True, False])
def test_a_folder_that_cannot_be_used_is_refused(
    settings: Settings, tmp_path: Path, case: str, trusted: bool
) -> None:
    """Circular links, too long names, files and impossible names are refused."""
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    (tmp_path / "file").touch()
    app = App(settings)
    with pytest.raises(FolderRefusedError):
        Caller(folder=FOLDERS[case].format(here=tmp_path), trusted=trusted).context(app)
    app.close()


AFTER: dict[str, tuple[str | None, list[bool]]] = {
    "an edit": (GUIDE.replace("late winter", "early spring"), [True]),
    "a deletion": (None, [False]),
    "an edit elsewhere": (GUIDE.replace("Deep roots", "Roots"), []),
    "nothing": (GUIDE, []),
}


@pytest.mark.parametrize("case", AFTER)
@pytest.mark.parametrize("file", [None, "guide.md"])
def test_what_happens_between_answer_and_memory_is_a_change(
    settings: Settings, docs: Path, case: str, file: str | None
) -> None:
    """The section is remembered as it was sent; a removed file breaks no answer."""
    text, expected = AFTER[case]
    app, reader = App(settings), ReadSections()
    documents = app.gather(DocumentRef(file))
    made = write(TailorRequest.parse(selectors=["guide > ## Pruning"]), documents, Json())
    if text is None:
        (docs / "guide.md").unlink()
    else:
        (docs / "guide.md").write_text(text, encoding="utf-8")
    reader.remember(read_sections_of(made.plan.documents, made.plan.kept))
    changes = reader.changes(app)
    assert [change.digest is not None for change in changes] == expected
    assert {change.selector for change in changes} <= {row.selector for row in made.value.sections}
    reader.remember(changes)
    assert reader.changes(app) == []
    app.close()
