"""Languages, versions and statuses put documents behind others."""

from dataclasses import replace
from itertools import starmap

import pytest

from benchmarks.relevance.indexed import indexed_collection
from npl_index.library.documents import Fingerprint
from npl_index.ranking.keywords import extract_keywords
from npl_index.ranking.scoring import Query, rank
from npl_index.ranking.standing import Standing, language_of, reasons, status_in, status_of, versions_of
from tests.conftest import cases
from tests.npl_index.conftest import document


@pytest.mark.parametrize(("language", "text"), cases("npl_index/ranking/standing")["the_language_of_a_text"])
def test_the_language_of_a_text(language: str, text: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(("paths", "older"), cases("npl_index/ranking/standing")["older_versions_of_a_path"])
def test_older_versions_of_a_path(paths: list[str], older: list[int]) -> None:
    assert versions_of([f"/docs/{path}" for path in paths]).older == set(older)


@pytest.mark.parametrize(("paths", "history"), cases("npl_index/ranking/standing")["histories"])
def test_histories(paths: list[str], history: list[int]) -> None:
    assert versions_of([f"/docs/{path}" for path in paths]).history == set(history)


@pytest.mark.parametrize(("fields", "status"), cases("npl_index/ranking/standing")["statuses"])
def test_statuses(fields: list[tuple[str, str]], status: str) -> None:
    assert status_of(fields) == status


PATHS = ["/v1/a.md", "/v2/a.md", "/de/b.md", "/CHANGELOG.md", "/old.md", "/b.md"]
STANDINGS = [*map(Standing, ("en", "en", "de", "en", "en", "en"), ("", "", "", "", "deprecated", ""))]
USUAL = {0: "version 1", 2: "language de", 3: "history", 4: "deprecated"}
HISTORY = dict.fromkeys((0, 1, 4, 5), "current") | {2: "language de"}


@pytest.mark.parametrize(
    ("question", "behind"),
    [
        ("How do I delete a snapshot?", USUAL),
        ("Wie kann ich das löschen?", dict.fromkeys((0, 1, 3, 5), "language en") | {4: "deprecated"}),
        ("How do I delete it in v1?", {1: "version 2", 2: "language de", 4: "deprecated"}),
        ("How do I delete it in version 1.4?", {1: "version 2", 2: "language de", 4: "deprecated"}),
        ("How do I delete it with Python 3.12?", USUAL),
        ("When was the flag removed?", HISTORY),
        ("When did the server drop it?", HISTORY),
        ("Which release allowed more?", HISTORY),
        ("Which version of Python is supported?", USUAL),
        ("In which version was the flag added?", HISTORY),
        ("What is new in v7.0?", HISTORY),
        ("How did old pages delete it since the last release?", USUAL),
        ("Comment le supprimer dans les pages ?", USUAL | {2: "translation"}),
        ("snapshot", USUAL | {2: "translation"}),
    ],
)
def test_documents_behind_others(question: str, behind: dict[int, str]) -> None:
    assert reasons(question, range(6), STANDINGS, versions_of(PATHS)) == behind


@pytest.mark.parametrize(
    ("question", "behind"), cases("npl_index/ranking/standing")["a_version_is_named_by_any_of_its_numbers"]
)
def test_a_version_is_named_by_any_of_its_numbers(question: str, behind: list[int]) -> None:
    versions = versions_of(["/1.x/pods.md", "/2.x/pods.md"])
    assert reasons(question, range(2), [Standing()] * 2, versions).keys() == set(behind)


def test_english_is_no_other_language() -> None:
    """Its short words are common words of other languages, too."""
    assert (
        language_of("How do I do hot module reloading?") == language_of("What is it to me in a pod?") == "en"
    )


def test_a_named_version_stands_before_the_current_pages() -> None:
    """Pages outside of version folders are current, also without a version in their path."""
    versions = versions_of(["/r/docs/a.md", "/r/versioned_docs/version-3.1/a.md", "/r/docs/b.md"])
    assert reasons("How was it in 3.1?", range(3), [Standing()] * 3, versions) == {0: "version current"}


@pytest.mark.parametrize(("paths", "behind"), cases("npl_index/ranking/standing")["translations"])
def test_a_translation_stands_behind_its_page_if_the_question_tells_no_language(
    paths: list[str], behind: list[int]
) -> None:
    """The folder names the language; a page without an original is not a translation."""
    versions = versions_of([f"/docs/{path}" for path in paths])
    known = range(len(paths)), [Standing("de")] * len(paths), versions
    assert reasons("json.indentWidth", *known) == dict.fromkeys(behind, "translation")
    assert reasons("Wie kann ich das löschen?", *known) == {}


RETIRED = ["/legacy/a/b.md", "/docs/_archive/c.md", "/docs/archived.md", "/legacy-ui/d.md", "/Drafts/e.md"]


@pytest.mark.parametrize(
    ("question", "behind"),
    [
        ("How do I delete a snapshot?", {0: "legacy", 1: "archive", 4: "Drafts"}),
        ("How did the Legacy server delete it?", {1: "archive", 4: "Drafts"}),
        ("How do I archive a page, or list my drafts?", {0: "legacy"}),
    ],
)
def test_a_folder_says_that_its_documents_are_retired(question: str, behind: dict[int, str]) -> None:
    """A question that names the folder asks about them."""
    assert reasons(question, range(5), [Standing()] * 5, versions_of(RETIRED)) == behind


def test_the_name_of_a_field_may_begin_with_a_capital() -> None:
    assert status_in("---\nStatus: Deprecated\n---\n") == "deprecated"


@pytest.mark.parametrize("root", ["releases", "v3", "2024.1", "main", "plain"])
def test_the_path_of_a_root_says_nothing(root: str) -> None:
    """Versions are folders below the root."""
    names = ("v1/install.md", "v2/install.md", "notes.md")
    states = ((name, Fingerprint(f"/srv/{root}/{name}", 0, 9)) for name in names)
    files = [replace(document(name, f"# On {name}\n"), fingerprint=state) for name, state in states]
    assert indexed_collection(files).versions[::2] == ({0}, set(), {})


def test_an_older_page_is_left_out_with_the_newer_one() -> None:
    texts = {f"{n}.md": f"# Other {n}\n\nA frob of {n}.\n" for n in range(6)}
    texts |= dict.fromkeys(("v1/a.md", "v2/a.md"), "# Lamp\n\nA rope hangs from a frob.\n")
    among = indexed_collection(starmap(document, [("z.md", "# Zebra\n\nQuagga mountain.\n"), *texts.items()]))
    assert len(rank(among, Query(extract_keywords("quagga zebra mountain frob"))).hits) == 1
