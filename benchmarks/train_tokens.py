"""Make the lists of npl_index/data/tokens.*.gz that the token estimate rests on.

    python benchmarks/train_tokens.py TEXTS VOCABULARIES

TEXTS holds one folder for each kind of text, with any number of UTF-8 files. A folder named
``lang-<code>-<name>`` holds text of another language than English; such text weighs less, and least where
the language is not among the widespread. VOCABULARIES is a folder with tiktoken's cache files.

What is listed are strings that occur in the texts and cost one token, as tiktoken says: whole pieces and
the parts it cut other pieces into. Of these the most useful are kept: the share a string has of each kind,
damped so that what occurs in many kinds counts more than what one kind repeats, times the tokens the
estimate would be wrong by without it. The first string of each vocabulary's own list is
not such a string: its digits tell what a character that is not listed costs, one digit for each block of
64 code points from U+0000 up, the commonest cost of the block's characters.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from npl_index import tokens

KEPT = {"o200k_base": 90_000, "cl100k_base": 60_000}
"""Strings listed for each vocabulary, the most useful first."""

WIDESPREAD = frozenset(
    [
        "ar",
        "cs",
        "de",
        "el",
        "es",
        "fa",
        "fr",
        "he",
        "hi",
        "id",
        "it",
        "ja",
        "ko",
        "nl",
        "pl",
        "pt",
        "ru",
        "sv",
        "th",
        "tr",
        "uk",
        "vi",
        "zh",
    ]
)
DAMPING = 0.6
CODE_POINTS = 0x20000
DATA = Path(tokens.__file__).parent / "data"


@dataclass
class Kind:
    """One kind of text, cut into a vocabulary's pieces."""

    weight: float
    pieces: Counter[str] = field(default_factory=Counter)


class Trainer:
    """Counts pieces by kind of text once, and lists the most useful strings of any of the kinds."""

    def __init__(self, vocabulary: str, encoding: Any, texts: Path) -> None:
        self.vocabulary = vocabulary
        self.encoding = encoding
        self.kinds = {folder.name: self._read(folder) for folder in sorted(texts.iterdir())}
        self._parts: dict[str, list[str]] = {}
        self._characters = "".join(self._block_costs())
        self._single = [c for c in map(chr, code_points(0)) if self.cost(c) == 1 and c != "\0"]

    def _read(self, folder: Path) -> Kind:
        language = re.match(r"lang-([a-z]+)-", folder.name)
        kind = Kind(1.0 if language is None else 0.4 if language[1] in WIDESPREAD else 0.07)
        pattern = tokens.piece_pattern(self.vocabulary)
        for path in sorted(folder.iterdir()):
            kind.pieces.update(pattern.findall(path.read_text(encoding="utf-8")))
        return kind

    def cost(self, text: str) -> int:
        """Ask tiktoken what a text costs."""
        return len(self.encoding.encode_ordinary(text))

    def parts(self, piece: str) -> list[str]:
        """Give those of a piece's tokens that are whole characters."""
        if piece not in self._parts:
            numbers = self.encoding.encode_ordinary(piece)
            decoded = [self.encoding.decode_single_token_bytes(n).decode("utf-8", "replace") for n in numbers]
            self._parts[piece] = [part for part in decoded if "\ufffd" not in part and "\0" not in part]
        return self._parts[piece]

    def listed(self, without: Collection[str] = ()) -> list[str]:
        """List the most useful strings, as if the texts held no kinds of the given names."""
        weights: Counter[str] = Counter()
        for kind in (kind for name, kind in self.kinds.items() if name not in without):
            parts: Counter[str] = Counter()
            for piece, count in kind.pieces.items():
                for part in self.parts(piece):
                    parts[part] += count
            for part, count in parts.items():
                weights[part] += kind.weight * (count / kind.pieces.total()) ** DAMPING  # type: ignore[assignment]
        costs = self.costs([*weights, *self._single])
        gains = (
            (self._gain(costs, part) * weight, part) for part, weight in weights.items() if len(part) > 1
        )
        best = sorted((pair for pair in gains if pair[0] > 0), reverse=True)[: KEPT[self.vocabulary]]
        return sorted({*self._single, *(part for _, part in best)})

    @staticmethod
    def _gain(costs: tokens.PieceCosts, part: str) -> int:
        del costs[part]
        cost = costs.cut(part)
        costs[part] = 1
        return cost - 1

    def costs(self, listed: Iterable[str]) -> tokens.PieceCosts:
        """Make the estimate's table from a list."""
        return tokens.PieceCosts(list(listed), self._characters)

    def _block_costs(self) -> Iterable[str]:
        for first in range(0, CODE_POINTS, 64):
            found = Counter(self.cost(chr(c)) for c in code_points(first, first + 64))
            del found[1]
            yield str(max(found, key=lambda cost: (found[cost], cost), default=4))

    def written(self) -> str:
        """Give the first string of the vocabulary's list."""
        return self._characters


def code_points(start: int, stop: int = CODE_POINTS) -> list[int]:
    """Give the code points in a range that are not surrogates."""
    return [c for c in range(start, stop) if not 0xD800 <= c < 0xE000]


def write(name: str, strings: Iterable[str]) -> None:
    """Write one list."""
    path = DATA / f"tokens.{name}.gz"
    path.write_bytes(gzip.compress("\0".join(strings).encode(), 9, mtime=0))
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    """Count, list, and write the three files."""
    texts, vocabularies = map(Path, sys.argv[1:3])
    lists, characters = {}, {}
    for vocabulary in KEPT:
        trainer = Trainer(vocabulary, encoding(vocabulary, vocabularies), texts)
        lists[vocabulary], characters[vocabulary] = trainer.listed(), trainer.written()
    both = set.intersection(*map(set, lists.values()))
    write("both", sorted(both))
    for vocabulary, strings in lists.items():
        write(vocabulary, [characters[vocabulary], *(s for s in strings if s not in both)])


def encoding(vocabulary: str, folder: Path) -> Any:
    """Give tiktoken's encoding from its cache file in a folder."""
    counter = tokens.load_vocabulary(vocabulary, [folder])
    assert isinstance(counter, tokens.ExactCounter), f"{folder} has no {vocabulary}"
    return counter.encoding


if __name__ == "__main__":
    main()
