"""Words of a question without any section, and similar words of the documents."""

from __future__ import annotations

import re
from collections.abc import Iterator

from npl_index.answer.document_set import DocumentSet
from npl_index.answer.finding import find_all
from npl_index.library.references import near_names
from npl_index.ranking.analysis import Word
from npl_index.ranking.coverage import MAX_WORDS, Coverage

MAX_NEAR = 2
"""Maximum similar words for one word."""

_MAX_TRIED = 6
_WORD = re.compile(r"\w[\w.-]*\w|\w")


def nowhere(documents: DocumentSet, coverage: Coverage) -> dict[str, tuple[str, ...]]:
    """Return the words of a question without any section, each with similar words as spelt in the documents.

    The ranking treats a misspelt word as the correct one; here it is absent, and the correct one is similar.
    """
    row = documents.collection.vocabulary.row
    absent = [word for word in coverage.words if all(row(term) is None for term in word.meant)]
    absent.sort(key=lambda word: -coverage.weights[coverage.words.index(word)])
    return {
        word.shown: near_names(word.shown, dict.fromkeys(_spellings_of_variants(documents, word)), MAX_NEAR)
        for word in absent[:MAX_WORDS]
    }


def _spellings_of_variants(documents: DocumentSet, word: Word) -> Iterator[str]:
    """Yield the variants of a word as spelt in a section."""
    vocabulary = documents.collection.vocabulary
    variants = sorted(vocabulary.variants(word.terms[-1]), key=lambda one: -one[1])[:_MAX_TRIED]
    for (row, _), term in zip(variants, vocabulary.texts([row for row, _ in variants]), strict=True):
        text = documents.text(documents.collection.holder(row))
        for place in find_all(text, 0, len(text), [(term, 1.0)])[:1]:
            found = _WORD.match(text, place.at)
            if found:
                yield found[0]
