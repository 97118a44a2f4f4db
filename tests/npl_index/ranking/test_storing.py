"""What is kept of indexed documents on disk."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npl_index.ranking.indexing import IndexedDocument
from npl_index.ranking.storing import dump, restore
from tests.npl_index.ranking.test_indexing import TEXT, answer, document, indexed


def same(one: IndexedDocument, other: IndexedDocument) -> bool:
    """Return whether two indexed documents are alike in all they know."""
    mine, theirs = one.counts, other.counts
    arrays = zip(mine.arrays().values(), theirs.arrays().values(), strict=True)
    return (
        one.tree == other.tree
        and (mine.terms, mine.headings) == (theirs.terms, theirs.headings)
        and all((a == b).all() for a, b in arrays)
    )


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "",
        "\ufeff# A\r\n\r\ntext\r\n",
        "# A\n\n- ```\nx\n\n```\ny\n",
        'quotes " and \\ back\n',
        "# 🎯\n\n" + " ".join(map(str, range(3000))),
    ],
    ids=["guide", "empty", "mark and CRLF", "fences in doubt", "quotes", "many terms"],
)
def test_dump_and_restore(text: str) -> None:
    """What is written down comes back as it was, and finds the same."""
    original = indexed(text)
    restored = restore(original.document, *dump(original))
    assert restored is not None
    assert same(original, restored)
    assert answer(restored.collection, "text fences 17") == answer(original.collection, "text fences 17")


def test_dumps_are_json() -> None:
    """The two texts are plain JSON objects."""
    index, keywords = map(json.loads, dump(indexed()))
    assert index["sections"][1][2] == "Demo Guide"
    assert "fenc" in keywords["terms"].split(" ")


@given(st.data())
def test_damaged_dumps_are_refused_or_harmless(data: st.DataObject) -> None:
    """Whatever one value of a dump is replaced by, restoring gives nothing or something that works."""
    original = indexed()
    texts = [json.loads(text) for text in dump(original)]
    part = data.draw(st.sampled_from(texts))
    key = data.draw(st.sampled_from(sorted(part)))
    junk = st.one_of(
        st.none(),
        st.integers(),
        st.floats(),
        st.text(max_size=5),
        st.lists(st.integers(-5, 5), max_size=3),
        st.booleans(),
    )
    if key == "sections" and isinstance(part[key], list) and data.draw(st.booleans()):
        row = data.draw(st.sampled_from(part[key]))
        row[data.draw(st.integers(0, len(row) - 1))] = data.draw(junk)
    else:
        part[key] = data.draw(junk)
    restored = restore(original.document, *map(json.dumps, texts))
    if restored is not None:
        for name in answer(restored.collection, "fences parameters definition"):
            assert isinstance(name, str)
        for section in restored.tree.sections:
            restored.tree.text(section.whole)


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", "[" * 100_000, "1e999", '{"sections":[]}'])
def test_dumps_that_are_none(damage: str) -> None:
    """Texts that are no dump give nothing, on either side."""
    original = indexed()
    index, keywords = dump(original)
    assert restore(original.document, damage, keywords) is None
    assert restore(original.document, index, damage) is None


def test_a_dump_of_another_text() -> None:
    """A dump whose lines lie outside the document is refused."""
    long, short = indexed(TEXT * 3), document("# A\n")
    assert restore(short, *dump(long)) is None
