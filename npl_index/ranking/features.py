"""The features of sections: a table with a row a section and a column a feature.

A feature says how far one thing speaks for a section as the answer to a question. It is a number from 0
to 1, scaled without regard to other hits. The rank value of a section is the sum of its features, each times
its weight. ``python -m benchmarks.relevance --fit`` learns the weights from labelled questions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from math import log
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from npl_index.cached import cached_property
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.bm25f import FIELD_WEIGHTS, K1, Concept, Passages, idf, match, sums
from npl_index.ranking.positions import concept_of_rows, pair_counts
from npl_index.ranking.postings import distinct


class Table:
    """The sections that may answer a question, and the observations from which the features are made.

    :param pairs: rows of the question's neighbouring terms.
    :param headed: 1 for the sections whose heading is the question, else 0.
    :param topics: gain of each section by the topics.
    :param behind: 1 for the sections of documents that stand behind others, else 0.
    """

    def __init__(
        self,
        passages: Passages,
        concepts: Sequence[Concept],
        pairs: Sequence[tuple[int, int]],
        headed: NDArray[Any],
        topics: NDArray[Any],
        behind: NDArray[Any],
    ) -> None:
        self.passages, self.concepts, self.pairs = passages, concepts, pairs
        self.headed, self.topics, self.behind = headed, topics, behind
        self.size = passages.postings.size
        self.weight = sum(concept.weight for concept in concepts) or 1.0
        # One lookup has all rows that later ones need.
        passages.postings.find([*concept_of_rows(concepts), *chain(*pairs)])
        self.matches = match(passages, concepts)

    @cached_property
    def is_related(self) -> NDArray[Any]:
        """Whether each section has anything of the question."""
        related: NDArray[Any] = (self.matches.scores > 0) | (self.headed > 0) | (self.topics > 0)
        if self.passages.vocabulary.pages == 1:  # the words of its title are a question about its beginning
            related |= (self.matches.covered > 0) & (self.passages.postings.levels <= 1)
        return related

    @property
    def copies(self) -> NDArray[Any] | None:
        """Numbers of the sections' texts, in a search of several documents."""
        return self.passages.postings.copies if len(self.passages.documents) > 1 else None


def _begins(table: Table) -> NDArray[Any]:
    """Return 1 for the first text of a page, and less if its names have nearly all of the question."""
    begins: NDArray[Any] = table.passages.postings.introduces * (1 - table.matches.names**4)
    return begins


def _page(table: Table) -> NDArray[Any]:
    """Return the highest score of a section of the page.

    Evidence from the whole document helps to choose among its passages (Callan, "Passage-level evidence in
    document retrieval", SIGIR 1994).
    """
    pages = table.passages.postings.pages
    best = np.zeros(int(pages[-1]) + 1)
    np.maximum.at(best, pages, table.matches.scores)
    return best[pages]


def _parent(table: Table) -> NDArray[Any]:
    """Return the score of the section above, 0 without one.

    A subsection belongs to its parent's subject and rarely repeats its words (Arvola, Junkkari and
    Kekäläinen, "Generalized contextualization method for XML information retrieval", CIKM 2005).
    """
    parents = table.passages.postings.parents
    return np.where(parents == np.arange(len(parents)), 0.0, table.matches.scores[parents])


def _headed(table: Table) -> NDArray[Any]:
    """Return 1 if a heading is the question, and how well a page's name fits it for the page's first text.

    A question that names a page is answered by its first text, which explains the name. That is the text
    below the title, or the next text after an empty one.
    """
    postings, fitting = table.passages.postings, table.headed.copy()
    weighted = [(c.weight, row, share) for c in table.concepts for row, share in c.variants]
    worth = {row: (share, share * weight) for weight, row, share in weighted}
    holders = postings.find(list(worth))
    is_title = (holders.in_heading > 0) & (postings.levels[holders.sections] <= 1)
    titled = distinct(holders.sections[is_title])
    rows, owners = postings.heading_terms(titled)
    shares, weights = np.array([worth.get(row, (0, 0)) for row in rows.tolist()], float).reshape(-1, 2).T
    rarity = idf(table.passages.vocabulary, rows)
    columns = weights, rarity, rarity * shares
    said, whole, covered = (sums(values, owners, len(titled)) for values in columns)
    fits = (covered / whole) ** 2 * np.minimum(1, said / table.weight) ** 4
    np.maximum.at(fitting, postings.first_texts[titled], fits)
    return fitting


def _title(table: Table) -> NDArray[Any]:
    """Return the scores of titles by ``BM25Plus``, as shares of the highest possible score.

    A title is a heading with its path and the words of the file's name. The model contains the titles with a
    word of the question, so a word in few titles counts more, and a word of the file's name hardly counts.
    Short titles have no advantage (``b``), nor do missing words (``delta``).
    """
    from rank_bm25 import BM25Plus  # slow to import, see arrays

    concept_of = concept_of_rows(table.concepts)
    numbers = np.array([number for number, _ in concept_of.values()], np.intp)
    runs, sections, in_heading, in_path, _ = table.passages.postings.find(list(concept_of))
    titles, words = distinct(sections), np.arange(len(table.concepts))
    cells, size = titles.searchsorted(sections) * len(words) + numbers[runs], (len(titles), len(words))
    counts: NDArray[Any] = np.bincount(cells, in_heading + in_path, len(titles) * len(words))
    counts = counts.astype(np.intp).reshape(size)
    titles, counts = titles[counts.any(axis=1)], counts[counts.any(axis=1)]
    scores = np.zeros(table.size)
    if len(titles):
        rows = [*zip(*(column.tolist() for column in counts.T), strict=True)]
        different = list(dict.fromkeys(rows))  # of hundreds of titles, few have different words
        model = BM25Plus([words.repeat(row).tolist() for row in different], b=0, delta=0)
        holders = enumerate(np.count_nonzero(counts, axis=0).tolist())
        model.idf = {word: log((len(titles) + 1) / number) for word, number in holders if number}
        highest = (model.k1 + 1) * sum(model.idf.values())
        score_of = dict(zip(different, model.get_scores(list(model.idf)) / highest, strict=True))
        scores[titles] = list(map(score_of.__getitem__, rows))
    return scores


def _pairs(table: Table) -> NDArray[Any]:
    """Return the weights of words that are neighbours in the question and in the section.

    A "definition list" is not just a definition and a list. A pair counts like a term: its mass is normalized
    and saturated as in BM25F, and it weighs more if fewer of the passages have it (like the ordered pairs of
    Metzler and Croft, "A Markov random field model for term dependencies", SIGIR 2005).
    """
    passages = table.passages
    numbers, sections, in_heading, in_body = pair_counts(passages.postings, table.pairs)
    mass = in_body / passages.body_norms(sections) + FIELD_WEIGHTS[0] * in_heading
    holders = np.bincount(numbers, minlength=1)[numbers]
    rarity = np.log((passages.vocabulary.sections + 1) / holders)
    weights = np.zeros(passages.postings.size)
    np.add.at(weights, sections, rarity * mass / (mass + K1))
    return np.minimum(weights / table.weight, 1)


class Feature(NamedTuple):
    """A feature of sections.

    :param factor: the factor of the score that it belongs to, whose weight the user may change.
    :param of: returns the feature of each section, 0 to 1.
    """

    name: str
    weight: float
    factor: Literal["name", "content", "topic", ""]
    of: Callable[[Table], NDArray[Any]]


FEATURE_WEIGHTS = (
    # Its text has the question's words, often and in few others (BM25F).
    Feature("words", 1.25, "content", attrgetter("matches.bodies")),
    # It has much of the question in heading, path and text.
    Feature("covered", 1.0, "content", attrgetter("matches.covered")),
    # It has the question's words in the same order.
    Feature("pairs", 0.5, "content", _pairs),
    # Its page has a section with the question's words.
    Feature("page", 0.5, "content", _page),
    # The section above has the question's words.
    Feature("parent", 0.6, "content", _parent),
    # It is the text of a page before its subsections, which introduces more than it explains.
    Feature("begins", -0.25, "content", _begins),
    # Its heading, those above it and the name of its file have the question's words (BM25F).
    Feature("names", 1.0, "name", lambda table: table.matches.scores - table.matches.bodies),
    # These have more of the question's words than other titles (BM25Plus).
    Feature("title", 0.25, "name", _title),
    # Its heading has no other words than the question's.
    Feature("heading", 0.25, "name", attrgetter("matches.headings")),
    # Its heading is the question, or it is the first text of a page whose name is.
    Feature("headed", 1.0, "name", _headed),
    # Its heading is a topic.
    Feature("topic", 1.5, "topic", attrgetter("topics")),
    # It stands behind others: an older version, another language, a retired page.
    Feature("behind", -0.5, "", attrgetter("behind")),
)
"""All features of the ranking."""
