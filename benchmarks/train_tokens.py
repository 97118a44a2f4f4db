"""Create npl_index/data/tokens.*.gz, the lists that the token estimate uses.

    python -m benchmarks.train_tokens TEXTS VOCABULARIES

TEXTS holds one folder for each kind of text, with any number of UTF-8 files. A folder named
``lang-<code>-<name>`` holds text of another language than English; such text weighs less, and least where
the language is not among the widespread. VOCABULARIES is a folder with tiktoken's cache files.

What is listed are strings that occur in the texts and cost one token, as tiktoken says: whole pieces and
the parts it cut other pieces into. Of these the most useful are kept (see ``Trainer.listed``), and listed
words with a sign in front of them where both are one token. The first string of each vocabulary's own list
is not such a string: its digits tell what a character that is not listed costs, one digit for each block of
64 code points from U+0000 up, the commonest in the block.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import npl_index
from npl_index.tokens.estimated import PieceCosts, piece_pattern
from npl_index.tokens.exact import load_encoding

KEPT = {"o200k_base": 93_000, "cl100k_base": 60_000}
"""Strings listed for each vocabulary besides single characters."""

WIDESPREAD = re.compile("lang-(ar|cs|de|el|es|fa|fr|he|hi|id|it|ja|ko|nl|pl|pt|ru|sv|th|tr|uk|vi|zh)-")
SIGNS = "_./-(<'[=:\\$\"@*&#{"
"""Signs that begin a token with the word behind them: few texts hold all the names that programs have."""

OWN = ('"},{"', "levance")
"""Strings of one token that every answer in JSON holds."""

DAMPING = 0.6
EARLY = 3_000
CODE_POINTS = 0x20000
DATA = Path(npl_index.__file__).parent / "data"


@dataclass(frozen=True)
class Kind:
    """One kind of text: how much it weighs, and how often each piece occurs in it."""

    weight: float
    pieces: Counter[str]


class Trainer:
    """Counts pieces by kind of text once, and lists the most useful strings of any of the kinds."""

    def __init__(self, vocabulary: str, encoding: Any, texts: Path) -> None:
        self.vocabulary = vocabulary
        self.encoding = encoding
        self.kinds = {folder.name: self._read(folder) for folder in sorted(texts.iterdir())}
        self.characters = "".join(self._block_costs())
        self._single = [c for c in map(chr, code_points(0)) if self.cost(c) == 1 and c != "\0"]
        self._parts: dict[str, list[str]] = {}

    def _read(self, folder: Path) -> Kind:
        weight = 0.4 if WIDESPREAD.match(folder.name) else 0.07 if folder.name.startswith("lang-") else 1.0
        pattern = piece_pattern(self.vocabulary)
        pieces: Counter[str] = Counter()
        for path in sorted(folder.iterdir()):
            pieces.update(pattern.findall(path.read_text(encoding="utf-8")))
        return Kind(weight, pieces)

    def cost(self, text: str) -> int:
        """Ask tiktoken what a text costs."""
        return len(self.encoding.encode_ordinary(text))

    def listed(self, without: Collection[str] = ()) -> list[str]:
        """List the most useful strings, as if the texts held no kinds of the given names.

        A string's use is its commonness times the tokens the estimate would be wrong by without it.
        Commonness is the mean of two shares: that of its occurrences in the texts, damped so that what
        occurs in many kinds counts more than what one kind repeats; and one that falls with tiktoken's
        number for it, because numbers were given roughly in order of commonness.
        """
        seen = self._occurrences(without)
        costs = self.costs([*seen, *self._single])
        gains = {part: self._gain(costs, part) for part in seen if len(part) > 1}
        early = {part: 1 / (EARLY + self.encoding.encode_single_token(part)) for part in gains}
        use = Counter[str]()
        for share in (seen, early):
            total = sum(share[part] for part, gain in gains.items() if gain)
            for part, gain in gains.items():
                use[part] += gain * share[part] / total  # type: ignore[assignment]
        kept = {*self._single, *(part for part, _ in use.most_common(KEPT[self.vocabulary]))}
        own = (string for string in OWN if self.cost(string) == 1)
        return sorted({*kept, *behind_signs(kept, self.cost), *own})

    def _occurrences(self, without: Collection[str]) -> Mapping[str, float]:
        seen: dict[str, float] = {}
        for kind in (kind for name, kind in self.kinds.items() if name not in without):
            counts: Counter[str] = Counter()
            for piece, count in kind.pieces.items():
                counts.update(dict.fromkeys(self._cut(piece), count))
            total = kind.pieces.total()
            for part, count in counts.items():
                seen[part] = seen.get(part, 0) + kind.weight * (count / total) ** DAMPING
        return seen

    def _cut(self, piece: str) -> list[str]:
        """Return those of a piece's tokens that are whole characters."""
        if piece not in self._parts:
            numbers = self.encoding.encode_ordinary(piece)
            decoded = [self.encoding.decode_single_token_bytes(n).decode("utf-8", "replace") for n in numbers]
            self._parts[piece] = [part for part in decoded if "\ufffd" not in part and "\0" not in part]
        return self._parts[piece]

    @staticmethod
    def _gain(costs: PieceCosts, part: str) -> int:
        del costs[part]
        cost = costs.cut(part)
        costs[part] = 1
        return cost - 1

    def costs(self, listed: Iterable[str]) -> PieceCosts:
        """Make the estimate's table from a list."""
        return PieceCosts(listed, self.characters, self.vocabulary == "o200k_base")

    def _block_costs(self) -> Iterator[str]:
        for first in range(0, CODE_POINTS, 64):
            found = Counter(self.cost(chr(c)) for c in code_points(first, first + 64))
            del found[1]
            yield str(max(found, key=lambda cost: (found[cost], cost), default=4))


def behind_signs(listed: Iterable[str], cost: Callable[[str], int]) -> set[str]:
    """Return the listed words with a sign in front that cost one token."""
    words = {string.removeprefix(" ") for string in listed}
    signed = (sign + word for word in words if word.isalpha() and word.isascii() for sign in SIGNS)
    return {string for string in signed if cost(string) == 1}


def code_points(start: int, stop: int = CODE_POINTS) -> list[int]:
    """Return the code points in a range that are not surrogates."""
    return [c for c in range(start, stop) if not 0xD800 <= c < 0xE000]


def encoding(vocabulary: str, folder: Path) -> Any:
    """Return tiktoken's encoding from its cache file in a folder."""
    loaded = load_encoding(vocabulary, [folder])
    assert loaded is not None, f"{folder} has no {vocabulary}"
    return loaded


def write(name: str, strings: Iterable[str]) -> None:
    """Write one list."""
    path = DATA / f"tokens.{name}.gz"
    path.write_bytes(gzip.compress("\0".join(strings).encode(), 9, mtime=0))
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, list, and write the three files."""
    parser = argparse.ArgumentParser(prog="benchmarks.train_tokens", description=__doc__.split("\n")[0])
    parser.add_argument("texts", type=Path, help="a folder for each kind of text")
    parser.add_argument("vocabularies", type=Path, help="folder with tiktoken's cache files")
    given = parser.parse_args(arguments)
    lists, characters = {}, {}
    for vocabulary in KEPT:
        trainer = Trainer(vocabulary, encoding(vocabulary, given.vocabularies), given.texts)
        lists[vocabulary], characters[vocabulary] = trainer.listed(), trainer.characters
    both = set.intersection(*map(set, lists.values()))
    write("both", sorted(both))
    for vocabulary, strings in lists.items():
        write(vocabulary, [characters[vocabulary], *(s for s in strings if s not in both)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
