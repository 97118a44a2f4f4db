"""Steps of a request against a peer's, and a request over 100 files against its limit, with pytest-benchmark.

    python -m pytest benchmarks/bench_steps.py --benchmark-only

Fair: the peers get the same sections of the same file. ``BM25Okapi`` scores words split at blanks, with one
field, no stems and no keywords: the lowest cost of ranking sections with rank-bm25 alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from rank_bm25 import BM25Okapi

from benchmarks.common import CONTEXTS, document, long_file, settings, write_folder
from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import Json
from npl_index.answer.request import TailorRequest
from npl_index.answer.tailoring import write
from npl_index.markdown.sections import parse_sections
from npl_index.ranking.documents import dump_sections, restore_sections
from npl_index.ranking.indexing import index_document
from npl_index.ranking.keywords import extract_keywords
from npl_index.ranking.scoring import Query, rank
from npl_index.tokens.estimated import estimator
from npl_index.tokens.sections import TokenCounts
from npl_mcp.app.app import App
from tests.tools import npl_load_tailored

MAX_SECONDS = 0.2
"""Maximum median of a request over 100 files."""

Works = Mapping[str, Callable[[], object]]


def warm() -> Works:
    """Return the steps of eight requests for an indexed file; the first is a peer's."""
    indexed, counter = index_document(document(long_file().encode(), "long.md")), estimator()
    counts = TokenCounts(indexed.tree, counter)
    counts.stored()  # as of an indexed document
    sections = indexed.tree.sections
    okapi = BM25Okapi([indexed.tree.text(one.own).lower().split() or [""] for one in sections])
    requests = [TailorRequest.parse(context=context, token_budget=2000) for context in CONTEXTS]
    keywords = [extract_keywords(context) for context in CONTEXTS]
    documents = DocumentSet(
        collection=indexed.collection,
        several=False,
        file="long.md",
        counts=lambda _: counts,
        count_with=lambda: counter,
    )
    return {
        "rank-bm25, get_scores": lambda: [okapi.get_scores(one.lower().split()) for one in CONTEXTS],
        "keywords": lambda: list(map(extract_keywords, CONTEXTS)),
        "rank": lambda: [rank(indexed.collection, Query(one)) for one in keywords],
        "answer": lambda: [write(request, documents, Json()) for request in requests],
    }


def cold() -> Works:
    """Return the steps of the first request for a file; the first is a peer's."""
    long, counter = document(long_file().encode(), "long.md"), estimator()
    indexed = index_document(long)
    stored = dump_sections(indexed)
    return {
        "markdown-it-py": lambda: MarkdownIt("commonmark").enable("table").parse(long.data.decode()),
        "parse": lambda: parse_sections(long.data, long.name),
        "index": lambda: index_document(long),
        "count tokens": lambda: TokenCounts(indexed.tree, counter).stored(),
        "restore": lambda: restore_sections(stored, lambda _: long, lambda: long.data),
    }


WARM, COLD = warm(), cold()


@pytest.mark.parametrize("step", WARM)
@pytest.mark.benchmark(group="warm: eight contexts, one file of 225 headings")
def test_warm(benchmark: Any, step: str) -> None:
    """Time a step of a warm request."""
    assert benchmark(WARM[step]) is not None


@pytest.mark.parametrize("step", COLD)
@pytest.mark.benchmark(group="cold: one file of 225 headings")
def test_cold(benchmark: Any, step: str) -> None:
    """Time a step of the first request for a file."""
    assert benchmark(COLD[step]) is not None


@pytest.mark.benchmark(group="npl_load_tailored, 100 files", min_rounds=40)
def test_request(benchmark: Any, tmp_path: Path) -> None:
    """Time requests over an indexed folder; fail above the limit."""
    write_folder(tmp_path, 100)
    app, contexts = App(settings(tmp_path)), cycle(CONTEXTS)

    def ask() -> object:
        return npl_load_tailored(app, context=next(contexts), token_budget=2000)

    ask()
    benchmark(ask)
    app.close()
    assert benchmark.stats is None or benchmark.stats.stats.median <= MAX_SECONDS
