"""What a question costs and exchanges where a collection is spread over shards, beside the whole collection.

Usage: ``python -m benchmarks.bench_shards [FILES] [SHARDS]``, by default 2,000 files in 4 shards.

Fair: files, questions and order are the same, every question is asked once of each, and hits are compared.
Time is processor time, of shards that of the slowest one, which ranks without asking the others: threads of
one process would wait for one interpreter. Bytes are what would be sent as plain numbers and paths, without a
protocol around them.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import scale_corpus
from benchmarks.bench_scale import questions
from benchmarks.common import percentile
from benchmarks.shards import Shards
from benchmarks.timing import best_ms, document
from npl_index.ranking.analysis import extract_keywords
from npl_index.ranking.indexing import Collection, IndexedDocument, index_document
from npl_index.ranking.scoring import Query, rank


def documents(files: int) -> list[IndexedDocument]:
    """Index so many files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scale_corpus.write(folder, files)
        paths = sorted(folder.rglob("*.md"))
        return [
            index_document(document(path.read_text("utf-8"), path.relative_to(folder).as_posix()))
            for path in paths
        ]


def measure(found: Sequence[IndexedDocument], size: int) -> None:
    """Print what questions and an edit cost."""
    whole = Collection.build(found)
    shards = Shards([found[number::size] for number in range(size)])
    alone: list[float] = []
    slowest: list[float] = []
    sent: list[int] = []
    for question in questions(3):
        query = Query(extract_keywords(question))
        answer = shards.rank(query)  # also looks up the words, which are remembered
        if answer.hits != rank(whole, query):
            raise AssertionError(question)
        sent.append(max(answer.sent))
        alone.append(best_ms(lambda query=query: rank(whole, query)))
        slowest.append(
            max(best_ms(lambda query=query, one=one: rank(one, query)) for one in shards.collections)
        )
    edit = found[0]
    told = [shards.change(0, [edit.document.fingerprint.path], []), shards.change(0, [], [edit])]
    shards.close()
    print(f"{len(whole)} sections, {size} shards")
    print(f"whole: p50 {statistics.median(alone):.2f} ms, p95 {percentile(alone, 0.95):.2f} ms")
    print(f"slowest shard: p50 {statistics.median(slowest):.2f} ms, p95 {percentile(slowest, 0.95):.2f} ms")
    print(f"bytes a shard sends for a question: p50 {statistics.median(sent):.0f}, most {max(sent)}")
    print(f"bytes told of a document that goes: {told[0]}, that comes: {told[1]}")


def main() -> None:
    """Measure and print."""
    files, size = [int(given) for given in sys.argv[1:]] + [2_000, 4][len(sys.argv) - 1 :]
    measure(documents(files), size)


if __name__ == "__main__":
    main()
