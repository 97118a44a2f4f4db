"""A corpus of any size for benchmarks: sections of existing documents, shuffled into files.

The same seed gives the same files. Section texts repeat, so each also gets a few made-up words, most of them
rare, for a vocabulary that grows with the corpus as that of real documents does.

    python -m benchmarks.scale_corpus FOLDER 5000
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from random import Random

from benchmarks.common import corpus_texts

SECTIONS = 13.6
"""Sections a file has on average, as in documentation of real projects."""

FOLDERS = 50
WORDS = 120_000
NEW_WORDS = 12
"""Made-up words in each section; how often one is drawn falls with its rank, as in any language."""

_HEADING = re.compile(r"^(#{1,6}) +(.*)$")
_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "ar", "en", "ol")]


def sections(texts: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return heading and text of every section of some documents, by default those of this repository."""
    here = Path(__file__).resolve().parent.parent
    texts = texts or [
        *corpus_texts(),
        *(one.read_text(encoding="utf-8") for one in sorted(here.glob("*.md"))),
    ]
    found: list[tuple[str, str]] = []
    for text in texts:
        heading, fence = "", False
        lines: list[str] = []
        for line in text.split("\n"):
            fence ^= line.lstrip().startswith(("```", "~~~"))
            match = None if fence else _HEADING.match(line)
            if match:
                found.append((heading, "\n".join(lines).strip()))
                heading, lines = match[2], []
            else:
                lines.append(line)
        found.append((heading, "\n".join(lines).strip()))
    return [(heading, text) for heading, text in found if heading and text and text.count("```") % 2 == 0]


def write(folder: Path, files: int, seed: int = 1, texts: Sequence[str] = ()) -> None:
    """Write a number of files below an existing folder.

    :param texts: see :func:`sections`.
    """
    chance = Random(seed)
    known = sections(texts)
    words = ["".join(chance.choices(_SYLLABLES, k=chance.randint(2, 4))) for _ in range(WORDS)]
    weights = list(accumulate(1 / (rank + 10) for rank in range(WORDS)))
    for number in range(FOLDERS):
        (folder / f"part{number:02}").mkdir(exist_ok=True)
    for number in range(files):
        level = 1
        lines: list[str] = []
        for at in range(max(1, round(chance.gauss(SECTIONS, 4)))):
            heading, text = chance.choice(known)
            level = 1 if at == 0 else min(4, max(2, level + chance.choice((-1, 0, 0, 1))))
            made = chance.choices(words, cum_weights=weights, k=NEW_WORDS)
            lines += [f"{'#' * level} {heading} {made[0]}", "", text, "", " ".join(made[1:]) + ".", ""]
        path = folder / f"part{number % FOLDERS:02}" / f"page-{number:05}.md"
        path.write_text("\n".join(lines), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files."""
    parser = argparse.ArgumentParser(prog="benchmarks.scale_corpus", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="is made")
    parser.add_argument("files", type=int, help="number of files")
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    write(given.folder, given.files)
    return 0


if __name__ == "__main__":
    sys.exit(main())
