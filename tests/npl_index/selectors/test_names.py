"""Selectors over sets give equal results from the index and from reading all documents."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.relevance.indexed import indexed_collection
from npl_index.errors import NPLError
from npl_index.library.documents import Document, Fingerprint
from npl_index.markdown.sections import SectionTree
from npl_index.ranking.collection import IndexedDocument, KnownCollection
from npl_index.ranking.indexing import index_document
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.matching import Scope
from npl_index.selectors.names import KnownNames
from npl_index.selectors.selection import select_in
from tests.conftest import cases

NAMES = cases("npl_index/selectors/names")
PATHS = ["tea.md", "usage.md", "guide/set up.md", "guide/a.md", "b/tea.md", "b/Usage notes.md"]
PART = "npl-instructions:\n   name: {}\n   version: 1.2.0\n---\n"


def lines(headings: list[tuple[int, str]]) -> str:
    return "".join(f"{'#' * level} {name}\n\n" for level, name in headings)


HELD = {"code": "```\nx = 1\n```\n\n", "table": "| a | b |\n|--|--|\n| 1 | 2 |\n\n"}
"""Contents of sections."""

body = st.lists(
    st.one_of(
        st.tuples(st.integers(1, 3), st.sampled_from(NAMES)).map(lambda heading: lines([heading])),
        st.sampled_from(list(HELD.values())),
    ),
    max_size=7,
).map("".join)
part = st.builds(
    lambda name, text: PART.format(name) + text, st.sampled_from(["rules", "Usage", "tea"]), body
)
texts = st.one_of(body, part, st.tuples(part, part).map("\n* * *\n\n".join))
name = st.sampled_from([*NAMES, "Usa", "se", "tea", "guide/a", "b/tea.md", "rules", "nothing", "Usagee", "*"])
relation = st.sampled_from([" > ", " > ## ", " ## ", " // ", " ### "])
step = st.tuples(
    relation, name, st.sampled_from(["", " [2]", " [has-code]", " [has-tables] [has-code]"])
).map("".join)
path = st.lists(step, max_size=2).map("".join)
end = st.sampled_from(["", "", " [depth=1]", "...## Usage"])
selectors = st.tuples(st.one_of(name, st.just("* [has-code]"), step), path, end).map(
    lambda parts: "".join(parts).strip()
)


def indexed(path: str, text: str) -> IndexedDocument:
    data = text.encode()
    title = path.rpartition("/")[2].removesuffix(".md")
    return index_document(
        Document(title, path, Fingerprint(f"/{path}", 1, len(data)), data, "0" * 32, npl=True)
    )


def outcome(scope: Scope, selector: str) -> object:
    """Return what a selector finds, or all that the error says."""
    try:
        return select_in(scope, compile_selector(selector))
    except NPLError as error:
        return type(error), str(error), error.message, error.hint, getattr(error, "near", None)


@given(
    documents=st.dictionaries(st.sampled_from(PATHS), texts, min_size=2),
    chosen=st.lists(selectors, min_size=1, max_size=5),
    stored=st.booleans(),
)
def test_selectors_find_the_same_with_and_without_the_trees(
    documents: dict[str, str], chosen: list[str], stored: bool
) -> None:
    """Sections, errors and hints are equal in memory and in the index."""
    every = [indexed(path, documents[path]) for path in sorted(documents)]
    names: KnownNames = KnownCollection(every).names
    if stored:
        names = indexed_collection([page.document for page in every]).names
    trees, called = (
        [page.tree for page in every],
        [(path, path.removesuffix(".md")) for path in sorted(documents)],
    )
    for selector in chosen:
        known = Scope(trees, called, addresses=called, register=names)
        assert outcome(known, selector) == outcome(Scope(trees, called, addresses=called), selector)


def test_only_documents_that_may_be_meant_are_read() -> None:
    """One of fifty documents is read for a heading that it alone has; a wrong name costs five."""
    documents = [indexed(f"page{n}.md", f"# Page\n\n## Number {n}\n\n## More of it\n") for n in range(50)]
    asked: list[int] = []

    class Trees(Sequence[SectionTree]):
        def __len__(self) -> int:
            return len(documents)

        def __getitem__(self, place: int) -> SectionTree:  # type: ignore[override]
            asked.append(place)
            return documents[place].tree

    scope = Scope(Trees(), [()] * 50, register=KnownCollection(documents).names)
    (selection,) = select_in(scope, compile_selector("## Number 17"))
    assert (selection.tree, set(asked)) == (17, {17})
    asked.clear()
    said = outcome(scope, "## Nummer 17")
    assert isinstance(said, tuple)
    assert len(said[4]) == 5
    assert len(set(asked)) <= 5
