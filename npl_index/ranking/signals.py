"""Signals of relevance: a table of observations on sections, and the values of sections from them.

BM25F scores each section alone and each word alone. Each signal adds an observation: page, title, order of
words, parent, named headings, place. Its gain is the observed share, times a unit, times the maximum of the
signal; a cost has a negative maximum. The signals of a stage see the values at its beginning, and a section's
value is the sum of its gains. The maxima ranked labelled sections best (``benchmarks/relevance``, which drops
a signal with ``--without``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from operator import attrgetter
from typing import Any, NamedTuple

from npl_index.cached import cached_property
from npl_index.choices import Weights
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.bm25f import FIELD_WEIGHTS, K1, Concept, Passages, idf, match, sums
from npl_index.ranking.positions import QueryTerms, TermPositions, best_windows, pair_counts, read_positions
from npl_index.ranking.postings import distinct

DEPTH = 80
"""Maximum sections, best first, that are read word by word."""

WINDOW = 12
"""Terms of a window."""

MANY_CHILDREN = 8
"""Maximum of counted subsections."""

SHORT = 20
"""Terms of a short section."""

MAX_CHILD_RANK = 20
"""Maximum rank of a subsection by which its parent gains."""

AMONG_SEVERAL = 0.85
"""Share of a parent's gain in a search of several documents."""

_MAX_TITLES = 2  # one in the front matter and one in the text
_TINY = 1e-9
_COMPLETENESS_POWER = 8


class Stage(Enum):
    """Stages of the values, in order.

    Before ``READ``, the best sections are read word by word; before ``TOPICS``, the values are scaled to the
    weights of name and content.
    """

    WORDS = auto()
    PAGES = auto()
    READ = auto()
    PARENTS = auto()
    QUERY = auto()
    PLACE = auto()
    CHILDREN = auto()
    TOPICS = auto()
    STANDING = auto()


class Scored:
    """The sections that may answer a query, with their values.

    :param asked: number of the query's terms, unknown ones and those of topics included.
    :param headed: 1 for the sections whose heading is the query, else 0.
    :param topics: share of each section in the gain by topics, 0 to 1.
    :param behind: cost of the sections of documents that stand behind others, mostly 1, else 0.
    :param allowed: 1 for the sections that may be hits, else 0.
    """

    positions: TermPositions
    """Positions of the query's terms in the sections that were read."""

    def __init__(
        self,
        passages: Passages,
        concepts: Sequence[Concept],
        weights: Weights,
        asked: int,
        headed: NDArray[Any],
        topics: NDArray[Any],
        behind: NDArray[Any],
        allowed: NDArray[Any] | float = 1.0,
    ) -> None:
        self.passages, self.concepts, self.weights = passages, concepts, weights
        self.asked, self.headed, self.topics, self.behind = asked, headed, topics, behind
        self.matches = match(passages, concepts, weights)
        self._allowed = allowed
        self.values = self.matches.scores * allowed
        self.gains: dict[str, NDArray[Any]] = {"words": self.values}

    def add_all(self, signals: Sequence[Signal], pairs: Iterable[tuple[int, int]]) -> None:
        """Add the gains by signals, stage by stage.

        :param pairs: rows of the query's neighbouring terms.
        """
        of_stage = {stage: [signal for signal in signals if signal.stage is stage] for stage in Stage}
        for stage in Stage:
            if stage is Stage.READ:
                self._read(pairs, of_stage[Stage.PARENTS])
            elif stage is Stage.TOPICS:
                self._scale(self.weights.name + self.weights.content)
            self._add(of_stage[stage])

    def _add(self, signals: Iterable[Signal]) -> None:
        """Add the gains by the signals of one stage."""
        gains = self._gains_by(signals)
        self.gains |= gains
        self.values = sum(gains.values(), self.values) * self._allowed

    def _gains_by(self, signals: Iterable[Signal]) -> dict[str, NDArray[Any]]:
        """Return the gains by some signals at the present values."""
        return {
            signal.name: signal.most * signal.unit(self) * signal.share(self)
            for signal in signals
            if signal.when is None or signal.when(self)
        }

    def _read(self, pairs: Iterable[tuple[int, int]], expected: Iterable[Signal]) -> None:
        """Read the best sections word by word.

        :param pairs: rows of the query's neighbouring terms.
        :param expected: signals whose gains count for this choice, without being added.
        """
        values = sum(self._gains_by(expected).values(), self.values)
        first = top_positions(values * (1 - self.behind / 3), DEPTH, self.copies)
        self.positions = read_positions(self.passages.postings, first, QueryTerms.of(self.concepts, pairs))

    def _scale(self, best: float) -> None:
        """Scale the values to a new best one."""
        factor = best / (self.values.max() or 1.0)
        self.values = self.values * factor
        self.gains = {name: gains * factor for name, gains in self.gains.items()}

    @property
    def copies(self) -> NDArray[Any] | None:
        """Numbers of the sections' texts, which differ between them in one document."""
        return self.passages.postings.copies if _several_documents(self) else None

    @cached_property
    def near(self) -> NDArray[Any]:
        """The share of the query within :data:`WINDOW` terms, for each section that was read.

        The words of a question answer it in one sentence, but not scattered over a long section (Tao and
        Zhai, "An exploration of proximity measures in information retrieval", SIGIR 2007).
        """
        near = np.zeros(self.passages.postings.size)
        whole = sum(self.positions.sought.weights.tolist()) or 1.0
        near[self.positions.numbers] = best_windows(self.positions, WINDOW) / whole
        return near

    @cached_property
    def names_page(self) -> NDArray[Any]:
        """How well the query fits the name of the page for the first text of each page, up to 1.

        A query that names a page is answered by its first text, which explains the name. That is the text
        below the title, or the next text after an empty one.
        """
        postings = self.passages.postings
        fitting = np.zeros(postings.size)
        pairs = ((concept.weight, variant) for concept in self.concepts for variant in concept.variants)
        worth = {row: (share, share * weight) for weight, (row, share) in pairs}
        holders = postings.find(list(worth))
        titled = distinct(
            holders.sections[(holders.in_heading > 0) & (postings.levels[holders.sections] <= 1)]
        )
        if not len(titled):
            return fitting
        rows, owners = postings.heading_terms(titled)
        shares, weights = np.array([worth.get(row, (0, 0)) for row in rows.tolist()], float).reshape(-1, 2).T
        rarity = idf(self.passages.vocabulary, rows)
        columns = weights, rarity, rarity * shares
        said, whole, covered = (sums(values, owners, len(titled)) for values in columns)
        query = self.asked * sum(concept.weight for concept in self.concepts) / (len(self.concepts) or 1)
        fits = covered / np.maximum(whole, _TINY) * np.minimum(1, said / (query or 1)) ** _COMPLETENESS_POWER
        for _ in range(_MAX_TITLES):
            after = np.minimum(titled + 1, postings.size - 1)
            blank = (postings.sizes[titled] == 0) & (postings.pages[after] == postings.pages[titled])
            titled = np.where(blank, after, titled)
        np.maximum.at(fitting, titled, fits)
        return fitting


def top_positions(values: NDArray[Any], limit: int, copies: NDArray[Any] | None = None) -> NDArray[Any]:
    """Return the positions of the highest values above 0, highest first; of equal values, the first.

    :param copies: number of each position's text, 0 without one; of positions with one text, only the first
        is returned.
    """
    positive = (values > 0).nonzero()[0]
    # Sorting all of them would take longer; many of the best may have one text.
    for most in (4 * limit, len(positive)):
        best = positive
        if most < len(positive):
            best = positive[values[positive] >= np.partition(values[positive], -most)[-most]]
        best = best[(-values[best]).argsort(kind="stable")]
        if copies is not None:
            numbers = copies[best]
            kept = numbers == 0
            kept[np.unique(numbers, return_index=True)[1]] = True
            best = best[kept]
        if len(best) >= limit:
            break
    return best[:limit]


def parent_numbers(passages: Passages) -> NDArray[Any]:
    """Return the number of each section's parent; -1 without one."""
    parents = passages.postings.parents
    return np.where(parents == np.arange(len(parents)), -1, parents)


def _several_pages(scored: Scored) -> bool:
    return bool(scored.matches.pages.any())


def _several_documents(scored: Scored) -> bool:
    return len(scored.passages.documents) > 1


def _best(scored: Scored) -> float:
    """Unit: the best value."""
    return float(scored.values.max(initial=0.0))


def _best_by_name(scored: Scored) -> float:
    """Unit: the best value by weight of names."""
    return scored.weights.name * _best(scored)


def _parent(scored: Scored) -> NDArray[Any]:
    """Unit: the parent's value."""
    parents = parent_numbers(scored.passages)
    return np.where(parents < 0, 0.0, scored.values[parents])


def _best_child(scored: Scored) -> NDArray[Any]:
    """Unit: the best value of a child among the best sections."""
    parents, first = parent_numbers(scored.passages), top_positions(scored.values, MAX_CHILD_RANK)
    first = first[parents[first] >= 0]
    best = np.zeros(len(parents))
    np.maximum.at(best, parents[first], scored.values[first])
    return best


def _inheriting(scored: Scored) -> NDArray[Any]:
    """Return 1 for matching sections, and less in a search of several documents.

    A subsection belongs to its parent's subject and rarely repeats its words (Arvola, Junkkari and
    Kekäläinen, "Generalized contextualization method for XML information retrieval", CIKM 2005). Among
    several documents, a question is about a section rather than about one of its subsections.
    """
    return (scored.values > 0) * (AMONG_SEVERAL if _several_documents(scored) else 1.0)


def _page(scored: Scored) -> NDArray[Any]:
    """Return the shares of matching sections by the weight of their page.

    Headings such as "Usage" are on every page, and the text of the page distinguishes them. Evidence from the
    whole document helps to choose among its passages (Callan, "Passage-level evidence in document retrieval",
    SIGIR 1994).
    """
    pages = scored.matches.pages
    return np.where(scored.matches.scores > 0, pages / pages.max(), 0)


def _word_pairs(scored: Scored) -> NDArray[Any]:
    """Return the weights of words that are neighbours in the query and in the section.

    A "definition list" is not just a definition and a list. A pair counts like a term: its mass is normalized
    and saturated as in BM25F, and it weighs more if fewer of the sections read have it (like the ordered
    pairs of Metzler and Croft, "A Markov random field model for term dependencies", SIGIR 2005).
    """
    passages, positions = scored.passages, scored.positions
    weights = np.zeros(passages.postings.size)
    in_heading, in_body = pair_counts(positions)
    mass = in_body / passages.body_norms(positions.numbers) + FIELD_WEIGHTS[0] * in_heading
    holders = np.maximum((mass > 0).sum(axis=1, keepdims=True), 1)
    rarity = np.log((passages.vocabulary.sections + 1) / holders)
    # Pair by pair, because the order of numpy's own sum depends on the number of sections.
    weights[positions.numbers] = sum(rarity * mass / (mass + K1), np.zeros(len(positions.numbers)))
    return weights


def _titles(scored: Scored) -> NDArray[Any]:
    """Return scaled scores of ``BM25Plus`` for the titles of the sections read.

    A title is a heading with its path and the words of the file's name. The model contains the titles with a
    word of the query. Most of these sections have most words of the query, so a word in few titles counts
    more, and a word of the file's name hardly counts. Short titles have no advantage (``b``), nor do missing
    words (``delta``).
    """
    from rank_bm25 import BM25Plus  # slow to import, see arrays

    postings, positions = scored.passages.postings, scored.positions
    shares = np.zeros(postings.size)
    rows = positions.sought.rows[: len(positions.sought.concepts)].tolist()
    runs, sections, in_heading, in_path, _ = postings.find(rows)
    is_read = np.zeros(postings.size, bool)
    is_read[positions.numbers] = True
    read = is_read[sections]
    times = in_heading[read] + in_path[read]
    titles: dict[int, list[int]] = {}
    words = positions.sought.concepts[runs[read]].repeat(times).tolist()
    for number, word in zip(sections[read].repeat(times).tolist(), words, strict=True):
        titles.setdefault(number, []).append(word)
    if titles:
        model = BM25Plus(list(titles.values()), b=0, delta=0)
        scores = model.get_scores(list(model.idf))
        shares[list(titles)] = scores / scores.max()
    return shares


def _children(scored: Scored) -> NDArray[Any]:
    """Return the shares of subsections; the beginning of a page that the query names is no overview."""
    children = np.minimum(scored.passages.postings.children, MANY_CHILDREN) / MANY_CHILDREN
    return children * (1 - scored.names_page)


def _short(scored: Scored) -> NDArray[Any]:
    """Return 1 for sections without text, and less for longer ones: nearly 0 for a paragraph."""
    return np.exp(-scored.passages.postings.lengths / SHORT)


def _chapter(scored: Scored) -> NDArray[Any]:
    """Return 1 for sections with text; for the beginning of a page nearly 0, unless it has the whole query.

    Subsections have the words of a question in their headings, and their section is meant. A page with good
    sections is no answer itself, unless it begins with the answer.
    """
    postings = scored.passages.postings
    begins = scored.matches.covered**_COMPLETENESS_POWER
    return np.where(postings.levels > 1, 1.0, begins) * (postings.sizes > 0)


class Signal(NamedTuple):
    """An observation on sections, and its gain.

    :param most: maximum gain in units; negative for a cost.
    :param unit: unit of the gain, of all sections or of each.
    :param share: observed share of each section, mostly 0 to 1.
    :param when: whether the signal applies to a query; ``None`` if to all.
    """

    name: str
    stage: Stage
    most: float
    unit: Callable[[Scored], NDArray[Any] | float]
    share: Callable[[Scored], NDArray[Any]]
    when: Callable[[Scored], bool] | None = None


_VALUE = attrgetter("values")

SIGNALS = (
    Signal("heading", Stage.WORDS, 0.25, _VALUE, attrgetter("matches.headings")),
    Signal("page", Stage.PAGES, 0.25, _best, _page, _several_pages),
    Signal("pairs", Stage.READ, 0.3, lambda _: 1.0, _word_pairs),
    Signal("title", Stage.READ, 0.4, _best_by_name, _titles, lambda scored: not _several_pages(scored)),
    Signal("parent", Stage.PARENTS, 0.35, _parent, _inheriting),
    Signal("covered", Stage.QUERY, 0.2, _best, lambda scored: scored.matches.covered * (scored.values > 0)),
    # More than the maximum for similar words; a page that the query names is more than a heading.
    Signal("headed", Stage.QUERY, 1.2, _best_by_name, attrgetter("headed")),
    Signal("named", Stage.QUERY, 1.8, _best_by_name, attrgetter("names_page")),
    Signal("near", Stage.QUERY, 0.1, _best, attrgetter("near"), _several_pages),
    # Overviews and last chapters mention much and answer little.
    Signal("late", Stage.PLACE, -0.08, _VALUE, attrgetter("passages.postings.positions")),
    Signal("children", Stage.PLACE, -0.3, _VALUE, _children),
    # It names something, and explains nothing.
    Signal("short", Stage.PLACE, -0.2, _VALUE, _short, _several_documents),
    # It says where something is explained.
    Signal("links", Stage.PLACE, -0.2, _VALUE, attrgetter("passages.postings.lists_links")),
    # In one document, it would cost more than it gains.
    Signal("child", Stage.CHILDREN, 0.15, _best_child, _chapter, _several_documents),
    # Nearly the maximum of name and content for a topic that is exactly one heading, and far less for others.
    Signal("topic", Stage.TOPICS, 2.0, attrgetter("weights.topic"), attrgetter("topics")),
    # Enough to choose between documents that fit about as well.
    Signal("behind", Stage.STANDING, -0.35, _VALUE, attrgetter("behind"), _several_documents),
)
"""All signals besides the words themselves."""
