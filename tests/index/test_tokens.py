"""Promises of :mod:`npl_index.tokens`; the true counts in the cases were made with tiktoken 0.14."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npl_index.errors import InvalidRequestError
from npl_index.tokens import VOCABULARIES, TokenCounter, estimator, joins, load_vocabulary
from npl_mcp.settings import Settings
from tests.index.conftest import exact_counter

CASES = json.loads((Path(__file__).parents[1] / "cases" / "tokens" / "counts.json").read_text("utf-8"))
ESTIMATED = ("o200k_base", "cl100k_base")


def errors(vocabulary: str) -> Iterator[float]:
    counter = estimator(vocabulary)
    for case in CASES:
        yield counter.count(case["text"]) / case[vocabulary] - 1


@pytest.mark.parametrize("vocabulary", ESTIMATED)
def test_the_estimate_is_close(vocabulary: str) -> None:
    """Within a tenth on at least 95 of 100 sections: NPL, prose in many scripts, code, tables, emoji."""
    found = [abs(error) for error in errors(vocabulary)]
    assert sum(error <= 0.1 for error in found) >= 0.95 * len(found)
    assert sorted(found)[len(found) // 2] <= 0.03


@pytest.mark.parametrize("vocabulary", ESTIMATED)
def test_the_bound_errs_to_the_safe_side(vocabulary: str) -> None:
    """What is packed with is hardly ever less than the truth, and never by much."""
    counter = estimator(vocabulary)
    short = [case[vocabulary] / counter.bound(case["text"]) for case in CASES]
    assert sum(share > 1 for share in short) <= 0.01 * len(short) + 1
    assert max(short) <= 1.05


@pytest.mark.parametrize("counter", [estimator("o200k_base"), estimator("cl100k_base"), exact_counter()])
@settings(max_examples=200, deadline=None)
@given(
    left=st.text(st.sampled_from("ab C1.,-#|`*<> \n\t/é堆⌜🎯"), max_size=40),
    right=st.text(st.sampled_from("ab C1.,-#|`*<> \n\t/é堆⌜🎯"), max_size=40),
)
def test_counts_of_parts_add_up(counter: TokenCounter, left: str, right: str) -> None:
    """Where no token can reach across, the whole is the sum; bounds of parts never undercut the whole."""
    if joins(left, right):
        left += "\n\n"
        right = "# " + right
    assert not joins(left, right)
    assert counter.count(left + right) == counter.count(left) + counter.count(right)
    assert counter.bound(left + right) <= counter.bound(left) + counter.bound(right)


def test_a_text_that_only_seems_to_fit_together_is_known() -> None:
    """White space and slashes may be drawn into the token before them."""
    assert joins("a\n", " b")
    assert joins("a\n", "/b")
    assert joins("a", "b")
    assert not joins("a\n", "b")
    assert not joins("", "b") or not joins("b", "")


@pytest.mark.parametrize("text", ["", "\ud800", "a\ud800b", "\x00", "\u202e\ufeff", "👩🏽‍🌾" * 50])
def test_any_text_is_counted(text: str) -> None:
    """Lone surrogates, control characters and nothing at all are no failure."""
    for counter in (estimator(), exact_counter()):
        assert counter.count(text) >= 0
        assert counter.count_many([text, text]) == [counter.count(text)] * 2


@pytest.mark.parametrize(
    "text", ["a" * 300_000, "[" * 300_000, " " * 300_000, "\n" * 300_000, "堆" * 300_000]
)
def test_long_runs_are_counted(text: str) -> None:
    """Texts that make a tokenizer quadratic, or panic, give a number between one and their bytes."""
    for counter in (estimator(), exact_counter()):
        assert 1 <= counter.count(text) <= len(text.encode())


def test_names_say_which_counter_it_was() -> None:
    """An answer names the counter, and only an exact one says so."""
    assert estimator("cl100k_base").name == "estimate:cl100k_base"
    assert exact_counter().name == "tiktoken:small"
    assert exact_counter().exact
    assert not estimator().exact
    assert exact_counter().bound("abc") == exact_counter().count("abc") == 3


def test_a_vocabulary_is_never_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its file there is no counter; a file of another content is passed over and left alone."""

    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for name in (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    ):
        (tmp_path / name).write_bytes(b"IQ== 0\n")
    for vocabulary in VOCABULARIES:
        assert load_vocabulary(vocabulary, [tmp_path / "none", tmp_path]) is None
    assert sorted(path.read_bytes() for path in tmp_path.iterdir()) == [b"IQ== 0\n"] * 2


@pytest.mark.parametrize("vocabulary", ESTIMATED)
def test_a_vocabulary_on_this_machine_counts_as_recorded(vocabulary: str) -> None:
    """Where the file is at hand, every recorded count is met exactly."""
    counter = load_vocabulary(vocabulary, Settings.from_env({}).vocabulary_folders)
    counted = [case[vocabulary] if counter is None else counter.count(case["text"]) for case in CASES]
    assert counted == [case[vocabulary] for case in CASES]


def test_an_unknown_vocabulary_gets_near_names() -> None:
    """The error says what there is."""
    with pytest.raises(InvalidRequestError, match="o200k_base"):
        estimator("o200k")
    with pytest.raises(InvalidRequestError, match="cl100k_base"):
        load_vocabulary("cl100k", [])
    with pytest.raises(InvalidRequestError, match="estimated"):
        estimator("gpt2")
