"""Sections that are made from the terms of their fields."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from npl_index.ranking.postings import BEGINS_PAGE, Sections
from npl_index.ranking.vocabulary import KnownVocabulary

Fields = Sequence[tuple[Sequence[str], Sequence[str], Sequence[str]]]
"""Terms of heading, path and body of each section of a document."""


def counted(*documents: Fields) -> tuple[KnownVocabulary, list[Sections]]:
    """Return the vocabulary and the sections of documents; all sections belong to one page."""
    words = sorted(set(chain(*chain(*chain(*documents)))))
    row_of = {term: row for row, term in enumerate(words)}
    sections = []
    for number, document in enumerate(documents):
        fields = list(chain(*document))
        shape = [[*map(len, section), at, 1, 1, 0, 0] for at, section in enumerate(document)]
        shape[0][-3] |= 0 if number else BEGINS_PAGE
        rows = [row_of[term] for term in chain(*fields)]
        sections.append(Sections(np.array(shape, np.uint32), np.array(rows, np.uint32)))
    return KnownVocabulary(words, sections), sections
