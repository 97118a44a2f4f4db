"""Shared code of the benchmarks: texts made from the bundled corpus, and measurement."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from npl_mcp.config.settings import Settings, corpus_folder

CONTEXTS = (
    "write a placeholder with a qualifier for a customer name",
    "how do I show an example with its output in a prompt",
    "an agent that reviews code and needs a rubric for its verdict",
    "table formatting directive with column alignment",
    "which pump makes the model reflect on its answer",
    "declare an agent with an alias and extend it later",
    "repeat a block for every item with handlebars",
    "limit the length of generated text to three sentences",
)


def corpus_texts() -> list[str]:
    """Return the bundled files' texts, in the order of their paths."""
    return [path.read_text(encoding="utf-8") for path in sorted(corpus_folder().rglob("*.md"))]


def long_file(sections: int = 225) -> str:
    """Join bundled files until the text has a given number of headings."""
    parts: list[str] = []
    count = 0
    while count < sections:
        for text in corpus_texts():
            for block in text.split("\n#"):
                if count == sections:
                    return "\n#".join(parts)
                parts.append(block)
                count += 1
    return "\n#".join(parts)


def write_folder(folder: Path, files: int) -> None:
    """Write a number of different files of typical size, made from the bundled ones."""
    texts = corpus_texts()
    for number in range(files):
        text = texts[number % len(texts)]
        (folder / f"page-{number:04}.md").write_text(
            f"{text}\n\nPage {number} of the set.\n", encoding="utf-8"
        )


def settings(root: Path, **changes: object) -> Settings:
    """Return settings that serve one folder."""
    return Settings(cwd=root, home=root, system=root / "none", roots=(root,), warm_up=False, **changes)  # type: ignore[arg-type]


def median_ms(work: Callable[[int], object], rounds: int) -> float:
    """Return the median wall time of a call, in milliseconds; the call gets its number."""
    times = []
    for number in range(rounds):
        start = time.perf_counter()
        work(number)
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
