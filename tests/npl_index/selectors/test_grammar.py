"""Reading selectors: meanings, errors and limits."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npl_index.errors import SelectorSyntaxError
from npl_index.selectors.grammar import MAX_LENGTH, MAX_STEPS, Selector, Step, compile_selector, spell
from tests.conftest import cases

CASES = cases("selectors/grammar")


def written(steps: tuple[Step, ...]) -> str:
    """Write steps in an unambiguous form: combinator, level, name."""
    signs = {"start": "", "child": "> ", "descendant": "// "}
    return " ".join(f"{signs[step.combinator]}{'#' * (step.level or 0)}{step.name!r}" for step in steps)


@pytest.mark.parametrize(("text", "meaning"), CASES["meaning"])
def test_meaning(text: str, meaning: str) -> None:
    """Operators, marks and names are distinguished as the grammar says."""
    assert written(compile_selector(text).steps) == meaning


@pytest.mark.parametrize(("text", "start", "end"), CASES["ranges"])
def test_ranges(text: str, start: str, end: str) -> None:
    """Three dots separate the ends of a range where marks, quotes or the document's name follow."""
    selector = compile_selector(text)
    assert (written(selector.steps), written(selector.until)) == (start, end)


@pytest.mark.parametrize(("text", "document"), CASES["documents"])
def test_document(text: str, document: str | None) -> None:
    """A selector names the document it may start with, so that this document can be opened."""
    assert compile_selector(text).document == document


SYNTAX_ERRORS: dict[str, str] = CASES["errors"]


@pytest.mark.parametrize("text", SYNTAX_ERRORS)
def test_syntax_errors(text: str) -> None:
    """The error shows the place in the selector and what was expected there."""
    with pytest.raises(SelectorSyntaxError) as error:
        compile_selector(text)
    assert str(error.value) == SYNTAX_ERRORS[text]


@pytest.mark.parametrize("text", ["a" * 1_000_000, "> " * 500_000, "\x00" * 1_000_000, '"' * 1_000_000])
def test_length(text: str) -> None:
    with pytest.raises(SelectorSyntaxError, match="a selector may have at most 4096 characters") as error:
        compile_selector(text)
    assert error.value.position == MAX_LENGTH
    assert len(str(error.value)) < 400


def test_longest() -> None:
    assert compile_selector("a" * MAX_LENGTH).document == "a" * MAX_LENGTH
    assert len(compile_selector(" > ".join("a" * MAX_STEPS)).steps) == MAX_STEPS


def test_compiled_selectors_are_values() -> None:
    """Equal texts give the same frozen value, which can be a key and be pickled."""
    selector = compile_selector("guide > ## A [has-code][version>=1.0]...## B")
    assert compile_selector("guide > ## A [has-code][version>=1.0]...## B") is selector
    assert pickle.loads(pickle.dumps(selector)) == selector
    assert hash(pickle.loads(pickle.dumps(selector))) == hash(selector)
    with pytest.raises(AttributeError):
        selector.text = "B"  # type: ignore[misc]


def test_steps_know_their_source() -> None:
    """Offsets of a step give its source, with and without its predicates."""
    selector = compile_selector("guide  >  ## A [has-code] [2]  // B")
    text = selector.text
    assert [text[step.start : step.stop] for step in selector.steps] == [
        "guide",
        ">  ## A [has-code] [2]",
        "// B",
    ]
    assert [text[step.start : step.bracket] for step in selector.steps] == ["guide", ">  ## A ", "// B"]


MARKS = st.sampled_from([*"ab >/#[]\"'\\.…<*=`-1\t\n", "//", "...", "[has-code]", "[1]", "[depth=1]", "## "])


def outcome(text: str) -> Selector | SelectorSyntaxError:
    try:
        return compile_selector(text)
    except SelectorSyntaxError as error:
        return error


@given(st.lists(MARKS, max_size=30).map("".join) | st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Any text gives a selector, or an error that points into it."""
    selector = outcome(text)
    if isinstance(selector, SelectorSyntaxError):
        assert 0 <= selector.position <= len(text)
        assert len(selector.selector) == len(text)
    else:
        assert selector.steps
        assert all(0 <= step.start <= step.bracket <= step.stop <= len(text) for step in selector.steps)


@given(st.lists(MARKS, max_size=12).map("".join) | st.text(max_size=20), st.sampled_from(["", "## "]))
def test_spelled_names_read_as_names(name: str, marks: str) -> None:
    name = " ".join(name.translate(dict.fromkeys((*range(32), *range(127, 160)), " ")).split())
    for behind in ("", " [2]", " > ## x [1]", " > `x` > <y> > [has-code]", " [depth=0]", ' > "]" > "..."'):
        step = compile_selector(f"{marks}{spell(name)}{behind}").steps[0]
        assert step.name == name


@given(
    st.lists(
        st.sampled_from(["guide", '"a b"', "*", ">", "//", "##", "###", "A", "[has-code]", "[2]"]), max_size=7
    )
)
def test_blanks_between_elements_do_not_matter(elements: list[str]) -> None:
    def read(text: str) -> object:
        selector = outcome(text)
        if isinstance(selector, SelectorSyntaxError):
            return selector.problem
        return [(step.combinator, step.level, step.name, step.conditions) for step in selector.steps]

    assert read(" ".join(elements)) == read("\n  ".join(["", *elements, ""]))


@pytest.mark.parametrize(("name", "spelt"), cases("npl_index/selectors/grammar"))
def test_a_name_shows_invisible_characters(name: str, spelt: str) -> None:
    """Invisible characters are written as numbers, end no comment, and read back unchanged."""
    assert spell(name) == spelt
    assert compile_selector(f"guide > ## {spelt}").steps[-1].name == name


def test_only_invisible_characters_are_written_by_their_numbers() -> None:
    """Visible characters in quotes stay."""
    assert compile_selector(r'"C:\x41\u0041"').document == r"C:\x41\u0041"
