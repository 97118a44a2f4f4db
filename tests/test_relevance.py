"""The ranking finds what prompt authors ask for, in the prompts that come with the package."""

import json
from pathlib import Path

from npl_index.answer.steps import related
from npl_index.ranking.keywords import extract_keywords
from npl_index.ranking.scoring import Query, rank
from npl_mcp.config.settings import corpus_folder
from tests.npl_index.conftest import document_set

QUESTIONS = Path(__file__).resolve().parents[1] / "benchmarks" / "relevance" / "corpus_queries.jsonl"


def test_the_labelled_section_is_found_early_and_little_else() -> None:
    """The mean reciprocal rank is over all 87 files at once; the floors lie a little below the measured
    figures. Without a budget a question brings a few sections, not a file.
    """
    corpus = corpus_folder()
    texts = {
        path.relative_to(corpus).as_posix(): path.read_text("utf-8") for path in sorted(corpus.rglob("*.md"))
    }
    collection = document_set(texts).collection
    ranks, counts = [], []
    for line in QUESTIONS.read_text("utf-8").splitlines():
        question = json.loads(line)
        label = question["relevant"][0]
        query = Query(extract_keywords(question["query"]))
        ranking = rank(collection, query)
        hits = ranking.hits
        places = [
            (document.document.path, document.tree.sections[hit.section].name)
            for hit in hits
            for document in [collection.documents[hit.document]]
        ]
        wanted = (label["file"], label["heading"])
        ranks.append(places.index(wanted) + 1 if wanted in places else 0)
        counts.append(sum(is_answer for _, is_answer in related(ranking)))
    assert sum(1 / place for place in ranks if place) / len(ranks) >= 0.66
    assert sum(0 < place <= 3 for place in ranks) / len(ranks) >= 0.7
    assert min(counts) == 1
    assert sum(counts) / len(counts) <= 4
    assert max(counts) <= 12
