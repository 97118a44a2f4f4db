"""Reading selectors: what they mean, what cannot be read and how that is said, and limits."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npl_index.errors import SelectorSyntaxError
from npl_index.selectors.grammar import MAX_LENGTH, MAX_STEPS, Selector, Step, compile_selector, spell


def written(steps: tuple[Step, ...]) -> str:
    """Write steps in one unmistakable form: combinator, level, name."""
    signs = {"start": "", "child": "> ", "descendant": "// "}
    return " ".join(f"{signs[step.combinator]}{'#' * (step.level or 0)}{step.name!r}" for step in steps)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("guide", "'guide'"),
        ("npl-conventions > ## Agent Delegation > ### Work-Log Flag",
         "'npl-conventions' > ##'Agent Delegation' > ###'Work-Log Flag'"),
        ("guide>##A>###B", "'guide' > ##'A' > ###'B'"),
        ("guide ## P > ### C", "'guide' // ##'P' > ###'C'"),
        ("guide > A // B", "'guide' > 'A' // 'B'"),
        ("guide//B", "'guide' // 'B'"),
        ("// ### B", "// ###'B'"),
        ("> *", "> None"),
        ("> [has-code]", "> None"),
        ("## [has-code]", "// ##None"),
        ("// * [draft]", "// None"),
        ("*", "None"),
        ("## *", "// ##None"),
        ('## "*"', "// ##'*'"),
        ("##A", "// ##'A'"),
        ("# A", "// #'A'"),
        ("###### A", "// ######'A'"),
        ("## A #", "// ##'A'"),
        ("## A ## > ### B ###", "// ##'A' > ###'B'"),
        ('## "A" ##', "// ##'A'"),
        ("## A [has-code] > ### B", "// ##'A' > ###'B'"),
        ('"a > b" > "c // d"', "'a > b' > 'c // d'"),
        ("'a > b' > 'c'", "'a > b' > 'c'"),
        (r'"a \"b\" \\ c"', "'a \"b\" \\\\ c'"),
        (r'"C:\dir"', "'C:\\\\dir'"),
        ('"core/prompts/a.md" > ## B', "'core/prompts/a.md' > ##'B'"),
        ("core/prompts/a.md > ## B", "'core/prompts/a.md' > ##'B'"),
        ("'Twas brillig", '"\'Twas brillig"'),
        ('say "hello" twice', "'say \"hello\" twice'"),
        ('## "Why" matters', "// ##'\"Why\" matters'"),
        ("## 'Why' matters", "// ##\"'Why' matters\""),
        ("##   many \t blanks  ", "// ##'many blanks'"),
        ("## one\nline", "// ##'one line'"),
        ("## https://example.com", "// ##'https://example.com'"),
        ("## A -> B", "// ##'A -> B'"),
        ("## A <b> C > ### D", "// ##'A <b> C' > ###'D'"),
        ("## List<T>", "// ##'List<T>'"),
        ("## a < b > c", "// ##'a < b' > 'c'"),
        ("## a >= b", "// ##'a >= b'"),
        ("## `a > b` > c", "// ##'`a > b`' > 'c'"),
        ("## a ` b > c", "// ##'a ` b' > 'c'"),
        ("## C# and F#", "// ##'C# and F#'"),
        ("## Issue #12", "// ##'Issue #12'"),
        ("# A ## B", "// #'A' // ##'B'"),
        ("# A ##B", "// #'A' // ##'B'"),
        ('"a"##B', "'a' // ##'B'"),
        ("## [Unreleased]", "// ##'[Unreleased]'"),
        ("## a[0]", "// ##'a[0]'"),
        ("## And so on...", "// ##'And so on...'"),
        ("## 3.2: what?!", "// ##'3.2: what?!'"),
        ("## 漢字 (かな)", "// ##'漢字 (かな)'"),
        ('## ""', "// ##''"),
    ],
)  # fmt: skip
def test_meaning(text: str, meaning: str) -> None:
    """Operators, marks and names are told apart as the grammar says."""
    assert written(compile_selector(text).steps) == meaning


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("## A...## B", "// ##'A'", "// ##'B'"),
        ("## A ... ## B", "// ##'A'", "// ##'B'"),
        ("## A…## B", "// ##'A'", "// ##'B'"),
        ("## A....## B", "// ##'A.'", "// ##'B'"),
        ("g > ## A...g > ## B", "'g' > ##'A'", "'g' > ##'B'"),
        ('"g h" > ## A..."g h" > ## B', "'g h' > ##'A'", "'g h' > ##'B'"),
        ("g > ## A...// B", "'g' > ##'A'", "// 'B'"),
        ('"A"..."B"', "'A'", "'B'"),
        ('"A"...B', "'A'", "'B'"),
        ("## A [1]...## A [2]", "// ##'A'", "// ##'A'"),
    ],
)
def test_ranges(text: str, start: str, end: str) -> None:
    """Three dots separate the ends of a range where marks, quotes or the document's name follow."""
    selector = compile_selector(text)
    assert (written(selector.steps), written(selector.until)) == (start, end)


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("guide > ## A", "guide"),
        ('"docs/guide.md" > ## A', "docs/guide.md"),
        ("Agent Delegation", "Agent Delegation"),
        ("## A", None),
        ("// A", None),
        ("> A", None),
        ("* > ## A", None),
        ("[version>1]", None),
        ("[has-code]", None),
    ],
)
def test_document(text: str, document: str | None) -> None:
    """A selector tells which document it may start with, so that this document can be opened."""
    assert compile_selector(text).document == document


SYNTAX_ERRORS = {
    "": "expected a name, # marks, > or // at character 1 of the selector\n  \n  ^",
    "npl-conventions >> ## Fences": """\
expected a name, * or # marks after > at character 18 of the selector
  npl-conventions >> ## Fences
                   ^
write one > or // between two names""",
    "guide /// A": """\
expected a name, * or # marks after // at character 9 of the selector
  guide /// A
          ^
write one > or // between two names""",
    "guide >": """\
expected a name or * after > at character 8 of the selector
  guide >
         ^""",
    "guide > ##": """\
expected a name or * after > ## at character 11 of the selector
  guide > ##
            ^""",
    "####### A": """\
headings have at most six # marks at character 7 of the selector
  ####### A
        ^""",
    "## A ## B": """\
a ## heading cannot lie inside a ## heading at character 6 of the selector
  ## A ## B
       ^
write more # marks for the inner heading, ... for a range, quotes if the marks belong to the name, \
and a separate selector for each further section""",
    '## "A': """\
the quotation mark is not closed at character 4 of the selector
  ## "A
     ^""",
    '"A" B': """\
expected >, //, # marks, [ or ... at character 5 of the selector
  "A" B
      ^
if the name continues after a quotation, put the whole name in quotes, with \\" inside""",
    "## A [has-code": """\
the [ is not closed at character 6 of the selector
  ## A [has-code
       ^""",
    "## * []": """\
expected a predicate at character 7 of the selector
  ## * []
        ^
known: [has-code], [has-definitions], [has-examples], [has-tables], [version>=1.0.0], [depth=0], \
[lines=10-20], [2]""",
    "## A [depth>1]": """\
expected = and a number at character 12 of the selector
  ## A [depth>1]
             ^
[depth=0] is a heading's own text, [depth=1] has the direct subsections too""",
    "[version]": """\
expected =, !=, >, >=, < or <= at character 9 of the selector
  [version]
          ^
write for example [version>=1.2.0]""",
    "[version=>1]": """\
expected =, !=, >, >=, < or <= at character 9 of the selector
  [version=>1]
          ^
write for example [version>=1.2.0]""",
    "[version >= new]": """\
expected a version such as 1.2.0 at character 13 of the selector
  [version >= new]
              ^""",
    "[version>=]": """\
expected a version such as 1.2.0 at character 11 of the selector
  [version>=]
            ^""",
    '"A" [0]': """\
equal headings are counted from 1 at character 6 of the selector
  "A" [0]
       ^""",
    "A [1] [2]": """\
only one [n] is allowed at character 8 of the selector
  A [1] [2]
         ^""",
    "A [depth=0][depth=1]": """\
[depth=…] is given twice at character 13 of the selector
  A [depth=0][depth=1]
              ^""",
    "A [depth=0] > B": """\
[depth=…] must end the selector at character 3 of the selector
  A [depth=0] > B
    ^""",
    "## A...## B [depth=0]": """\
[depth=…] cannot be used in a range at character 13 of the selector
  ## A...## B [depth=0]
              ^""",
    "## A [depth=0]...## B": """\
[depth=…] cannot be used in a range at character 6 of the selector
  ## A [depth=0]...## B
       ^""",
    "## A [lines=3-2]": """\
expected = and two line numbers at character 12 of the selector
  ## A [lines=3-2]
             ^
[lines=10-20] is lines 10 to 20 of the file, within the section's own text""",
    "A [lines=1-2][lines=3-4]": """\
[lines=…] is given twice at character 15 of the selector
  A [lines=1-2][lines=3-4]
                ^""",
    "A [lines=1-2] > B": """\
[lines=…] must end the selector at character 3 of the selector
  A [lines=1-2] > B
    ^""",
    "## A [lines=1-2]...## B": """\
[lines=…] cannot be used in a range at character 6 of the selector
  ## A [lines=1-2]...## B
       ^""",
    "## A...## B...## C": """\
a range has only two ends at character 12 of the selector
  ## A...## B...## C
             ^""",
    '"A"...': """\
expected the heading that ends the range at character 7 of the selector
  "A"...
        ^""",
    "...## B": """\
expected a name, # marks, > or // at character 1 of the selector
  ...## B
  ^""",
    "## A\x00B": """\
control character U+0000 at character 5 of the selector
  ## A\ufffdB
      ^""",
    "\ud800": """\
control character U+D800 at character 1 of the selector
  \ufffd
  ^""",
    "A > " * (MAX_STEPS + 1) + "A": """\
a selector may have at most 32 steps at character 127 of the selector
  …> A > A > A > A > A > A > A > A > A > A > A > A > A > A > A > A > A
                                                               ^""",
}


@pytest.mark.parametrize("text", SYNTAX_ERRORS)
def test_syntax_errors(text: str) -> None:
    """A selector that cannot be read is shown with the spot, and with what was expected there."""
    with pytest.raises(SelectorSyntaxError) as error:
        compile_selector(text)
    assert str(error.value) == SYNTAX_ERRORS[text]


@pytest.mark.parametrize("text", ["a" * 1_000_000, "> " * 500_000, "\x00" * 1_000_000, '"' * 1_000_000])
def test_length(text: str) -> None:
    """A text over the limit is refused before it is read, in a short message."""
    with pytest.raises(SelectorSyntaxError, match="a selector may have at most 4096 characters") as error:
        compile_selector(text)
    assert error.value.position == MAX_LENGTH
    assert len(str(error.value)) < 400


def test_longest() -> None:
    """A text of exactly the limit is read."""
    assert compile_selector("a" * MAX_LENGTH).document == "a" * MAX_LENGTH


def test_most_steps() -> None:
    """A path of exactly as many steps as allowed is read."""
    assert len(compile_selector(" > ".join("a" * MAX_STEPS)).steps) == MAX_STEPS


def test_compiled_selectors_are_values() -> None:
    """Equal texts give the same frozen value, which can be a key and be pickled."""
    selector = compile_selector("guide > ## A [has-code][version>=1.0]...## B")
    assert compile_selector("guide > ## A [has-code][version>=1.0]...## B") is selector
    assert pickle.loads(pickle.dumps(selector)) == selector
    assert hash(pickle.loads(pickle.dumps(selector))) == hash(selector)
    with pytest.raises(FrozenInstanceError):
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
    """A name that was spelled reads as that name, whatever stands behind it."""
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
    """One blank or many, or a line break: the meaning stays the same."""

    def read(text: str) -> object:
        selector = outcome(text)
        if isinstance(selector, SelectorSyntaxError):
            return selector.problem
        return [(step.combinator, step.level, step.name, step.conditions) for step in selector.steps]

    assert read(" ".join(elements)) == read("\n  ".join(["", *elements, ""]))


@pytest.mark.parametrize(
    ("name", "spelt"),
    [
        ("a --> b", r'"a --\> b"'),
        ("a --!> b", r'"a --!\> b"'),
        (r"a --\> b", r'"a --\\> b"'),
        ("a -- > b", '"a -- > b"'),
        ("a\u200bb", r'"a\u200bb"'),
        ("a\u00adb", r'"a\xadb"'),
        ("a\U000e0041b", r'"a\U000e0041b"'),
        (r"a\u200bb", r"a\u200bb"),
        (r'"\u200b"', r'"\"\\u200b\""'),
        ("👩‍🔧 crew ❤️", "👩‍🔧 crew ❤️"),
        (r"C:\x41", r"C:\x41"),
    ],
)
def test_a_name_shows_what_nobody_can_see(name: str, spelt: str) -> None:
    """And does not end a comment; it is read as it was."""
    assert spell(name) == spelt
    assert compile_selector(f"guide > ## {spelt}").steps[-1].name == name


def test_only_what_nobody_can_see_is_written_by_its_number() -> None:
    """What people write in quotes stays."""
    assert compile_selector(r'"C:\x41\u0041"').document == r"C:\x41\u0041"
