"""Accuracy and speed of the token estimate, compared with exact counts.

Usage: ``python -m benchmarks.bench_tokens TEXTS VOCABULARIES [--held-out] [KIND]...``

TEXTS and VOCABULARIES are as for train_tokens.py. ``--held-out`` counts each kind with lists made without it
and its language, instead of the shipped lists. Texts are cut at Markdown headings, and longer sections
at blank lines; errors are those of sections of 50 tokens and more, at most 500 of each kind. The last two
columns tell how well ``upper_bound`` holds: sections whose true count exceeds it, and the largest excess of a
pack of sections over the sum of their bounds, packs being 2,000 tokens of one kind.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.train_tokens import KEPT, Trainer, encoding
from npl_index.tokens.counting import TokenCounter
from npl_index.tokens.estimated import estimating, estimator
from npl_index.tokens.exact import load_vocabulary

SECTIONS, LEAST, LONGEST = 500, 50, 3_000


def sections(text: str) -> Iterator[str]:
    """Cut at headings, and sections over 3,000 characters near 2,400 at a blank line or a line end."""
    for part in re.split(r"(?m)^(?=#{1,6} )", text):
        while len(part) > LONGEST:
            stop = part.rfind("\n\n", 500, 2_400) + 2
            stop = stop if stop > 1 else part.rfind("\n", 500, 2_400) + 1 or 2_400
            yield part[:stop]
            part = part[stop:]
        yield part


def sample(folder: Path) -> list[str]:
    """Choose sections of one kind, always the same."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(folder.iterdir()))
    found = [section for text in texts for section in sections(text) if len(section) > LEAST]
    random.Random(3).shuffle(found)
    return found[:SECTIONS]


def row(pairs: list[tuple[int, int, int]]) -> str:
    """Format the errors of (true count, estimate, bound)."""
    errors = sorted(abs(estimate / true - 1) for true, estimate, _ in pairs)
    mean = sum(estimate for _, estimate, _ in pairs) / sum(true for true, _, _ in pairs) - 1
    over = sum(true > bound for true, _, bound in pairs)
    excess, true_sum, bound_sum = -1.0, 0, 0
    for true, _, bound in pairs:
        true_sum, bound_sum = true_sum + true, bound_sum + bound
        if bound_sum >= 2_000:
            excess = max(excess, true_sum / bound_sum - 1)
            true_sum = bound_sum = 0
    return (
        f"{len(pairs):5} {mean:+7.1%} {errors[len(errors) // 2]:7.1%} {errors[int(len(errors) * 0.95)]:7.1%}"
        f" {sum(error <= 0.1 for error in errors) / len(errors):7.1%} {over / len(pairs):7.1%} {excess:+7.1%}"
    )


def judge(counter: TokenCounter, truth: TokenCounter, texts: Iterable[str]) -> list[tuple[int, int, int]]:
    """Count texts both ways."""
    pairs = [(truth.count(text), counter.count(text)) for text in texts]
    return [(true, estimate, counter.upper_bound(estimate)) for true, estimate in pairs if true >= LEAST]


def held_out_counter(trainer: Trainer, kind: str) -> TokenCounter:
    """Make the estimate from lists made without a kind, and without what is the same text translated."""
    costs = trainer.costs(trainer.listed({kind}))
    return estimating(trainer.vocabulary, trainer.vocabulary, costs)


def accuracy(texts: Path, vocabularies: Path, held_out: bool, kinds: list[str]) -> None:
    """Print a table for each vocabulary."""
    for vocabulary in KEPT:
        truth = load_vocabulary(vocabulary, [vocabularies])
        assert truth is not None
        trainer = Trainer(vocabulary, encoding(vocabulary, vocabularies), texts) if held_out else None
        counter = estimator(vocabulary)
        print(f"{vocabulary:18} sections   mean  median     p95  in 10%   >bound  pack", flush=True)
        whole = []
        for folder in sorted(texts.iterdir()):
            if kinds and folder.name not in kinds:
                continue
            if trainer is not None:
                counter = held_out_counter(trainer, folder.name)
            pairs = judge(counter, truth, sample(folder))
            whole += pairs
            if pairs:
                print(f"{folder.name:18} {row(pairs)}", flush=True)
        print(f"{'all':18} {row(whole)}")


def speed(texts: Path, vocabularies: Path) -> None:
    """Print processor times of loading and of counting sections."""
    found = [
        s for folder in sorted(texts.iterdir()) if not folder.name.startswith("lang") for s in sample(folder)
    ]
    size = sum(len(section.encode()) for section in found)
    for vocabulary in KEPT:
        start = time.process_time()
        estimate = estimator(vocabulary)
        loaded = time.process_time()
        exact = load_vocabulary(vocabulary, [vocabularies])
        ready = time.process_time()
        print(f"{vocabulary}: estimator made in {loaded - start:.3f} s, vocabulary in {ready - loaded:.3f} s")
        assert exact is not None
        for counter, label in ((estimate, "first"), (estimate, "again"), (exact, "")):
            start = time.process_time()
            for section in found:
                counter.count(section)
            print(f"  {counter.name} {label}: {size / (time.process_time() - start) / 1e6:.1f} MB/s")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_tokens", description=__doc__.split("\n")[0])
    parser.add_argument("texts", type=Path, help="a folder for each kind of text")
    parser.add_argument("vocabularies", type=Path, help="folder with tiktoken's cache files")
    parser.add_argument("kinds", nargs="*", help="by default all")
    parser.add_argument("--held-out", action="store_true", help="make lists without each kind")
    given = parser.parse_args(arguments)
    accuracy(given.texts, given.vocabularies, given.held_out, given.kinds)
    speed(given.texts, given.vocabularies)
    return 0


if __name__ == "__main__":
    sys.exit(main())
