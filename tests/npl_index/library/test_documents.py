"""Files are listed and read, and nothing outside the roots is."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from npl_index import errors
from npl_index.errors import (
    DocumentNotFoundError,
    DocumentTooLargeError,
    InvalidRequestError,
    NPLError,
    OutsideRootError,
    UnreadableDocumentError,
)
from npl_index.library.catalog import Root, make_catalog
from npl_index.library.documents import Document, DocumentFile, DocumentRef, Library, Limits
from npl_index.library.roots import skipped_text
from npl_index.library.walking import Walk
from tests.conftest import cases
from tests.folders import fill

SECRET = "not for you"


def library_of(*roots: Path, limits: Limits | None = None, **environment: str) -> Library:
    """A library over given folders; NPL's own places are those of the first folder and the environment."""
    catalog = make_catalog(cwd=roots[0], home=None, system=None, bundled=None, **environment)
    return Library([Root(str(root), root.name) for root in roots], catalog, limits)


def paths(library: Library, file: str) -> list[str]:
    return [file.path for file in library.find(DocumentRef(file))]


def read(library: Library, file: str) -> Document:
    (files,) = library.find(DocumentRef(file))
    return library.read(files)


def one_file(folder: Path, limits: Limits | None = None) -> tuple[Path, Library, DocumentFile]:
    library = library_of(fill(folder, {"a.md": "text"}), limits=limits)
    (file,) = library.find(DocumentRef("a.md"))
    return folder / "a.md", library, file


def build_hostile(base: Path) -> Library:
    """A root with everything that has fooled file servers, among neighbours it must not reach."""
    root = fill(base / "prompts", {"sub/ok.md": "fine", "top.md": "fine", "notes.txt": SECRET})
    fill(base, {"secret.md": SECRET, "prompts-evil/s.md": SECRET, "x.md": SECRET})
    (root / "out.md").symlink_to(base / "secret.md")
    (root / "outdir").symlink_to(base / "prompts-evil")
    (root / "zero.md").symlink_to("/dev/zero")
    (root / "gone.md").symlink_to(root / "nowhere.md")
    (root / "loop.md").symlink_to(root / "loop.md")
    (root / "text.md").symlink_to(root / "notes.txt")
    (root / "folder.md").mkdir()
    (root / "empty").mkdir()
    for number in range(1200):
        (base / f"chain{number}").symlink_to(base / f"chain{number + 1}")
    (root / "chain.md").symlink_to(base / "chain0")
    os.mkfifo(root / "pipe.md")
    with (root / "giant.md").open("wb") as giant:
        giant.truncate(10 << 30)
    return library_of(root)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return build_hostile(tmp_path_factory.mktemp("hostile"))


# What is asked for, and the errors that may come.
REFUSED = [
    *cases("npl_index/library/documents_refused"),
    ("a/" * 2000 + "x.md", ["DocumentNotFoundError"]),
    ("x" * 300 + ".md", ["DocumentNotFoundError"]),
    ("a" * 5000, ["InvalidRequestError"]),
]


@pytest.mark.parametrize(("file", "allowed"), REFUSED, ids=[ascii(file)[:40] for file, _ in REFUSED])
def test_hostile_paths_are_refused(hostile: Library, file: str, allowed: list[str]) -> None:
    with pytest.raises(tuple(getattr(errors, name) for name in allowed)) as raised:
        read(hostile, file)
    folder = str(Path(next(iter(hostile.roots)).path).parent)
    assert folder not in str(raised.value)
    assert SECRET not in str(raised.value)


ALPHABET = st.sampled_from(
    ["..", ".", "/", "\\", "~", "%2e", "*", "**", "?", "[a-z]", ":", " ", "secret", ".md"]
)
NAMES = st.sampled_from(
    ["sub", "ok", "top", "out", "outdir", "prompts", "prompts-evil", "pipe", "é", "\0", "{a}"]
)


# A folder listing now and then takes longer than hypothesis allows by default.
@given(st.lists(st.one_of(ALPHABET, NAMES), max_size=8).map("".join), st.booleans())
@example("\\..", False)
def test_nothing_outside_is_ever_found(hostile: Library, text: str, absolute: bool) -> None:
    """Every request gets files of the root or an expected error."""
    root = Path(next(iter(hostile.roots)).path)
    try:
        files = hostile.find(DocumentRef(f"{root}/{text}" if absolute else text))
    except NPLError:
        return
    for file in files:
        real = Path(file.absolute).resolve(strict=True)
        assert real == Path(file.absolute)
        assert root in real.parents
        assert real.is_file()


def test_item_names_do_not_climb(hostile: Library) -> None:
    for item in ("/etc/passwd", "../../secret", "npl/../../../secret", "./secret"):
        for kind in hostile.catalog.kinds:
            with pytest.raises(OutsideRootError):
                hostile.find_item(kind, item)


@contextmanager
def flipping(change: Callable[[int], None]) -> Iterator[None]:
    """Change the disk over and over in another thread while the block runs."""
    stop = threading.Event()

    def run() -> None:
        turn = 0
        while not stop.is_set():
            change(turn)
            turn += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_file_swapped_for_a_link_is_not_followed(tmp_path: Path) -> None:
    """However often a file and a link out of the root change places, the link's target is never read."""
    root = fill(tmp_path / "root", {"race.md": "fine"})
    fill(tmp_path, {"secret.md": SECRET})
    library = library_of(root)
    (files,) = library.find(DocumentRef("race.md"))

    def swap(turn: int) -> None:
        spare = tmp_path / "spare"
        if turn % 2:
            spare.write_text("fine")
        else:
            spare.symlink_to(tmp_path / "secret.md")
        spare.replace(root / "race.md")

    seen = set()
    rounds = 0
    with flipping(swap):
        while rounds < 1_000 or not seen:
            rounds += 1
            try:
                seen.add(library.read(files).data)
                seen.add(read(library, "race.md").data)
            except (DocumentNotFoundError, OutsideRootError, UnreadableDocumentError):
                continue
    assert seen == {b"fine"}


def test_a_folder_swapped_for_a_link_is_not_followed(tmp_path: Path) -> None:
    """A folder on the way to a file is not entered through a link either."""
    root = fill(tmp_path / "root", {"sub/a.md": "fine"})
    fill(tmp_path, {"evil/a.md": SECRET})
    library = library_of(root)
    (files,) = library.find(DocumentRef("sub/a.md"))
    (root / "sub").rename(root / "moved")
    (root / "sub").symlink_to(tmp_path / "evil")
    with pytest.raises(UnreadableDocumentError):
        library.read(files)


def meddle(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object], times: int) -> None:
    """Act right after each of the first calls that read the state of an open file."""
    left = [times]
    really_ask = os.fstat

    def ask_and_change(file: int) -> os.stat_result:
        status = really_ask(file)
        if left[0]:
            left[0] -= 1
            change()
        return status

    monkeypatch.setattr(os, "fstat", ask_and_change)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, library, files = one_file(tmp_path)
    meddle(monkeypatch, lambda: grow(path), times=2)
    document = library.read(files)
    assert document.data == path.read_bytes() == b"textmoremore"
    assert document.fingerprint == files.stat()


def test_a_file_that_never_rests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, library, files = one_file(tmp_path)
    clock = count(1)
    meddle(monkeypatch, lambda: os.utime(path, ns=(0, next(clock) * 1_000_000)), times=1000)
    with pytest.raises(UnreadableDocumentError, match="changed while it was read"):
        library.read(files)


def test_a_file_that_grows_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, library, files = one_file(tmp_path, Limits(max_bytes=10))
    meddle(monkeypatch, lambda: grow(path), times=1000)
    with pytest.raises(DocumentTooLargeError):
        library.read(files)


def test_what_takes_a_files_place_is_not_read(tmp_path: Path) -> None:
    """A pipe, a folder or nothing in place of a file that was found is an error, at once."""
    path, library, files = one_file(tmp_path)
    path.unlink()
    with pytest.raises(DocumentNotFoundError):
        library.read(files)
    os.mkfifo(path)
    with pytest.raises(UnreadableDocumentError, match="not a regular file"):
        library.read(files)
    path.unlink()
    path.mkdir()
    with pytest.raises(UnreadableDocumentError, match="not a regular file"):
        library.read(files)


def test_a_document_says_what_it_is(tmp_path: Path) -> None:
    """A document carries name, path, bytes, digest and the state of the file it belongs to."""
    root = fill(tmp_path / "root", {"a/m1.persona.md": "# Ü\n"})
    document = read(library_of(root), "a/m1.persona.md")
    assert (document.name, document.path) == ("m1.persona", "a/m1.persona.md")
    assert document.data == "# Ü\n".encode()
    # As b2sum -l 128 gives it for the same five bytes.
    assert document.digest == "615e80dcf57353c5822efacd51409d7f"
    assert document.npl is False


def test_fingerprint_follows_the_file(tmp_path: Path) -> None:
    """The cheap fingerprint equals the one of reading, and changes with time or size of the file."""
    path, library, files = one_file(tmp_path)
    before = files.stat()
    assert before == library.read(files).fingerprint
    assert before.path == str(path.resolve())
    os.utime(path, ns=(before.mtime_ns, before.mtime_ns + 1_000_000))
    touched = files.stat()
    assert touched != before
    path.write_text("longer")
    os.utime(path, ns=(before.mtime_ns, before.mtime_ns))
    assert files.stat() not in (before, touched)
    path.unlink()
    with pytest.raises(DocumentNotFoundError):
        files.stat()
    path.mkdir()
    with pytest.raises(UnreadableDocumentError):
        files.stat()


FOREST = cases("npl_index/library/documents")["forest"]

FORMS = cases("npl_index/library/documents_forms")


@pytest.mark.parametrize(("file", "expected"), FORMS, ids=[file for file, _ in FORMS])
def test_forms_of_file(tmp_path: Path, file: str, expected: list[str]) -> None:
    """A file is named by path, with or without suffix, as a folder, by a pattern or as an item."""
    assert paths(library_of(fill(tmp_path, FOREST)), file) == expected


# An item has no absolute name.
ABSOLUTE = [form for form in FORMS if form[0] not in ("syntax", "syntax.fill-in", "syntax/fill-in", "mine")][
    :-1
]


@pytest.mark.parametrize(("file", "expected"), ABSOLUTE, ids=[file for file, _ in ABSOLUTE])
def test_absolute_forms_of_file(tmp_path: Path, file: str, expected: list[str]) -> None:
    assert paths(library_of(fill(tmp_path, FOREST)), f"{tmp_path}/{file}") == expected


@pytest.mark.parametrize(
    ("file", "is_set"), cases("npl_index/library/documents")["sets_are_told_from_single_files"]
)
def test_sets_are_told_from_single_files(tmp_path: Path, file: str, is_set: bool) -> None:
    """A folder or a pattern is a set even if it holds one file; what only looks like one is a file."""
    odd = {"docs/what? [x].md": "odd", "docs/{a,b} as such.md": "odd"}
    library = library_of(fill(tmp_path, {**FOREST, **odd}))
    assert library.is_set(DocumentRef(file)) is is_set
    assert library.is_set(DocumentRef(kind="component", item="synt*"))
    assert not library.is_set(DocumentRef(kind="component", item="syntax"))
    assert not library.is_set(DocumentRef())


def test_links_inside_lead_to_their_file(tmp_path: Path) -> None:
    """A link whose target lies under a root is another name for it: the target is what is found, once."""
    root = fill(tmp_path / "root", {"real/a.md": "fine"})
    other = fill(tmp_path / "other", {"b.md": "fine"})
    (root / "link.md").symlink_to(root / "real" / "a.md")
    (root / "real" / "again").symlink_to(root / "real")
    (root / "shared").symlink_to(other)
    library = library_of(root, other)
    assert paths(library, "link.md") == ["real/a.md"]
    assert paths(library, "real/again/again/a.md") == ["real/a.md"]
    assert [(file.root.label, file.path) for file in library.find(DocumentRef("."))] == [
        ("root", "real/a.md"),
        ("other", "b.md"),
    ]
    assert paths(library, "shared/b.md") == ["b.md"]


def test_links_out_are_left_out_of_folders(hostile: Library) -> None:
    """Walking a folder passes over links that lead out, pipes, folders named like files, and dead links."""
    assert paths(hostile, ".") == ["giant.md", "sub/ok.md", "top.md"]


def test_a_root_may_be_a_link(tmp_path: Path) -> None:
    """A root that is given through a link serves relative paths and both spellings of absolute ones."""
    real = fill(tmp_path / "real", {"a.md": "fine"})
    (tmp_path / "link").symlink_to(real)
    library = library_of(tmp_path / "link")
    for file in ("a.md", str(tmp_path / "link" / "a.md"), str(real / "a.md")):
        assert paths(library, file) == ["a.md"]


def test_first_root_wins(tmp_path: Path) -> None:
    """Of equal paths the one below the first root is found; the second root fills the gaps."""
    first = fill(tmp_path / "one", {"a.md": "1"})
    two = fill(tmp_path / "two", {"a.md": "2", "b.md": "2", "more/c.md": "2"})
    library = library_of(first, two)
    assert read(library, "a.md").data == b"1"
    assert read(library, "b.md").data == b"2"
    assert paths(library, "*.md") == ["a.md"]
    assert paths(library, "more/*.md") == ["more/c.md"]


def test_a_file_is_the_same_however_it_is_found(tmp_path: Path) -> None:
    """One file found by path, as an item and through a nested root has one root, path and fingerprint."""
    fill(tmp_path, FOREST)
    library = library_of(tmp_path, tmp_path / ".npl")
    by_path = library.find(DocumentRef(".npl/npl/syntax.md"))[0]
    by_item = library.find(DocumentRef(kind="component", item="syntax"))[0]
    by_nested_root = library.find(DocumentRef("npl/syntax.md"))[0]
    assert library.read(by_path) == library.read(by_item) == library.read(by_nested_root)
    assert (by_item.label, by_item.item) == ("project", "syntax")
    assert library.read(by_item).npl is True
    assert read(library, "readme.md").npl is False


def test_a_path_that_is_shown_can_be_asked_for(tmp_path: Path) -> None:
    library = library_of(fill(tmp_path, FOREST))
    everything = library.find(DocumentRef("."))
    assert [library.find(DocumentRef(file.path)) for file in everything] == [(file,) for file in everything]


@pytest.mark.parametrize(
    ("limits", "file"),
    [
        (Limits(max_files=4), "docs"),
        (Limits(max_files=4), "**/*.md"),
        (Limits(max_entries=3), "docs"),
        (Limits(max_bytes=3), "readme.md"),
    ],
)
def test_limits_are_kept(tmp_path: Path, limits: Limits, file: str) -> None:
    fill(tmp_path, {**FOREST, "readme.md": "four"})
    library = library_of(tmp_path, limits=limits)
    with pytest.raises(DocumentTooLargeError):
        read(library, file)


def test_what_a_walk_skips_is_counted(tmp_path: Path) -> None:
    """Deep folders make no root unusable; Markdown of other programs is served."""
    deep = "/".join("d" * 40)
    names = ("a.qmd", "b.Rmd", "c.rst", "sub/d.RST", "e.txt", "tab\t.md", f"{deep}/f.md", "g.png")
    names += ("lib:docs.md", "artifact:1.md", "sub/cr:X.md", "cr:Y/h.md", "f.md/g.mdc", "h.txt/i.md")
    names += (".github/j.md", ".github/ISSUE_TEMPLATE/k.md", ".claude/worktrees/l.md", ".git/m.md")
    library = library_of(fill(tmp_path, dict.fromkeys((f"docs/{name}" for name in names), "text")))
    walk = Walk(library.roots, counted=True)
    served = {path for path, _ in walk.files(str(tmp_path / "docs"))}
    expected = {"a.qmd", "b.Rmd", "f.md/g.mdc", "h.txt/i.md", ".github/j.md"}
    assert served == expected
    counts = "4 names that look like addresses; 2 .rst; 1 .txt; 1 folders below 32 levels; 1 unusable names"
    assert skipped_text(walk.skipped) == counts
    assert {file.path.removeprefix("docs/") for file in library.find(DocumentRef("docs"))} == expected
    assert [file.path for file in library.find(DocumentRef("docs/f.md"))] == ["docs/f.md/g.mdc"]
    assert library.is_set(DocumentRef("docs/f.md"))


@pytest.mark.parametrize(
    "name", cases("npl_index/library/documents")["a_name_as_agents_send_it_is_understood"]
)
def test_a_name_as_agents_send_it_is_understood(tmp_path: Path, name: str) -> None:
    """The file whose name is exactly this comes first."""
    library = library_of(fill(tmp_path, {"sub/a.md": "text"}))
    assert [file.path for file in library.find(DocumentRef(name))] == ["sub/a.md"]
    fill(tmp_path, {"@b.md": "text", "b.md": "text"})
    assert [file.path for file in library.find(DocumentRef("@b.md"))] == ["@b.md"]
    with pytest.raises(DocumentNotFoundError, match="there is no document 'C:"):
        library.find(DocumentRef("C:\\sub\\x.md"))
    with pytest.raises(DocumentNotFoundError):
        library.find(DocumentRef("@" * 3000 + "a.md"))
    assert not library.find_called("@" * 3000 + "a.md")


@pytest.mark.parametrize("target", ["lib:t.md", "cr:Y/h.md"])
def test_a_link_gives_no_document_the_address_of_another(tmp_path: Path, target: str) -> None:
    fill(tmp_path, {target: "text", "other.md": "text"})
    link = tmp_path / "linked"
    link.with_suffix(".md").symlink_to(tmp_path / target)
    link.symlink_to((tmp_path / target).parent)
    library = library_of(tmp_path)
    assert [file.path for file in library.find(DocumentRef("*"))] == ["other.md"]
    with pytest.raises(UnreadableDocumentError, match="looks like an address"):
        library.find(DocumentRef("linked.md"))


def test_the_number_of_items_is_limited(tmp_path: Path) -> None:
    library = library_of(fill(tmp_path, FOREST), limits=Limits(max_files=1))
    assert library.find(DocumentRef(kind="component", item="syntax"))
    with pytest.raises(DocumentTooLargeError):
        library.find(DocumentRef(kind="component", item="**"))


def test_near_names_in_a_large_folder(tmp_path: Path) -> None:
    """A wrong name is not found, and the search for near names ends."""
    fill(tmp_path, {f"folder{number:04}/x.txt": "" for number in range(1200)})
    with pytest.raises(DocumentNotFoundError):
        library_of(tmp_path).find(DocumentRef("nothing"))


@pytest.mark.parametrize(
    ("file", "near"),
    cases("npl_index/library/documents")["near_names_are_offered"],
)
def test_near_names_are_offered(tmp_path: Path, file: str, near: str) -> None:
    with pytest.raises(DocumentNotFoundError) as raised:
        library_of(fill(tmp_path, FOREST)).find(DocumentRef(file))
    assert near in raised.value.near
    assert len(raised.value.near) <= 5


@pytest.mark.parametrize(
    ("arguments", "error", "parameter"),
    cases("npl_index/library/documents")["references_that_contradict_themselves"],
)
def test_references_that_contradict_themselves(arguments: dict[str, str], error: str, parameter: str) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        DocumentRef(**arguments)
    assert (type(raised.value).__name__, raised.value.parameter) == (error, parameter)


def test_kinds_are_checked(tmp_path: Path) -> None:
    library = library_of(fill(tmp_path, FOREST))
    with pytest.raises(InvalidRequestError, match="component, meta, style"):
        library.find(DocumentRef(kind="nonsense", item="a"))
    with pytest.raises(InvalidRequestError, match="has no sections"):
        library.find(DocumentRef(kind="schema", item="a"))


def test_item_patterns_give_sets(tmp_path: Path) -> None:
    """An item may be a pattern; the short name of a kind is as good as its name."""
    library = library_of(fill(tmp_path, FOREST))
    files = library.find(DocumentRef(kind="c", item="**"))
    assert [file.item for file in files] == ["syntax", "syntax.fill-in"]


def test_the_core_reference_is_the_default(tmp_path: Path) -> None:
    """Without arguments the document is the first npl.md of environment, project and working directory."""
    with pytest.raises(DocumentNotFoundError, match="no init 'npl'"):
        library_of(tmp_path).find(DocumentRef())
    library = library_of(fill(tmp_path / "work", {"npl.md": "mine"}), npl_home=str(tmp_path / "home"))
    assert library.read(library.find(DocumentRef())[0]).data == b"mine"
    fill(tmp_path / "work", {".npl/npl.md": "the project's"})
    assert library.read(library.find(DocumentRef())[0]).data == b"the project's"
    fill(tmp_path / "home", {"npl.md": "the environment's"})
    assert library.read(library.find(DocumentRef())[0]).data == b"the environment's"
