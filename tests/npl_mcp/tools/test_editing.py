"""``npl_update_section`` changes sections of any Markdown below the given roots."""

import json
import os
import re
import subprocess
import sys
from codecs import BOM_UTF8
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from npl_mcp.config.settings import Settings, corpus_folder
from tests.conftest import Call, Connect, by_name, cases, listed
from tests.until import until

TOOL = "npl_update_section"
LOAD = "npl_load_tailored"
ROOT = Path(__file__).resolve().parents[3]

Edit = Callable[..., dict[str, Any]]

CASES = cases("npl_mcp/tools/editing")


@pytest.fixture
def writing(settings: Settings) -> Settings:
    """Settings of a server whose one root may be changed."""
    return replace(settings, write=True)


def put(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.fixture
def call(writing: Settings, connect: Connect) -> Call:
    return connect(writing)


@pytest.fixture
def edit(call: Call) -> Edit:
    return editing(call)


def editing(call: Call) -> Edit:
    """Return a function that edits a file through a server."""

    def edit(file: str, selector: str, content: str, operation: str = "replace", **more: Any) -> Any:
        given = {"file": file, "selector": selector, "content": content, "operation": operation}
        return call(TOOL, **given, **more)

    return edit


PLAIN = "# T\n\nintro\n\n## A\n\na\n\n### A1\n\na1\n\n## B\n\nb\n"
FRONT = "---\ntitle: T\n---\n\n# T\n\n## A\n\na\n\n## B\n\nb\n"
FENCES = "# T\n\n## A\n\n````md\n```\n## no heading\n```\n````\n\n## B\n\n~~~\n# none\n~~~\n"
SETEXT = "T\n=\n\nA\n-\n\na\n\nB\n-\n\nb"
UNTITLED = "intro\n\n## A\n\na\n\n# B\n\nb\n"


def forms(text: str) -> list[bytes]:
    """Return a text with each kind of line end, with and without a byte order mark."""
    ended = [text.encode().replace(b"\n", end) for end in (b"\n", b"\r\n", b"\r")]
    return [*ended, BOM_UTF8 + ended[1]]


def test_an_edit_changes_its_section_and_nothing_else(writing: Settings, edit: Edit) -> None:
    """Each operation works on each form of a text; the answer has the section's name and contents."""
    file = writing.roots[0] / "note.md"
    for name, before, selector, operation, content, after in CASES["changes"]:
        for form, wanted in zip(forms(before), forms(after), strict=True):
            put(file, form)
            answer = edit("note.md", selector, content, operation)
            assert answer["success"], (name, answer)
            assert file.read_bytes() == wanted, (name, form)
        again = edit("note.md", answer["data"]["selector"], "last", "append")
        assert again["data"]["tokens_before"] == answer["data"]["tokens"], name


def test_the_next_call_sees_the_edit(call: Call, edit: Edit) -> None:
    """Loading, browsing and the next edit see it; the answer leads to the section it left."""
    look = partial(call.text, file="guide.md", format="markdown")
    assert "Drip lines" in look("npl_section_index")
    first = edit("guide", "## Watering", "## Water\n\nUse a siphon.")["data"]
    assert first["removed"] == ["### Drip lines"]
    assert (first["file"], first["selector"]) == ("guide.md", "guide > ## Water")
    assert first["tokens"] < first["tokens_before"]
    assert "siphon" in look("npl_load_tailored", context="siphon", token_budget=300)
    assert "Drip lines" not in look("npl_section_index")
    for _ in range(3):  # in one tick of a coarse clock
        first = edit("guide", first["selector"], "More.", "append", expect=first["digest"])["data"]
        assert f"{first['tokens']}" in look("npl_section_index")
    same = edit("guide", "## Water", "Use a siphon.\n\nMore.\n\nMore.\n\nMore.")["data"]
    assert same["unchanged"]
    assert same["digest"] == first["digest"]


def test_what_changed_since_it_was_read_is_not_overwritten(writing: Settings, call: Call, edit: Edit) -> None:
    """The digest is the file's or the section's; the refusal names the changed sections."""
    guide = writing.roots[0] / "guide.md"

    def digest() -> str:
        return str(call.do("npl_section_index", file="guide.md")["digest"])

    read = digest()
    assert f"\ndigest: {read}" in call.text("npl_section_index", file="guide.md", format="markdown")
    done = edit("guide.md", "## Compost", "Mix.", expect=read)
    put(guide, guide.read_text().replace("late winter", "spring").replace("title: Guide", "title: Book"))
    before = guide.read_bytes()
    for expect in (read, done["data"]["digest"]):
        answer = edit("guide.md", "## Pruning", "Cut.", expect=expect)
        assert answer["error_code"] == "OPERATION_FAILED"
        assert "guide.md has changed since you read it" in answer["error"]
        assert guide.read_bytes() == before
    assert edit("guide.md", "## Compost", "Stir.", expect=done["data"]["digest"])["success"]
    assert edit("guide.md", "## Pruning", "Cut.", expect=digest())["success"]
    assert edit("guide.md", "## Pruning", "Cut.", expect="1")["error_code"] == "INVALID_PARAMETER"


@pytest.mark.parametrize("change", CASES["edits"])
def test_the_digest_of_an_answer_is_that_of_the_section(
    writing: Settings, call: Call, edit: Edit, change: str
) -> None:
    """An edit of another section does not matter; both forms have a digest for each selector."""
    file = writing.roots[0] / "note.md"
    old, new, whole, own = CASES["edits"][change]
    read = partial(call.text, file="note.md", format="markdown")

    def digests(selector: str) -> set[str]:
        rows = call.do("npl_load_tailored", file="note.md", selectors=[selector])["sections"]
        assert [row["selector"].removeprefix("note > ") for row in rows] == [selector]
        mark = re.match(r"<!-- note\.md (.*) 1 =([0-9a-f]{8}) -->\n", read(LOAD, selectors=[selector]))
        assert mark is not None
        assert mark[1] == selector
        return {rows[0]["digest"], mark[2]}

    for form in forms(PLAIN):
        put(file, form)
        (line,) = re.findall(r" =([0-9a-f]{8}) ## A\n", read("npl_section_index"))
        tree = call.do("npl_section_index", file="note.md")["sections"]
        assert digests("## A") == {line, tree[0]["children"][0]["digest"]}
        kept = {"## A": (whole, line), "## A [depth=0]": (own, *digests("## A [depth=0]"))}
        end = b"\r\n" if b"\r\n" in form else b"\r" if b"\r" in form else b"\n"
        changed = form.replace(old.encode().replace(b"\n", end), new.encode().replace(b"\n", end))
        assert changed != form
        for selector, (same, digest) in kept.items():
            put(file, changed)
            answer = edit("note.md", selector, "x", "append", expect=digest)
            assert answer["success"] is same, (change, form, selector, answer)
            assert same or "has changed since you read it" in answer["error"]


@pytest.mark.parametrize(
    "changes", [{"write": False}, {"cloned_roots": True}, {"roots": (), "search_cwd": True}], ids=str
)
def test_a_caller_that_may_not_edit_reads_no_digests(
    writing: Settings, connect: Connect, changes: dict[str, Any]
) -> None:
    """They would cost tokens, as would a tool that refuses each call."""
    settings = replace(writing, cwd=writing.roots[0], **changes)
    assert TOOL not in by_name(settings)
    call = connect(settings)
    for tool, more in ((LOAD, {"context": "prune"}), ("npl_section_index", {})):
        for form in ("json", "markdown"):
            text = call.text(tool, file="guide.md", format=form, **more)
            # The index of one file has the digest of the file.
            assert '"digest"' not in re.sub(r'"digest":"[0-9a-f]{8}"}}$', "", text)
            assert not re.search(r" =[0-9a-f]{8}", text)


REFUSED: list[tuple[dict[str, str], str, tuple[str, ...]]] = [
    *CASES["refused"],
    ({"content": "x" * 500_001}, "INVALID_PARAMETER", ("at most 500,000",)),
]


def test_what_cannot_be_done_is_refused_and_nothing_changes(
    writing: Settings, call: Call, edit: Edit, tmp_path: Path
) -> None:
    docs = writing.roots[0]
    put(writing.cwd / "own.md", PLAIN)
    put(tmp_path / "secret.md", PLAIN)
    (docs / "out.md").symlink_to(tmp_path / "secret.md")
    (docs / "dangling.md").symlink_to(docs / "target.md")
    (docs / "out").symlink_to(tmp_path)
    (docs / "hidden").symlink_to(docs / ".claude")
    put(docs / ".claude" / "agents" / "one.md", PLAIN)
    put(docs / "protected.md", "# T\n\n## Pruning\n").chmod(0o444)
    put(docs / "latin.md", b"# T\n\n## Pruning\n\n\xe4\n")
    crs = writing.cwd / "docs" / "CRs"
    put(crs / "TST-002-x.md", "---\ncode: TST-002\n---\n# X\n\n## Pruning\n\nx\n")
    (writing.cwd / ".mdt-config.toml").write_text('[project]\nname = "T"\ncode = "TST"\n')

    def state() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.rglob("*.md") if path.is_file()}

    before = state()

    call.do("artifact_create", name="a", artifact_type="document", content=PLAIN, filename="a.md")
    for change, code, parts in REFUSED:
        answer = edit(**{"file": "guide.md", "selector": "## Pruning", "content": "x", **change})
        assert answer.get("error_code") == code, (change, answer)
        assert all(part in answer["error"] for part in parts), (change, answer)
        assert len(answer["error"]) < 400, change
    assert {path: data for path, data in state().items() if "artifacts" not in path.parts} == before
    assert not (docs / "target.md").exists()
    assert not (docs / "a").exists()


@pytest.mark.parametrize("name", CASES["deleted"])
def test_a_section_that_was_read_is_deleted_once(
    writing: Settings, call: Call, edit: Edit, name: str
) -> None:
    """The answer names the removed section and the one above; reading, deleting and loading agree."""
    before, selector, removed, lines, after = CASES["deleted"][name]
    file = writing.roots[0] / "note.md"
    for form, wanted in zip(forms(before), forms(after), strict=True):
        put(file, form)
        (read,) = call.do(LOAD, file="note.md", selectors=[selector])["sections"]
        answer = edit("note.md", selector, "", "delete", expect=read["digest"])
        assert answer["success"], answer
        assert file.read_bytes() == wanted, form
        above = answer["data"]
        assert (above["removed"], above["lines"]) == (removed, lines)
        assert above["tokens"] < above["tokens_before"]
        assert edit("note.md", selector, "", "delete", expect=read["digest"])["error_code"] == "NOT_FOUND"
    index = call.text("npl_section_index", file="note.md", format="markdown")
    assert f" {removed[0]}\n" not in index.partition("\n")[2]
    back = edit("note.md", above["selector"], "x", "append", expect=above["digest"])
    assert back["data"]["tokens_before"] == above["tokens"]


def test_another_section_may_change_before_one_is_deleted(writing: Settings, call: Call, edit: Edit) -> None:
    """A subsection may not. The whole document is never deleted."""
    file = put(writing.roots[0] / "note.md", PLAIN)
    (title,) = call.do("npl_section_index", file="note.md")["sections"]
    delete = partial(edit, "note.md", content="", operation="delete")
    digest = title["children"][0]["digest"]
    put(file, PLAIN.replace("\na1\n", "\na2\n"))
    assert "note.md has changed since you read it" in delete("## A", expect=digest)["error"]
    assert delete("# T", expect=digest)["error_code"] == "OPERATION_FAILED"
    put(file, PLAIN.replace("\nb\n", "\nc\n"))
    assert delete("## A", expect=digest)["success"]
    put(file, PLAIN)
    for selector in ("# T", "note"):
        whole = delete(selector, expect=title["digest"])
        assert whole["error_code"] == "INVALID_PARAMETER"
        assert "'T' is the whole document; remove the file" in whole["error"]
    assert file.read_text() == PLAIN


@pytest.mark.parametrize("name", CASES["created"])
def test_a_file_is_made_once_and_read_at_once(writing: Settings, call: Call, edit: Edit, name: str) -> None:
    """Even a caller that has listed the folder before reads it whole; its digest allows a change."""
    file, content, written, selector = CASES["created"][name]
    docs = writing.roots[0]
    (docs / "garden").symlink_to("plants")
    look = partial(call.text, "npl_section_index", format="markdown")
    assert "new" not in look()
    data = call.do(TOOL, file=file, operation="create", content=content)
    path = docs / data["file"]
    assert (data["selector"], data["tokens_before"]) == (selector, 0)
    assert path.read_bytes() == written.encode()
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask()
    assert path.name in look()
    assert edit(file, "", "other", "create")["error_code"] == "ALREADY_EXISTS"
    assert path.read_bytes() == written.encode()
    done = edit(data["file"], selector, "more", "append", expect=data["digest"])
    assert done["success"], done


@pytest.mark.parametrize(("disk", "asked"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_a_name_with_composed_accents_is_the_same_without(
    writing: Settings, edit: Edit, disk: Any, asked: Any
) -> None:
    """Folder and file are recognized in both forms; a twin is never made."""
    name = "résumés/café.md"
    path = put(writing.roots[0] / normalize(disk, name), "# T\n\n## A\n\na\n")
    done = edit(normalize(asked, name), "## A", "b")
    assert done["success"], done
    assert edit(normalize(asked, name), "", "other", "create")["error_code"] == "ALREADY_EXISTS"
    made = edit(normalize(asked, "résumés/neu.md"), "", "other", "create")
    assert made["success"], made
    assert path.read_text(encoding="utf-8") == "# T\n\n## A\n\nb\n"
    assert sorted(file.name for file in path.parent.iterdir()) == sorted([path.name, "neu.md"])
    assert len([file for file in path.parent.parent.iterdir() if file.name[0] == "r"]) == 1


def umask() -> int:
    now = os.umask(0o077)
    os.umask(now)
    return now


def test_of_callers_that_make_a_file_at_once_one_does(writing: Settings, call: Call, edit: Edit) -> None:
    call.do("session_list")  # the server is made for its first call

    def make(number: int) -> bool:
        return bool(edit("deep/er/new.md", "", f"# {number}\n", "create")["success"])

    with ThreadPoolExecutor(8) as pool:
        (own,) = (number for number, made in enumerate(pool.map(make, range(8))) if made)
    assert (writing.roots[0] / "deep" / "er" / "new.md").read_text() == f"# {own}\n"


def test_a_file_is_as_large_as_can_be_read(writing: Settings, connect: Connect) -> None:
    small = replace(writing, limits=replace(writing.limits, max_bytes=2000))
    answer = editing(connect(small))("new.md", "", "x" * 2000, "create")
    assert "new.md would have 2,001 bytes; at most 2,000" in answer["error"]
    assert not (writing.roots[0] / "new.md").exists()


@pytest.mark.parametrize(
    ("operation", "selector", "content", "part"),
    cases("npl_mcp/tools/editing")["what_stands_in_a_section_is_not_moved_below_a_new_heading"],
)
def test_what_stands_in_a_section_is_not_moved_below_a_new_heading(
    writing: Settings, edit: Edit, operation: str, selector: str, content: str, part: str | None
) -> None:
    """A heading of a parent's level does not take the following sections either."""
    put(writing.roots[0] / "note.md", PLAIN)
    answer = edit("note.md", selector, content, operation)
    assert answer["success"] is (part is None), answer
    assert part is None or part in answer["error"]


ELSEWHERE: dict[str, Callable[[Settings], dict[str, Any]]] = {
    "no root": lambda settings: {"roots": (), "cwd": settings.roots[0], "search_cwd": True},
    "roots of a clone": lambda _: {"cloned_roots": True},
    "the user's NPL folder": lambda settings: {"environment": {"NPL_HOME": settings.roots[0]}},
    "a folder of one kind": lambda settings: {"environment": {"NPL_PERSONA_DIR": settings.roots[0]}},
}


@pytest.mark.parametrize("where", ELSEWHERE)
def test_only_roots_that_the_user_gave_are_changed(writing: Settings, connect: Connect, where: str) -> None:
    """Files of other roots can still be read."""
    call = connect(replace(writing, **ELSEWHERE[where](writing)))
    guide = writing.roots[0] / "guide.md"
    before = guide.read_bytes()
    call.do("npl_section_index", file="guide.md")
    assert editing(call)("guide.md", "## Pruning", "x")["error_code"] == "PERMISSION_DENIED"
    assert guide.read_bytes() == before


@pytest.mark.parametrize(("folders", "file", "allowed"), CASES["places"])
def test_edits_stay_in_the_folders_of_the_setting(
    writing: Settings, connect: Connect, folders: tuple[str, ...], file: str, allowed: bool
) -> None:
    """Every name of a file counts; a refusal names the folders, and only editable sections have a digest."""
    docs = writing.roots[0]
    for name in ("plants-of-others/a.md", normalize("NFD", "Übung") + "/a.md"):
        put(docs / name, "# A\n")
    (docs / "plants" / "to-guide.md").symlink_to(docs / "guide.md")
    (docs / "garden").symlink_to(docs / "plants")
    folders = tuple(name.replace("DOCS", str(docs)) for name in folders)
    call = connect(replace(writing, write=folders))
    before = call.do("npl_section_index", file=file)
    answer = editing(call)(file, before["sections"][0]["selector"], "more", "append")
    assert answer["success"] is allowed is ("digest" in before), answer
    if not allowed:
        assert answer["error_code"] == "PERMISSION_DENIED"
        assert f"files may be changed below {', '.join(folders)}" in answer["error"]


def test_files_are_made_only_in_the_folders_of_the_setting(writing: Settings, connect: Connect) -> None:
    """The folder may not exist yet; a link out of it is never followed."""
    docs = writing.roots[0]
    (docs / "plants" / "out").symlink_to(docs)
    edit = editing(connect(replace(writing, write=("notes/", "plants"))))
    names = ("notes/deep/a.md", "notes.md", "plants/b.md", "notes/../c.md", "plants/out/d.md")
    made = [edit(name, "", "# N", "create")["success"] for name in names]
    assert made == [True, False, True, False, False]
    assert sorted(path.name for path in docs.rglob("?.md")) == ["a.md", "b.md"]


def test_the_bundled_prompts_stay_as_they_are(writing: Settings, connect: Connect) -> None:
    corpus = corpus_folder()
    file = next(path for path in sorted(corpus.rglob("*.md")) if path.read_text().startswith("# "))
    before = file.read_bytes()
    answer = editing(connect(replace(writing, roots=(corpus,))))(str(file), file.stem, "x", "append")
    assert answer["error_code"] == "PERMISSION_DENIED"
    assert file.read_bytes() == before


def test_links_and_attributes_stay(writing: Settings, edit: Edit, tmp_path: Path) -> None:
    """A link in a root leads to its file; a hard link outside keeps the old content."""
    docs = writing.roots[0]
    roses = docs / "plants" / "roses.md"
    roses.chmod(0o640)
    (docs / "link.md").symlink_to("plants/roses.md")
    outside = put(tmp_path / "outside.md", PLAIN)
    (docs / "second-name.md").hardlink_to(outside)
    assert edit("link.md", "## Pruning", "x")["data"]["file"] == "plants/roses.md"
    assert edit("second-name.md", "## A", "x")["success"]
    assert (docs / "link.md").is_symlink()
    assert roses.read_text() == "# Roses\n\n## Pruning\n\nx\n"
    assert roses.stat().st_mode & 0o777 == 0o640
    assert outside.read_text() == PLAIN
    assert "\nx\n" in (docs / "second-name.md").read_text()


def test_without_the_setting_the_list_is_what_it_was(settings: Settings, connect: Connect) -> None:
    """The setting adds one tool at the end of its domain; without it a call is refused and names it."""
    guide = settings.roots[0] / "guide.md"
    before = guide.read_bytes()
    without, with_it = listed(settings), listed(settings, write=True)
    names = [tool["name"] for tool in with_it]
    place = names.index(TOOL)
    assert place == max(place for place, name in enumerate(names) if name.startswith("npl_"))
    assert [*with_it[:place], *with_it[place + 1 :]] == without
    assert TOOL not in json.dumps(without)
    assert listed(settings, write=True, domains=("chat",)) == listed(settings, domains=("chat",))
    call = connect(settings)
    assert "digest" not in call.do("npl_section_index", file="guide.md")
    answer = editing(call)("guide.md", "## Pruning", "x")
    assert answer["error_code"] == "PERMISSION_DENIED"
    assert "--write" in answer["error"]
    assert guide.read_bytes() == before


APPENDING = """
import sys
from pathlib import Path
from npl_mcp.config.settings import Settings
from npl_mcp.app.app import App
from npl_mcp.tools.npl import npl_update_section

root = Path(sys.argv[1])
app = App(Settings(cwd=root, home=root, roots=(root,), data_dir=root / "data", write=True))
for number in range(8):
    npl_update_section(app, "note.md", "append", "## A", f"process {number}")
"""


def test_of_writers_at_once_none_loses_anything(writing: Settings, call: Call, edit: Edit) -> None:
    call.do("session_list")
    file = put(writing.roots[0] / "note.md", "# T\n\n## A\n\n## B\n\nb\n")
    other = subprocess.Popen([sys.executable, "-c", APPENDING, str(writing.roots[0])], cwd=ROOT)
    until(lambda: "process 0" in file.read_text())
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda number: edit("note.md", "## A", f"call {number}", "append"), range(8))
        assert all(answer["success"] for answer in answers)
    assert other.wait(60) == 0
    text = file.read_text()
    wanted = [f"{who} {number}" for who in ("call", "process") for number in range(8)]
    assert sorted(line for line in text.split("\n") if " " in line and "#" not in line) == wanted
    assert text.endswith("\n\n## B\n\nb\n")
    assert not list(file.parent.glob(".npl-*"))
