"""Promises of an answer: its budget, its selectors, and what it says of omitted text."""

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import Form, Json, Markdown
from npl_index.answer.request import TailorRequest
from npl_index.answer.steps import Findings
from npl_index.answer.suggestions import MAX_SUGGESTIONS
from npl_index.answer.tailoring import find, write
from npl_index.answer.units import row as row_of
from npl_index.answer.values import Tailored, Written
from npl_index.choices import DEFAULT_BUDGET
from npl_index.deadline import Deadline
from npl_index.errors import DocumentTimeoutError, InvalidRequestError, SectionNotFoundError
from npl_index.markdown.sections import Span
from npl_index.ranking.scoring import DEFAULT_WEIGHTS
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.selection import select_in
from npl_index.tokens.estimated import estimator
from npl_index.tokens.sections import TokenCounts
from tests.conftest import cases, every
from tests.npl_index.conftest import Meter, document_set, exact_counter, tailor

TREE = {
    "a.md": "# A\n\nIntro of a.\n\n## One\n\nalpha beta\n\n### Deep\n\ngamma\n\n## Two\n\ndelta epsilon\n",
    "b.md": "# B\n\n## One\n\nalpha zeta\n",
}


def ask(on: DocumentSet, **arguments: object) -> Tailored:
    return tailor(TailorRequest.parse(**arguments), on)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def sets(corpus: Mapping[str, str]) -> list[DocumentSet]:
    """The whole corpus at once, a long file, a folder, and awkward texts."""
    awkward = {
        "slash.md": "/starts with a slash\n\n# A\n\n   indented\n",
        "code.md": "    indented code first\n\n  ## Indented heading\n\ntext\n",
        "empty.md": "",
        "fence.md": "# F\n\n```\n" + "line\n" * 300 + "```\n",
        "list.md": "# L\n\n" + "".join(f"- item {n} of the list\n" for n in range(200)),
        "cjk.md": "# 堆肥\n\n" + "朝に水をやる。" * 200 + "\n\n段落\n",
        "crlf.md": "# C\r\n\r\ntext one\r\n\r\n## D\r\n\r\ntext two\r\n",
    }
    exact = exact_counter()
    return [
        document_set(corpus),
        document_set(corpus, exact),
        document_set(awkward, exact),
        *(document_set({path: text}, exact) for path, text in awkward.items()),
        document_set({"npl.md": corpus["npl.md"]}),
        document_set({path: text for path, text in corpus.items() if path.startswith("npl/fences")}),
        document_set(awkward),
        *(document_set({path: text}) for path, text in awkward.items()),
    ]


@given(
    seed=st.integers(0, 2**32),
    budget=st.one_of(st.integers(1, 120), st.integers(1, 1500), st.integers(1, 9000)),
    form=st.sampled_from([Json(), Json('{"success":true,"data":', "}"), Markdown()]),
)
def test_no_answer_is_over_its_budget(sets: list[DocumentSet], seed: int, budget: int, form: Form) -> None:
    """The sent text fits the budget; otherwise it is the smallest answer, with no content and what to ask
    for.
    """
    chance = random.Random(seed)
    on = chance.choice(sets)
    indexed = chance.choice(on.collection.documents)
    words = (indexed.tree.source + " overview").split()
    context = " ".join(chance.choices(words, k=chance.randint(1, 12)))
    every = on_selectors(on)
    selectors = chance.sample(every, k=min(chance.choice([0, 0, 1, 3]), len(every)))
    exclude = chance.sample(every, k=min(chance.choice([0, 0, 2]), len(every)))
    asked = {"selectors": selectors, "exclude": exclude, "explain": seed % 4 == 0}
    request = TailorRequest.parse(context=context, token_budget=budget, **asked)
    written = write(request, on, form)
    answer, tokens = written.value, size_of(written, on)
    if tokens > budget:
        assert (answer.content, answer.sections, answer.suggestions) == ("", (), ())
        assert len(answer.request_more) <= 1
    assert answer.total_tokens == on.counter.count(answer.content)
    assert len(answer.suggestions) <= MAX_SUGGESTIONS
    # Selected texts come before the name of anything else.
    assert answer.request_more or not answer.truncated or (selectors and answer.sections)
    most = DEFAULT_BUDGET if budget <= DEFAULT_BUDGET else 10**6
    whole = write(replace(request, token_budget=most), on, form).value
    check_that_nothing_better_is_lost(answer, whole, find(request, on, DEFAULT_WEIGHTS))


def bare(selector: str) -> str:
    return re.sub(r"( \[(lines|depth)=[-0-9]+\])+$", "", selector)


def check_that_nothing_better_is_lost(answer: Tailored, whole: Tailored, findings: Findings) -> None:
    """Compare the first three texts of an answer with those for a budget which holds as much as it may."""
    here = [bare(row.selector) for row in answer.sections]
    named = [*here, *(bare(selector) for selector in answer.request_more)]
    ranked = (row_of(findings.documents, unit, lean=True) for unit in (*findings.answers, *findings.further))
    wanted = {bare(each.selector): None for each in ranked if each.relevance_score < 1}
    given = {bare(each.selector) for each in whole.sections}
    texts = [selector for selector in wanted if selector in given]
    last = max((at for at, selector in enumerate(texts) if selector in here), default=-1)
    assert set(texts[: min(last + 1, 3)]) <= set(named)
    if not answer.truncated:
        assert here == [bare(row.selector) for row in whole.sections]
    again = [suggestion.selector for suggestion in answer.suggestions]
    assert not set(again) & set(named)


@pytest.mark.parametrize("form", [Json(), Markdown()])
def test_the_best_hit_is_in_every_answer(form: Form, corpus: Mapping[str, str]) -> None:
    """Its text comes from a budget on that has room for its smallest piece, its name below that."""
    sets = [document_set(corpus), document_set({"npl.md": corpus["npl.md"]})]
    questions = ("which page to load", "fence label", "the parts of a complete prompt")
    for turn, (on, question) in enumerate(product(sets, questions)):
        best = ask(on, context=question, token_budget=10**6).sections[0]
        for budget in every(3, (50, 70, 100, 120, 200, 300, 1000), turn):
            request = TailorRequest.parse(context=question, token_budget=budget)
            answer = write(request, on, form).value
            rows = [bare(row.selector) for row in answer.sections]
            name = bare(best.selector)
            named = [*rows, *map(bare, answer.request_more)]
            assert name in named or (budget < 60 and name.startswith(named[0]))
            if budget >= (200 if isinstance(form, Markdown) else 300):
                assert name in rows


def on_selectors(on: DocumentSet) -> list[str]:
    return [
        on.selector((document, section.index))
        for document in range(min(5, len(on.collection.documents)))
        for section in on.tree(document).sections
    ]


@given(seed=st.integers(0, 2**32))
def test_what_an_answer_names_can_be_asked_for(sets: list[DocumentSet], seed: int) -> None:
    """Sections, suggestions and ``request_more`` have selectors of what they name, also a piece of a line."""
    chance = random.Random(seed)
    on = chance.choice(sets)
    words = on.collection.documents[-1].tree.source.split() or ["overview"]
    answer = ask(
        on, context=" ".join(chance.choices(words, k=6)), token_budget=chance.choice([60, 300, 2000])
    )
    for row in answer.sections:
        (again,) = ask(on, selectors=[row.selector]).sections
        assert (bare(again.selector), again.start_line, again.end_line, again.file) == (
            bare(row.selector),
            row.start_line,
            row.end_line,
            row.file,
        )
        assert again.token_count == row.token_count or (
            again.token_count > row.token_count and "lines=" in row.selector
        )
    for selector in (*answer.request_more, *(suggestion.selector for suggestion in answer.suggestions)):
        (again,) = ask(on, selectors=[selector]).sections
        # Where there is no room for more, a document is named, which may begin with its first heading.
        assert again.selector == selector or again.selector.startswith(f"{selector} > #")


def answers(
    on: DocumentSet, form: Form, question: Mapping[str, object], budgets: Iterable[int]
) -> list[tuple[int, Written[Tailored]]]:
    """Ask one question with budgets from small to large."""
    requests = [(budget, TailorRequest.parse(**question, token_budget=budget)) for budget in budgets]  # type: ignore[arg-type]
    return [(budget, write(request, on, form)) for budget, request in requests]


MARGIN = 1.1
"""The factor by which joining all parts of an answer may increase its tokens."""


def size_of(written: Written[Tailored], on: DocumentSet) -> int:
    """Return the tokens of an answer without its ranking, which no budget counts."""
    text = re.sub(r',"ranking":.*\]', "", re.sub(r"<!-- ranking .*\n", "", written.text))
    return on.counter.upper_bound(on.counter.count(text))


def test_suggestions_come_wherever_there_is_room(corpus: Mapping[str, str]) -> None:
    fences = {path: text for path, text in corpus.items() if "fence" in path or path == "npl.md"}
    for on in (document_set({"npl.md": corpus["npl.md"]}), document_set(fences)):
        request = TailorRequest.parse("how is a placeholder written", default_budget=DEFAULT_BUDGET)
        answer = write(request, on, Json())
        assert answer.value.suggestions
        reasons = [suggestion.reason.removeprefix("adds ") for suggestion in answer.value.suggestions]
        assert not any(word in answer.value.content for word in reasons)
        assert size_of(answer, on) <= DEFAULT_BUDGET


def test_an_answer_that_fits_is_the_same_under_a_budget() -> None:
    on = document_set({"a.md": TREE["a.md"]})
    for question in ({"selectors": ["## One"]}, {"selectors": ["a > # A"]}):
        free = write(TailorRequest.parse(**question), on, Json())  # type: ignore[arg-type]
        size = round(MARGIN * size_of(free, on))
        for budget, written in answers(on, Json(), question, range(size, 4 * size, 7)):
            assert written.value == free.value, budget


def test_paging_through_a_section_gives_all_of_it(sets: list[DocumentSet]) -> None:
    """The parts under their headings, in order, are the whole section."""
    on = document_set({"list.md": "# L\n\n" + "".join(f"- item {n}\n" for n in range(100))})
    wanted, seen = ["list"], []
    while wanted:
        answer = ask(on, selectors=wanted, token_budget=200)
        assert answer.total_tokens <= 200
        assert answer.content
        heading, *lines = (line for line in answer.content.split("\n") if line)
        assert heading == "# L"
        seen += lines
        wanted = list(answer.request_more)
    assert seen == [*(f"- item {n}" for n in range(100))]


MANY = "# Reference\n\nWhat every option does.\n" + "".join(
    f"\n## Option {number}\n\n{'It sets one thing of many. ' * 6}\n"
    f"\n### Example\n\n{'run --option here. ' * 4}\n\n### Notes {number}\n\n{'Mind the order. ' * 4}\n"
    for number in range(40)
)


@pytest.mark.parametrize("selector", ["reference", "reference ## Option 7", "## Option 3...## Option 22"])
@pytest.mark.parametrize("budget", [150, 300, 450, 1000])
@pytest.mark.parametrize("form", [Json(), Markdown()])
def test_every_subsection_that_was_left_out_is_named(form: Form, budget: int, selector: str) -> None:
    """A subsection is named alone, or in a range from the first to the last of consecutive ones."""
    on = document_set({"reference.md": MANY, "other.md": "# Other\n\n## Option 1\n\nNothing.\n"})

    def sections(selectors: Iterable[str]) -> set[int]:
        selected = (select_in(on.scope(), compile_selector(selector)) for selector in selectors)
        return {
            index
            for selections in selected
            for selection in selections
            for index in selection.sections
            if index
        }

    request = TailorRequest.parse(context="which option", selectors=[selector], token_budget=budget)
    written = write(request, on, form)
    here = sections(row.selector for row in written.value.sections)
    named = sections(written.value.request_more)
    assert here | named >= sections([selector])
    assert any("..." in pointer for pointer in written.value.request_more) or len(named) < 20
    assert size_of(written, on) <= budget


def test_a_fence_larger_than_the_budget_is_cut_and_its_rest_named() -> None:
    """The piece is a fence; if none of it fits, the heading comes."""
    on = document_set({"f.md": "# F\n\n```\n" + "line\n" * 300 + "```\n"})
    answer = ask(on, selectors=["f"], token_budget=50)
    assert answer.content == ""
    assert answer.request_more == ("f > # F",)
    assert answer.truncated
    answer = ask(on, selectors=["f"], token_budget=150)
    lines = answer.content.count("line\n")
    assert 5 < lines < 100
    assert answer.content == "# F\n\n```\n" + "line\n" * lines + "…\n```\n"
    assert answer.request_more == (f"f > # F [lines={lines + 4}-304]",)
    (rest,) = ask(on, selectors=answer.request_more).sections
    assert rest.start_line == lines + 4


@pytest.mark.parametrize(
    "text", every(2, ["文" * 300_000, "![[]()" * 60_000, "x " * 150_000, "a\n" * 150_000])
)
def test_a_long_text_is_counted_once(text: str) -> None:
    """Windows of a text are counted once, and its last few lines a second time."""
    meter = Meter()
    document_set({"long.md": text}, meter)
    assert meter.shown < len(text) + 20_000


def test_later_answers_count_no_section_again() -> None:
    meter = Meter()
    text = "".join(f"## Bed {bed}\n\n{'The tulips need water. ' * 80}\n\n" for bed in range(5))
    on = document_set({"garden.md": text}, meter)
    ask(on, context="water for tulips", token_budget=20_000)
    before = meter.shown
    assert len(ask(on, context="water for tulips", token_budget=20_000).sections) == 5
    assert meter.shown - before < 2 * len(text)  # windows of the first lines of the best


def test_a_piece_is_counted_once() -> None:
    meter = Meter()
    on = document_set({"garden.md": "# Garden\n\n" + "Water.\n\n" * 50}, meter)
    size = on.part((0, 1), chosen=False, lines=Span(0, 12)).size
    before = meter.shown
    assert on.part((0, 1), chosen=False, lines=Span(0, 12)).size == size
    assert meter.shown == before


def test_counting_cutting_and_selecting_look_at_the_clock() -> None:
    """Each slow part of an answer ends at the time limit."""
    over = Deadline("long.md", -1.0)
    on = document_set({"long.md": "# Long\n\n" + "- item of the list\n" * 1_000})
    tree = on.tree(0)
    late = replace(on, clock=over)
    for work in (
        lambda: TokenCounts(tree, estimator(), over).stored(),
        lambda: ask(late, context="list item", token_budget=200),
        lambda: ask(late, selectors=["long"]),
        lambda: ask(late, selectors=["## Nothing"]),
    ):
        with pytest.raises(DocumentTimeoutError, match=r"long\.md"):
            work()


def test_nothing_is_returned_twice() -> None:
    on = document_set({"a.md": TREE["a.md"]})
    answer = ask(on, context="alpha gamma delta", selectors=["## One", "### Deep", "a > # A", "## One"])
    headings = [line for line in answer.content.split("\n") if line.startswith("#")]
    assert headings == ["# A", "## One", "### Deep", "## Two"]


def test_content_is_in_document_order_and_rows_best_first() -> None:
    """The text reads as the file does; the list says what matters most."""
    on = document_set({"a.md": TREE["a.md"]})
    answer = ask(on, selectors=["## Two", "## One"])
    assert answer.content.index("## One") < answer.content.index("## Two")
    assert [row.title for row in answer.sections] == ["Two", "One"]


def test_documents_of_a_set_are_marked_in_the_content() -> None:
    """If several files answer, a mark names each before its sections, within the token count."""
    on = document_set(TREE)
    answer = ask(on, selectors=["## One"])
    assert answer.content.startswith("<!-- a.md -->\n\n## One\n\nalpha beta\n\n### Deep")
    assert "<!-- b.md -->\n\n## One\n\nalpha zeta\n" in answer.content
    assert answer.total_tokens == on.counter.count(answer.content)


def test_a_selector_that_finds_nothing_is_reported_next_to_those_that_do() -> None:
    """An answer reports it; if no selector selects anything, that is an error."""
    on = document_set({"a.md": TREE["a.md"]})
    answer = ask(on, selectors=["## One", "## Onne"])
    assert answer.not_found is not None
    assert "## Onne" in answer.not_found[0]
    with pytest.raises(SectionNotFoundError, match="## Onne"):
        ask(on, selectors=["## Onne"])


@pytest.mark.parametrize(
    ("arguments", "error"), cases("npl_index/answer/tailoring")["a_request_is_checked_once_at_the_edge"]
)
def test_a_request_is_checked_once_at_the_edge(arguments: dict[str, object], error: str) -> None:
    """An invalid request is refused before any file is read."""
    with pytest.raises(InvalidRequestError) as raised:
        TailorRequest.parse(**arguments)  # type: ignore[arg-type]
    assert type(raised.value).__name__ == error


def test_a_context_without_words_of_its_own_still_answers() -> None:
    """Stop words or punctuation alone, and an empty document, give an answer, never an error."""
    for texts in ({"a.md": TREE["a.md"]}, {"e.md": ""}, {"n.md": "no heading here\n"}):
        for context in ("the of and", "?!", "堆肥", "\ud800", "zzzz qqqq"):
            answer = ask(document_set(texts), context=context)
            assert answer.total_tokens == document_set(texts).counter.count(answer.content)
