"""Promises of every counter, exact or estimated."""

from itertools import product

import pytest
from hypothesis import assume, example, given

from npl_index.errors import InvalidRequestError
from npl_index.tokens.counting import TokenCounter, starts_token
from npl_index.tokens.estimated import estimator
from npl_index.tokens.exact import load_vocabulary
from tests.conftest import cases
from tests.npl_index.tokens.counters import EVERY, SMALL, TRUTH, bound, case, texts


@pytest.mark.parametrize("counter", EVERY, ids=lambda counter: counter.name)
@given(left=texts, right=texts)
@example(left="a.\n\n", right="## B")
@example(left="-\n\n", right="'s")
@example(left="/\n", right="\u0301x")
def test_counts_of_parts_add_up(counter: TokenCounter, left: str, right: str) -> None:
    left += "\n\n"
    assume(starts_token(right))
    assert counter.count(left + right) == counter.count(left) + counter.count(right)
    assert bound(counter, left + right) <= bound(counter, left) + bound(counter, right)


@pytest.mark.parametrize("counter", EVERY, ids=lambda counter: counter.name)
def test_bound_is_never_below_the_count(counter: TokenCounter) -> None:
    """An exact counter's bound is the count; an estimate's is larger, and sums of bounds hold for sums."""
    batch = [case(name) + "\n" for name in TRUTH]
    for text in batch:
        count, limit = counter.count(text), bound(counter, text)
        assert limit == count if not counter.margin else limit > count
    assert sum(bound(counter, text) for text in batch) >= bound(counter, "".join(batch))
    assert bound(counter, "") == 0


REPEATED = [*cases("npl_index/tokens/counting"), "\ud800"]


@pytest.mark.parametrize(("counter", "text"), list(product(EVERY, REPEATED)))
def test_endless_repetition_is_counted(counter: TokenCounter, text: str) -> None:
    """Long runs that overflow a regular expression or a merge table in one go are counted all the same."""
    times = (1_200_000 if text.isspace() and not counter.margin else 60_000) // len(text)
    assert counter.count(text * times + "x") > 0


def test_special_tokens_are_text() -> None:
    for counter in EVERY:
        assert counter.count("<|endoftext|>") > 3


def test_names_say_what_was_counted() -> None:
    """A counter's name has the vocabulary and says whether the count is exact."""
    assert [
        (counter.name, counter.margin) for counter in (SMALL["cl100k_base"], estimator("o200k_harmony"))
    ] == [("tiktoken:cl100k_base", 0), ("estimate:o200k_harmony", 6)]


def test_unknown_vocabulary_names_those_alike() -> None:
    """A misspelt vocabulary is refused with the nearest name, by both functions."""
    for ask in (estimator, lambda name: load_vocabulary(name, [])):
        with pytest.raises(InvalidRequestError, match=r"no vocabulary 'o200k'.*o200k_base"):
            ask("o200k")


@pytest.mark.parametrize(("left", "right"), [("-\n", "/a"), ("a\n\n", "\nb"), ("a\n", "\r")])
def test_texts_that_continue_a_token_are_told(left: str, right: str) -> None:
    """Each of these pairs costs another number of tokens when it is joined."""
    assert not starts_token(right)
    counter = SMALL["o200k_base"]
    assert counter.count(left + right) != counter.count(left) + counter.count(right)


@pytest.mark.parametrize("text", ["", "b", "# B", "⟪"])
def test_texts_that_start_a_token_are_told(text: str) -> None:
    """After a line end, neither letter nor sign but the slash goes on with the token before."""
    assert starts_token(text)
