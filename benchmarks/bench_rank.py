"""The cost of a query: keywords, ranking and choice, in one file and in a thousand.

Usage: ``python benchmarks/bench_rank.py``. Figures are processor time per query, the best of several rounds.
"""

from __future__ import annotations

from common import CONTEXTS, corpus_texts, long_file
from timing import best_ms, document

from npl_index.answer.steps import related
from npl_index.ranking.collection import Collection, KnownCollection
from npl_index.ranking.indexing import index_document
from npl_index.ranking.keywords import extract_keywords
from npl_index.ranking.scoring import Query, rank

FILES = 1_000


def ask(collection: Collection) -> None:
    """Ask every context."""
    for context in CONTEXTS:
        query = Query(extract_keywords(context))
        list(related(rank(collection, query)))


def query_topics(collection: Collection) -> None:
    """Rank every context with two topics."""
    for context in CONTEXTS:
        rank(collection, Query(extract_keywords(context), ("formatting", "agent declaration")))


def main() -> None:
    """Print one figure per line."""
    texts = corpus_texts()
    one = index_document(document(long_file(), "long.md")).collection
    many = KnownCollection(
        [
            index_document(document(f"{texts[n % len(texts)]}\n\nnumber{n}\n", f"f{n}.md"))
            for n in range(FILES)
        ]
    )
    print(f"keywords {best_ms(lambda: list(map(extract_keywords, CONTEXTS))) / len(CONTEXTS):8.3f} ms")
    for name, collection, rounds in (("one file", one, 30), (f"{FILES} files", many, 5)):
        plain = best_ms(lambda collection=collection: ask(collection), rounds=rounds) / len(CONTEXTS)
        topics = best_ms(lambda collection=collection: query_topics(collection), rounds=rounds) / len(
            CONTEXTS
        )
        print(
            f"{name}, {len(collection)} sections: context {plain:8.3f} ms, with two topics {topics:8.3f} ms"
        )


if __name__ == "__main__":
    main()
