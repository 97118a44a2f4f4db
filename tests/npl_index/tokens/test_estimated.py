"""The estimate against recorded truth."""

import math
import subprocess
import sys

import pytest
from hypothesis import example, given

from npl_index.tokens.estimated import piece_pattern
from tests.conftest import cases
from tests.npl_index.tokens.counters import (
    BASES,
    CASES,
    ESTIMATES,
    NOT_ENGLISH,
    SECTIONS,
    TRUTH,
    bound,
    case,
    texts,
)

OTHER_LANGUAGES = set(cases("npl_index/tokens/estimated")["other_languages"])


@pytest.mark.parametrize("vocabulary", BASES)
def test_estimate_is_near_the_truth(vocabulary: str) -> None:
    """Every kind of English text is met within 10 %; prose in other languages too, or is put too high."""
    ratios = {name: ESTIMATES[vocabulary].count(case(name)) / TRUTH[name][vocabulary] for name in TRUTH}
    assert {name for name, ratio in ratios.items() if not 0.9 <= ratio <= 1.1} <= OTHER_LANGUAGES
    assert min(ratios.values()) > 0.95
    assert max(ratios.values()) < 1.2
    assert 1 <= math.fsum(ratios.values()) / len(ratios) < 1.05


def test_estimates_of_both_vocabularies_keep_the_promise() -> None:
    """Of the counts of all kinds of text in all languages, 95 % are met within 10 %."""
    near = [
        0.9 <= ESTIMATES[vocabulary].count(case(name)) / TRUTH[name][vocabulary] <= 1.1
        for name in TRUTH
        for vocabulary in BASES
    ]
    assert sum(near) / len(near) >= 0.95


@pytest.mark.parametrize("vocabulary", BASES)
def test_estimate_of_sections_is_near_the_truth(vocabulary: str) -> None:
    """Sections of prompts, code, tables and YAML are met within 10 % (95 in 100) and 3 % (half)."""
    counter = ESTIMATES[vocabulary]
    cases = [case for number, case in enumerate(SECTIONS) if number not in NOT_ENGLISH]
    errors = sorted(abs(counter.count(case["text"]) / case[vocabulary] - 1) for case in cases)
    assert errors[len(errors) * 95 // 100] <= 0.1
    assert errors[len(errors) // 2] <= 0.03


@pytest.mark.parametrize("vocabulary", BASES)
def test_estimate_of_other_languages_is_on_the_safe_side(vocabulary: str) -> None:
    """Paragraphs in seven other languages may be counted too high, hardly too low."""
    counter = ESTIMATES[vocabulary]
    shares = [counter.count(SECTIONS[n]["text"]) / SECTIONS[n][vocabulary] for n in NOT_ENGLISH]
    assert all(0.95 <= share <= 1.3 for share in shares), shares


@pytest.mark.parametrize("vocabulary", BASES)
def test_bound_of_sections_is_hardly_exceeded(vocabulary: str) -> None:
    """At most one section in 100 has more tokens than its bound, and then a few per cent more."""
    bounds = [bound(ESTIMATES[vocabulary], case["text"]) for case in SECTIONS]
    shares = [case[vocabulary] / bound for case, bound in zip(SECTIONS, bounds, strict=True)]
    assert sum(share > 1 for share in shares) <= len(shares) / 100 + 1
    assert max(shares) <= 1.05
    assert sum(case[vocabulary] for case in SECTIONS) <= sum(bounds)


@pytest.mark.parametrize("vocabulary", BASES)
def test_bound_is_not_exceeded(vocabulary: str) -> None:
    """The true count of every recorded text is at most its bound, so a pack of them cannot overflow."""
    for name, truth in TRUTH.items():
        assert truth[vocabulary] <= bound(ESTIMATES[vocabulary], case(name)), name


@pytest.mark.parametrize(
    ("text", "o200k", "cl100k"), cases("npl_index/tokens/estimated")["estimate_of_short_texts_is_exact"]
)
def test_estimate_of_short_texts_is_exact(text: str, o200k: int, cl100k: int) -> None:
    """Common words, numbers, indentation and glyphs cost what tiktoken 0.14 says they cost."""
    assert [ESTIMATES["o200k_base"].count(text), ESTIMATES["cl100k_base"].count(text)] == [o200k, cl100k]


@given(texts)
@example("a\ud800b")
@example("<|endoftext|>")
def test_every_text_is_cut_into_pieces_without_rest(text: str) -> None:
    """The pieces of a text put together are the text, and the ASCII pattern cuts as the general one."""
    for vocabulary in BASES:
        pieces = piece_pattern(vocabulary).findall(text)
        assert "".join(pieces) == text
        assert not text.isascii() or piece_pattern(vocabulary, ascii_only=True).findall(text) == pieces
        assert ESTIMATES[vocabulary].count(text) >= len(pieces)


def test_estimate_needs_no_tiktoken() -> None:
    """Estimating imports neither tiktoken nor the network: it works where they cannot be loaded."""
    code = (
        "import sys; sys.modules['tiktoken'] = sys.modules['requests'] = None\n"
        "from npl_index.tokens.estimated import estimator; print(estimator().count('hello world'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "2\n"


def test_every_text_has_a_recorded_truth() -> None:
    """The recorded counts cover every case."""
    assert set(TRUTH) == {path.stem for path in CASES.glob("*.md")}
