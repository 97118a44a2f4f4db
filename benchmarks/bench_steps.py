"""A request over 100 files against its limit, and its steps against a peer or a floor, with pytest-benchmark.

    python -m pytest -o pythonpath=benchmarks benchmarks/bench_steps.py --benchmark-only

Fair: the peers get the same sections of the same file. ``BM25Okapi`` scores words split at blanks, with one
field, no stems and no keywords; it is the lowest cost of ranking sections with rank-bm25 alone.
"""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from common import CONTEXTS, long_file, settings, write_folder
from markdown_it import MarkdownIt
from rank_bm25 import BM25Okapi
from timing import document

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

LONG = document(long_file(), "long.md")
INDEXED = index_document(LONG)
COUNTER = estimator()
COUNTS = TokenCounts(INDEXED.tree, COUNTER)
COUNTS.stored()  # as of an indexed document
STORED = dump_sections(INDEXED)
OKAPI = BM25Okapi(
    [INDEXED.tree.text(section.own).lower().split() or [""] for section in INDEXED.tree.sections]
)
REQUESTS = [TailorRequest.parse(context=context, token_budget=2000) for context in CONTEXTS]
KEYWORDS = [extract_keywords(context) for context in CONTEXTS]


DOCUMENTS = DocumentSet(
    collection=INDEXED.collection,
    several=False,
    file="long.md",
    counts=lambda _: COUNTS,
    count_with=lambda: COUNTER,
)
WARM = {
    "rank-bm25 get_scores (peer)": lambda: [
        OKAPI.get_scores(context.lower().split()) for context in CONTEXTS
    ],
    "keywords": lambda: [extract_keywords(context) for context in CONTEXTS],
    "rank": lambda: [rank(INDEXED.collection, Query(keywords)) for keywords in KEYWORDS],
    "tailor": lambda: [write(request, DOCUMENTS, Json()) for request in REQUESTS],
}
COLD = {
    "markdown-it-py (peer)": lambda: MarkdownIt("commonmark").enable("table").parse(LONG.data.decode()),
    "parse": lambda: parse_sections(LONG.data, LONG.name),
    "index": lambda: index_document(LONG),
    "count tokens": lambda: TokenCounts(INDEXED.tree, COUNTER).stored(),
    "restore": lambda: restore_sections(STORED, lambda _: LONG, lambda: LONG.data),
}


@pytest.mark.parametrize("step", WARM)
@pytest.mark.benchmark(group="warm, eight contexts, one file of 225 headings")
def test_warm(benchmark: Any, step: str) -> None:
    """Time a step of a warm request."""
    assert benchmark(WARM[step]) is not None


@pytest.mark.parametrize("step", COLD)
@pytest.mark.benchmark(group="cold, one file of 225 headings")
def test_cold(benchmark: Any, step: str) -> None:
    """Time a step of the first request for a file."""
    assert benchmark(COLD[step]) is not None


MAX_SECONDS = 0.2
"""Maximum median of a request over 100 files."""


@pytest.mark.benchmark(group="npl_load_tailored, 100 files", min_rounds=40)
def test_request(benchmark: Any, tmp_path: Path) -> None:
    """Time requests over an indexed folder; fail above the limit."""
    write_folder(tmp_path, 100)
    app, contexts = App(settings(tmp_path)), cycle(CONTEXTS)
    ask = lambda: npl_load_tailored(app, context=next(contexts), token_budget=2000)  # noqa: E731
    ask()
    benchmark(ask)
    assert benchmark.stats.stats.median <= MAX_SECONDS
