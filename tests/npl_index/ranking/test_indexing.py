"""Indexed documents and collections of them."""

import gc
import tracemalloc
from itertools import islice, product

import pytest

from npl_index.ranking.collection import Collection, IndexedDocument, KnownCollection
from npl_index.ranking.documents import ParsedDocument, dump_sections, restore_sections
from npl_index.ranking.indexing import MAX_TERMS, index_document
from npl_index.ranking.keywords import extract_keywords
from npl_index.ranking.postings import FIELDS
from npl_index.ranking.scoring import Query, rank
from tests.conftest import case_text, cases
from tests.npl_index.conftest import document

TEXT = case_text("texts/blocks.md")


def indexed(text: str = TEXT, path: str = "guides/demo.md") -> IndexedDocument:
    return index_document(document(path, text))


def answer(collection: Collection, question: str) -> list[str]:
    """Return the sections that match a question, best first."""
    hits = rank(collection, Query(extract_keywords(question))).hits
    return [collection.documents[hit.document].tree.sections[hit.section].name for hit in hits]


FOUND = cases("npl_index/ranking/indexing")["found"]


@pytest.mark.parametrize(("question", "section"), FOUND.values(), ids=FOUND)
def test_everything_in_a_document_can_be_found(question: str, section: str) -> None:
    """Headings, prose, tables, fences and definitions all lead to their section."""
    assert answer(indexed().collection, question)[0] == section


def test_front_matter_is_no_text() -> None:
    """Front matter is neither searched nor returned, except for names of the page."""
    assert answer(indexed("---\nlayout: zebra\n---\n# A\n\ntext\n").collection, "zebra") == []
    titled = indexed("---\ntitle: zebra\n---\n# A\n\ntext\n").collection
    assert sorted(answer(titled, "zebra")) == ["A", "demo"]


def test_the_file_name_counts() -> None:
    """The name of its file leads to a component's generic headings."""
    both = KnownCollection(
        [indexed("## Syntax\n\nuse it\n", f"npl/{name}.md") for name in ("fence", "highlight")]
    )
    hits = rank(both, Query(extract_keywords("highlight syntax"))).hits
    assert both.documents[hits[0].document].document.name == "highlight"


@pytest.mark.thorough
def test_a_document_of_too_many_words_is_found_by_the_first_of_them() -> None:
    """Terms are numbered while they are read, so a long text needs no list of all."""
    many = map("".join, islice(product("aeklmnoprtuxz", repeat=6), MAX_TERMS + 10_000))
    document = indexed(f"## Zebra\n\nzygote\n\n## Words\n\n{' '.join(many)}\n\n## Zulu\n\nxenon zygote\n")
    assert len(document.terms) == MAX_TERMS
    assert set(answer(document.collection, "zygote")) == {"Zebra", "Zulu"}


@pytest.mark.parametrize("text", ["", "\n", "---\na: b\n---\n", "# \n", "!!!\n"])
def test_documents_without_words(text: str) -> None:
    """An empty document can be indexed and searched, and finds nothing."""
    assert answer(indexed(text, "x/y.md").collection, "anything at all") == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        " ".join(f"word{number}" for number in range(66_000)),
        "a\n" * 100_000,
        "a" * 100_000 + "\N{LARGE GREEN CIRCLE}",
        "## Heading\n\ntext\n" * 1_000,
    ],
    ids=["words", "lines", "wide characters", "sections"],
)
def test_a_document_takes_no_more_memory_than_its_size_says(text: str) -> None:
    """The cache is bounded by these sizes."""
    assert indexed().collection
    tracemalloc.start()
    document = indexed(text)
    assert document.collection
    size, with_it = document.nbytes, tracemalloc.get_traced_memory()[0]
    del document
    gc.collect()
    without, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert with_it - without <= size


def test_a_long_section_is_read_to_its_end() -> None:
    """Sections longer than what is analysed at once lose no word, with or without blanks in them."""
    text = "# A\n\n" + "filler " * 30_000 + "aardvark\n\n# B\n\n" + "字" * 200_000 + "猫\n"
    document = indexed(text)
    assert document.sections.lengths[2::FIELDS].tolist()[1] == 30_001
    assert {"aardvark", "猫"} <= set(document.terms)


TEXTS = {
    "guide": TEXT,
    "empty": "",
    "mark and CRLF": "\ufeff# A\r\n\r\ntext\r\n",
    "fences in doubt": "# A\n\n- ```\nx\n\n```\ny\n",
    "quotes": 'quotes " and \\ back\n',
    "many terms": "# 🎯\n\n" + " ".join(map(str, range(3000))),
}


def restored(packed: bytes, text: str = TEXT) -> ParsedDocument:
    """Restore the sections of a document of some text."""
    document = indexed(text).document
    return restore_sections(packed, lambda _: document, lambda: document.data)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_dump_and_restore(text: str) -> None:
    original = indexed(text)
    copy = restored(dump_sections(original), text)
    assert tuple(copy.tree.sections) == tuple(original.tree.sections)
    assert (copy.tree.source, copy.tree.title) == (original.tree.source, original.tree.title)
    assert copy.steps == original.steps
