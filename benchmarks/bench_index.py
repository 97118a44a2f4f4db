"""Costs of indexing files, of joining the indexes, and of loading stored ones.

Usage: ``python benchmarks/bench_index.py``. Figures are processor time, the best of several rounds.
"""

from __future__ import annotations

import tracemalloc

from common import corpus_texts, long_file
from timing import best_ms, document

from npl_index.markdown.sections import parse_sections
from npl_index.ranking.collection import KnownCollection
from npl_index.ranking.documents import dump_sections, restore_sections
from npl_index.ranking.indexing import index_document

FILES = 1_000


def main() -> None:
    """Print one figure per line."""
    long = document(long_file(), "long.md")
    size = len(long.data) / 1e6
    whole = best_ms(lambda: index_document(long))
    parsing = best_ms(lambda: parse_sections(long.data, long.name))
    indexed = index_document(long)
    print(f"one file, {size * 1e3:.0f} kB, {len(indexed.tree.sections)} sections")
    print(f"  parse {parsing:8.2f} ms")
    print(f"  terms and counts {whole - parsing:8.2f} ms, {(whole - parsing) / size:.0f} ms/MB")
    print(f"  collection of one {best_ms(lambda: KnownCollection([indexed])):8.2f} ms")
    kept = dump_sections(indexed)
    print(f"  dump {best_ms(lambda: dump_sections(indexed)):8.2f} ms, {len(kept) / 1e3:.0f} kB")
    restored = best_ms(lambda: restore_sections(kept, lambda _: long, lambda: long.data))
    print(f"  restore {restored:8.2f} ms")
    texts = corpus_texts()
    many = [
        index_document(document(f"{texts[n % len(texts)]}\n\nnumber{n}\n", f"f{n}.md")) for n in range(FILES)
    ]
    joined = KnownCollection(many)
    print(f"{FILES} files, {len(joined)} sections")
    print(f"  join {best_ms(lambda: KnownCollection(many), rounds=3):8.2f} ms")
    tracemalloc.start()
    hundred = [index_document(document(texts[n % len(texts)], f"g{n}.md")) for n in range(100)]
    for one in hundred:
        one.collection  # noqa: B018
    taken = tracemalloc.get_traced_memory()[0] / 1e6
    print(f"100 files, {sum(len(one.document.data) for one in hundred) / 1e6:.2f} MB")
    print(f"  memory {taken:8.2f} MB, estimated {sum(one.nbytes for one in hundred) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
