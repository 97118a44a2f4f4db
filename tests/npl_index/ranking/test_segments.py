"""Sets of documents after edits: every score is that of a set made anew, bit for bit."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from npl_index.library.documents import Document, Fingerprint
from npl_index.ranking.analysis import extract_keywords
from npl_index.ranking.cut import cut
from npl_index.ranking.indexing import Collection, IndexedDocument, index_document
from npl_index.ranking.merging import Survivor, joined
from npl_index.ranking.packing import packed, unpack
from npl_index.ranking.parts import Postings
from npl_index.ranking.scoring import Query, rank
from npl_index.ranking.segments import segment_of

WORDS = ["tea", "kettle", "kettles", "boil", "boiling", "retry-limit", "maxRetries", "zyxw3", "数据", "pot"]
QUERIES = [
    Query(extract_keywords("boil tea in a kettle")),
    Query(extract_keywords("retry-limit maxRetries kettel")),
    Query(extract_keywords("数据 zyxw3 pot"), ("tea kettle",)),
    Query(extract_keywords(""), ("boiling", "retry limit")),
]

words = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
section = st.tuples(st.integers(1, 3), st.lists(st.sampled_from(WORDS), min_size=1, max_size=3), words)
texts = st.lists(section, max_size=5).map(
    lambda sections: "".join(
        f"{'#' * level} {' '.join(name)}\n\n{body}\n\n" for level, name, body in sections
    )
)
paths = st.sampled_from(["a/tea.md", "a/pot.md", "b/kettle.md", "b/deep/boil.md", "c.md", "d.md"])
edits = st.lists(st.tuples(paths, st.one_of(st.none(), texts)), max_size=12)


def indexed(path: str, text: str) -> IndexedDocument:
    """Index a text as a document of a set."""
    data = text.encode()
    name = path.rpartition("/")[2].removesuffix(".md")
    return index_document(
        Document(name, path, "test", Fingerprint(f"/{path}", 1, len(data)), data, "0" * 32, npl=False)
    )


def said(collection: Collection) -> list[object]:
    """Return everything that ranking says, numbers as they are."""
    found: list[object] = []
    for query in QUERIES:
        hits = rank(collection, query)
        found += [(collection.documents[hit.document].document.path, *hit[1:]) for hit in hits]
        found += [hit[:2] for hit in cut(hits, collection, query, generous=True)]
    return [len(collection), *found]


def edited(
    collection: Collection, now: dict[str, IndexedDocument], path: str, text: str | None
) -> Collection:
    """Return a collection after a document was written or removed, unless it is the only one.

    :param now: its documents, which are brought up to date.
    """
    places = {known: place for place, known in enumerate(sorted(now)) if known != path}
    if text is not None:
        now[path] = indexed(path, text)
        places[path] = len(collection.documents)
    elif places:
        now.pop(path, None)
    else:
        return collection
    segments = [] if text is None else [segment_of([now[path]])]
    collection = collection.changed([places[known] for known in sorted(now)], segments)
    return collection.with_documents([now[known] for known in sorted(now)], sorted(now))


@settings(max_examples=200, deadline=None)
@given(
    start=st.dictionaries(paths, texts, min_size=1),
    changes=edits,
    merged=st.integers(0, 12),
    first=st.integers(0, 1),
    stored=st.booleans(),
)
def test_edits_leave_the_ranking_of_a_set_made_anew(
    start: dict[str, str], changes: list[tuple[str, str | None]], merged: int, first: int, stored: bool
) -> None:
    """Whatever is written, renamed or removed, whenever segments are merged, in memory or stored."""
    now = {path: indexed(path, text) for path, text in start.items()}
    collection = Collection.build([now[path] for path in sorted(now)])
    if stored:
        base = unpack(packed(collection.postings.parts[0].segment))
        collection = replace(collection, postings=Postings.of(base))
    for number, (path, text) in enumerate(changes):
        collection = edited(collection, now, path, text)
        if number == merged:
            collection = collection.merged(min(first, len(collection.postings.parts) - 1))
    assert said(collection) == said(Collection.build([now[path] for path in sorted(now)]))


@settings(max_examples=200, deadline=None)
@given(
    start=st.dictionaries(paths, texts, min_size=1),
    changes=edits,
    begun=st.integers(0, 6),
    first=st.integers(1, 4),
    ended=st.integers(0, 6),
)
def test_segments_that_are_merged_while_others_come(
    start: dict[str, str], changes: list[tuple[str, str | None]], begun: int, first: int, ended: int
) -> None:
    """What is written, renamed or removed meanwhile stays so."""
    now = {path: indexed(path, text) for path, text in start.items()}
    collection = Collection.build([now[path] for path in sorted(now)])
    living: list[Survivor] = []
    for number, (path, text) in enumerate(changes):
        collection = edited(collection, now, path, text)
        if number == begun and len(collection.postings.parts) > first:
            living = collection.living(first)
            merged = joined(living)
        if living and number >= begun + ended:
            assert collection.holds(living, first)
            collection = collection.rebased(living, merged, first)
            assert merged is None or not collection.holds(living, first)
            living = []
    assert said(collection) == said(Collection.build([now[path] for path in sorted(now)]))
