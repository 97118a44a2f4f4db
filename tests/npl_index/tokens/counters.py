"""Counters that need no vocabulary file, and texts with recorded counts."""

from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import strategies as st
from tiktoken_ext import openai_public

from npl_index.tokens.counting import TokenCounter
from npl_index.tokens.estimated import estimator
from npl_index.tokens.exact import PATTERNS, exact_counter
from tests.conftest import cases

CASES = Path(__file__).parents[2] / "cases" / "tokens"
TRUTH: dict[str, dict[str, int]] = cases("tokens/counts")
SECTIONS: list[dict[str, Any]] = cases("tokens/sections")
BASES = ("o200k_base", "cl100k_base")
NOT_ENGLISH = range(74, 81)  # of SECTIONS
SIGNS = "ab\n\r \t/-.'⟪é"


def case(name: str) -> str:
    """Return a text whose true counts are recorded."""
    return (CASES / f"{name}.md").read_text(encoding="utf-8")


def bound(counter: TokenCounter, text: str) -> int:
    """Return the upper bound of a text's count."""
    return counter.upper_bound(counter.count(text))


def small_ranks() -> dict[bytes, int]:
    """A vocabulary with many tokens: all bytes, all pairs of a few signs, and some runs."""
    pairs = [(a + b).encode() for a in SIGNS for b in SIGNS if (a + b).isascii()]
    longer = [b"\n\n\n", b"\n\n\n\n", b".\n\n", b"-\n\n", b"    ", " ⟪".encode(), "⟪".encode(), "é".encode()]
    return {token: rank for rank, token in enumerate([bytes([b]) for b in range(256)] + pairs + longer)}


def small(vocabulary: str) -> tiktoken.Encoding:
    """Return an encoding that cuts texts into pieces as for the vocabulary, with small ranks."""
    return tiktoken.Encoding(
        vocabulary, pat_str=PATTERNS[vocabulary], mergeable_ranks=small_ranks(), special_tokens={}
    )


def constructed(vocabulary: str) -> tuple[tiktoken.Encoding, list[tuple[str, str]]]:
    """Return tiktoken's own encoding with small ranks; and address and checksum of the files it asked for."""
    asked: list[tuple[str, str]] = []

    def ranks(address: str, expected_hash: str) -> dict[bytes, int]:
        asked.append((address, expected_hash))
        return small_ranks()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openai_public, "load_tiktoken_bpe", ranks)
        parts = {**openai_public.ENCODING_CONSTRUCTORS[vocabulary](), "explicit_n_vocab": None}
    return tiktoken.Encoding(**parts), asked


ENCODINGS = {name: small(name) for name in BASES}
SMALL = {name: exact_counter(name, encoding) for name, encoding in ENCODINGS.items()}
ESTIMATES = {name: estimator(name) for name in BASES}
EVERY = [*SMALL.values(), *ESTIMATES.values()]

texts = st.one_of(
    st.text(max_size=80),
    st.text(alphabet=SIGNS + "A1_漢🎯́ء", max_size=40),
    st.lists(st.sampled_from(cases("npl_index/tokens/counters")["parts"])).map("".join),
)
