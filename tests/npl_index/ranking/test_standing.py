"""Languages, versions and statuses put documents behind others."""

from dataclasses import replace

import pytest

from benchmarks.relevance.indexed import indexed_collection
from npl_index.library.documents import Fingerprint
from npl_index.ranking.standing import Standing, language_of, reasons, status_in, status_of, versions_of
from tests.conftest import cases
from tests.npl_index.conftest import document


@pytest.mark.parametrize(("language", "text"), cases("npl_index/ranking/standing")["the_language_of_a_text"])
def test_the_language_of_a_text(language: str, text: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("paths", "older"),
    [
        (["v1/a.md", "v2/a.md", "v10/a.md"], {0, 1}),
        (["docs/1.9/a.md", "docs/1.10/a.md"], {0}),
        (["docs/1.x/a.md", "docs/2.x/a.md", "docs/1.x/only.md"], {0}),
        (["docs/a.md", "versioned_docs/version-3.1/a.md", "versioned_docs/version-3.0/a.md"], {1, 2}),
        (["docs/a.md", "website/versioned_docs/version-3.1/a.md", "website/docs/b.md"], {1}),
        (["website/docs/a.md", "website/versioned_docs/version-3.1/a.md"], {1}),
        (["stable/a.md", "3.2/a.md", "next/a.md"], {1, 2}),
        (["latest/a.md", "latest/b.md", "v3/b.md"], {2}),
        (["2023/report.md", "2024/report.md"], set()),
        (["api/v1/users.md", "api/v2/teams.md"], set()),
        (["a.md", "b/a.md"], set()),
    ],
)
def test_older_versions_of_a_path(paths: list[str], older: set[int]) -> None:
    assert versions_of([f"/docs/{path}" for path in paths]).older == older


@pytest.mark.parametrize(
    ("paths", "history"),
    [
        (["CHANGELOG.md", "guide.md", "docs/release-notes.md", "docs/releases/1.0.md"], {0, 2, 3}),
        (["changelog_v1.md", "docs/whats-new.md", "docs/changelog-plugin.md"], {0, 1}),
        (["a/log.md", "a/index.md", "b/log.md"], {0}),
    ],
)
def test_histories(paths: list[str], history: set[int]) -> None:
    assert versions_of([f"/docs/{path}" for path in paths]).history == history


@pytest.mark.parametrize(
    ("fields", "status"),
    cases("npl_index/ranking/standing")["statuses"],
)
def test_statuses(fields: list[tuple[str, str]], status: str) -> None:
    assert status_of(fields) == status


PATHS = ["/v1/a.md", "/v2/a.md", "/de/b.md", "/CHANGELOG.md", "/old.md", "/b.md"]
STANDINGS = [
    Standing("en"),
    Standing("en"),
    Standing("de"),
    Standing("en"),
    Standing("en", "deprecated"),
    Standing("en"),
]
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
    ("question", "behind"),
    [
        ("pod limit in v1", {1}),
        ("pod limit in 1.4", {1}),
        ("pod limit in version 2.0.3", {0}),
        ("pod limit with version 1.28 of it", {1}),
        ("pod limit in v3", {0}),
        ("pod limit", {0}),
    ],
)
def test_a_version_is_named_by_any_of_its_numbers(question: str, behind: set[int]) -> None:
    versions = versions_of(["/1.x/pods.md", "/2.x/pods.md"])
    assert reasons(question, range(2), [Standing()] * 2, versions).keys() == behind


def test_english_is_no_other_language() -> None:
    """Its short words are common words of other languages, too."""
    for question in ("How do I do hot module reloading?", "What is it to me in a pod?"):
        assert language_of(question) == "en"


def test_a_named_version_stands_before_the_current_pages() -> None:
    """Pages outside of version folders are current, also without a version in their path."""
    versions = versions_of(["/r/docs/a.md", "/r/versioned_docs/version-3.1/a.md", "/r/docs/b.md"])
    assert reasons("How was it in 3.1?", range(3), [Standing()] * 3, versions) == {0: "version current"}


@pytest.mark.parametrize(
    ("paths", "behind"),
    [
        (["a.md", "de/a.md", "de/b.md", "en/a.md"], {1}),
        (["en/a.md", "de-AT/a.md", "x/de/a.md"], {1}),
        (["README.md", "README.de.md", "README_de-AT.md", "guide.en.md", "guide.de.md"], {1, 2, 4}),
        (["docs/a.md", "i18n/de/docusaurus-plugin-content-docs/current/a.md"], {1}),
        (["a.md", "fr/a.md"], set()),
    ],
)
def test_a_translation_stands_behind_its_page_if_the_question_tells_no_language(
    paths: list[str], behind: set[int]
) -> None:
    """The folder names the language; a page without an original is not a translation."""
    versions = versions_of([f"/docs/{path}" for path in paths])
    known = range(len(paths)), [Standing("de")] * len(paths), versions
    assert reasons("json.indentWidth", *known) == dict.fromkeys(behind, "translation")
    assert reasons("Wie kann ich das löschen?", *known) == {}


def test_the_name_of_a_field_may_begin_with_a_capital() -> None:
    assert status_in("---\nStatus: Deprecated\n---\n") == "deprecated"


@pytest.mark.parametrize("root", ["releases", "v3", "2024.1", "main", "plain"])
def test_the_path_of_a_root_says_nothing(root: str) -> None:
    """Versions are folders below the root."""
    names = ("v1/install.md", "v2/install.md", "notes.md")
    files = [document(name, f"# Install\n\nOn {name}.\n") for name in names]
    files = [replace(file, fingerprint=Fingerprint(f"/srv/{root}/{file.path}", 0, 9)) for file in files]
    versions = indexed_collection(files).versions
    assert (versions.older, versions.history) == ({0}, set())
