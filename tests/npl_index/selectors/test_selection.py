"""Selectors against trees: cases as Markdown, exact generated selectors, errors and growth."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npl_index.errors import InvalidRequestError, NPLError, SectionNotFoundError
from npl_index.markdown.sections import DocumentText, Section, SectionTree, Span, nest, parse_sections
from npl_index.markdown.traits import Traits
from npl_index.selectors.grammar import MAX_LENGTH, compile_selector
from npl_index.selectors.selection import Selected, select
from npl_index.selectors.writing import narrowed, qualified, selectors_of, steps_of
from tests.conftest import cases
from tests.npl_index.conftest import lines_run

CASES = Path(__file__).parents[2] / "cases" / "selectors"


@dataclass(frozen=True)
class Case:
    title: str
    documents: tuple[SectionTree, ...]
    selector: str
    expected: list[str]


def read_cases(path: Path) -> Iterator[Case]:
    lines = iter(path.read_text("utf-8").split("\n---\n", 1)[1].split("\n"))

    def part() -> list[str]:
        return list(iter(lambda: next(lines), "."))

    documents: tuple[SectionTree, ...] = ()
    for title in filter(None, lines):
        assert part() == [], f"{path.name}: no dot behind the title {title!r}"
        documents = parse_documents(part()) or documents
        yield Case(title, documents, "\n".join(part()), part())


def parse_documents(lines: Sequence[str]) -> tuple[SectionTree, ...]:
    texts: dict[str, list[str]] = {}
    name = "guide"
    for line in lines:
        if line.startswith("=== "):
            name = line[4:]
        else:
            texts.setdefault(name, []).append(line)
    return tuple(parse_sections("\n".join(text).encode(), name) for name, text in texts.items())


def shown(section: Section) -> str:
    if section.level == 0:
        return f"({section.name})"
    return f"{'#' * section.level} {section.heading}".strip()


def collect(trees: Sequence[SectionTree], selector: str) -> list[str]:
    chosen = select(trees, compile_selector(selector))
    return [shown(trees[match.tree].sections[index]) for match in chosen for index in match.sections]


ALL_CASES = [
    pytest.param(case, id=f"{path.stem}: {case.title}")
    for path in sorted(CASES.glob("*.md"))
    for case in read_cases(path)
]


@pytest.mark.parametrize("case", ALL_CASES)
def test_case(case: Case) -> None:
    """The sections that a case file lists are returned, in that order, or its error is raised."""
    if case.expected[0].startswith("! "):
        with pytest.raises((SectionNotFoundError, InvalidRequestError)) as error:
            collect(case.documents, case.selector)
        assert case.expected[0][2:] in str(error.value)
    else:
        assert collect(case.documents, case.selector) == case.expected


def outcome(trees: Sequence[SectionTree], text: str) -> tuple[Selected, ...] | NPLError:
    try:
        return select(trees, compile_selector(text))
    except NPLError as error:
        return error


@pytest.mark.parametrize("case", [case for case in ALL_CASES if case.values[0].expected[0].startswith("! ")])
def test_proposed_selectors_work_verbatim(case: Case) -> None:
    error = outcome(case.documents, case.selector)
    assert isinstance(error, NPLError)
    proposed = (
        error.near if isinstance(error, SectionNotFoundError) else [(error.hint or "").removeprefix("write ")]
    )
    for text in proposed:
        assert isinstance(outcome(case.documents, text), tuple)


NOWHERE = Span(0, 0)


def build(name: str, nodes: Sequence[tuple[int, str]]) -> SectionTree:
    """Build a tree of headings no Markdown can hold: of (level, name), level 0 for versioned sections."""
    levels, names = [0, *(level for level, _ in nodes)], [name, *(text for _, text in nodes)]
    parents, children, _ = nest(levels)
    related = ((parents[i] if i else None, tuple(children[i])) for i in range(len(levels)))
    sections = tuple(
        Section(i, levels[i], names[i], names[i], None, *(NOWHERE,) * 5, *near, Traits(), Traits())
        for i, near in enumerate(related)
    )
    title = 1 if levels.count(1) == 1 and levels[1] == 1 else None
    return SectionTree(name, sections, DocumentText(lambda: ""), "", "commonmark", title)


def assert_exact(tree: SectionTree, document: str | None = None) -> None:
    names = [() if document is None else (document,)]
    name = tree.name if document is None else document
    short = [qualified(name, steps) for steps in steps_of(tree)]
    for index, text in chain(enumerate(selectors_of(tree, document)), enumerate(short)):
        assert select([tree], compile_selector(text), names=names) == (
            Selected(0, index, tuple(tree.subtree(index))),
        ), text
        own = f"{text} [depth=0]"
        assert select([tree], compile_selector(own), names=names) == (Selected(0, index, (index,)),), own


PIECES = st.sampled_from(cases("selectors/grammar")["pieces"])
NAMES = st.one_of(
    PIECES,
    st.lists(PIECES, max_size=4).map(" ".join),
    st.lists(PIECES, max_size=4).map("".join),
    st.text(max_size=12),
)
NODES = st.lists(st.tuples(st.sampled_from([0, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6]), NAMES), max_size=12)


@given(name=st.just("guide") | NAMES, nodes=NODES, document=st.none() | NAMES)
def test_generated_selectors_are_exact(name: str, nodes: list[tuple[int, str]], document: str | None) -> None:
    assert_exact(build(name, nodes), document)


def test_generated_selectors_are_exact_in_real_files(corpus: Mapping[str, str]) -> None:
    trees = {id(tree): tree for parameter in ALL_CASES for tree in parameter.values[0].documents}  # type: ignore[union-attr]
    for tree in (*trees.values(), *(parse_sections(text.encode(), path) for path, text in corpus.items())):
        assert_exact(tree)


def test_generated_selectors_stay_within_the_limit() -> None:
    """Headings of any length get selectors short enough to compile, and long twins are numbered."""
    long = '"' * 5_000
    tree = build("guide", [(level, long + str(level % 2)) for level in (1, 2, 3, 4, 5, 6, 6)])
    assert max(map(len, selectors_of(tree))) < MAX_LENGTH
    assert selectors_of(tree)[-1].endswith(" [2]")
    assert_exact(tree)


def test_a_long_heading_is_found_by_its_full_text() -> None:
    """A heading longer than what counts of a name is found when it is pasted in full."""
    name = "word " * 100
    assert select([build("guide", [(2, name)])], compile_selector(f"## {name}"))[0].head == 1


@pytest.mark.parametrize(
    ("nodes", "expected"), cases("npl_index/selectors/selection")["text_of_generated_selectors"]
)
def test_text_of_generated_selectors(nodes: list[tuple[int, str]], expected: list[str]) -> None:
    """Generated selectors are paths of headings, quoted and numbered only where it is needed."""
    assert selectors_of(build("guide", nodes)) == ("guide", *(f"guide > {text}" for text in expected))


def test_short_selectors_leave_out_what_one_heading_alone_says() -> None:
    """Headings that others of their level equal, and versioned sections, keep what stands above them."""
    nodes = [(1, "T"), (2, "A"), (3, "B"), (4, "C"), (2, "D"), (3, "B"), (0, "p"), (2, "A")]
    assert steps_of(build("guide", nodes)) == (
        "",
        " > # T",
        " > ## A",
        " > ## A > ### B",
        " #### C",
        " > ## D",
        " > ## D > ### B",
        " > p",
        " > p > ## A",
    )


def test_generated_selectors_with_a_path() -> None:
    """The name given for the document replaces its own, for versioned sections as well."""
    tree = build("guide", [(2, "A"), (0, "part"), (2, "B")])
    assert selectors_of(tree, "docs/guide.md") == (
        "docs/guide.md",
        "docs/guide.md > ## A",
        "docs/guide.md > part",
        "docs/guide.md > part > ## B",
    )


def test_a_heading_keeps_its_number_when_others_differ_only_in_markup() -> None:
    """Headings that read alike are numbered together, though their sources differ."""
    tree = parse_sections(b"## A\n\n## *A*\n\n## `A`\n", "guide")
    assert selectors_of(tree)[1:] == ("guide > ## A [1]", "guide > ## A [2]", "guide > ## A [3]")
    assert_exact(tree)


TWO = (
    parse_sections(b"# One\n\n## Setup\n\n### Linux\n", "readme"),
    parse_sections(b"# Two\n\n## Setup\n\n## Usage\n", "readme"),
)
PATHS = [("docs/one/readme.md", "docs.one.readme"), ("docs/two/readme.md",)]


@pytest.mark.parametrize(
    ("selector", "expected"), cases("npl_index/selectors/selection")["several_documents"]
)
def test_several_documents(selector: str, expected: list[list[int]]) -> None:
    """Documents are told apart by their further names, and answers come in the order of the documents."""
    chosen = select(TWO, compile_selector(selector), names=PATHS)
    assert [[match.tree, match.head] for match in chosen] == expected


def test_near_selectors_name_the_document_where_several_are_searched() -> None:
    """A suggested selector finds its section among all searched documents."""
    with pytest.raises(SectionNotFoundError) as error:
        select(TWO, compile_selector("## Usages"), names=PATHS)
    assert error.value.near == ("docs/two/readme.md > ## Usage",)
    (selected,) = select(TWO, compile_selector(error.value.near[0]), names=PATHS)
    assert (selected.tree, selected.head) == (1, 3)


def test_no_documents() -> None:
    """Without documents nothing is found, and the error is the usual one."""
    with pytest.raises(SectionNotFoundError, match="none of 0 documents has"):
        select([], compile_selector("## A"))


def test_proposals_are_few() -> None:
    """An error suggests five selectors at most, and every message is short."""
    tree = build("guide", [(2, f"Section number {number}") for number in range(500)])
    for selector in (
        "## Section",
        "## Section numbr",
        "## " + "x" * 4_000,
        f"## Section number 1 [{'9' * 3_000}]",
    ):
        with pytest.raises(SectionNotFoundError) as error:
            select([tree], compile_selector(selector))
        assert len(error.value.near) <= 5
        assert len(str(error.value)) < 700


LINES = parse_sections(b"# Guide\n\n## A\n\none\ntwo\n\n### B\n\nthree\n\n## A\n\nfour\n", "guide")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("guide > ## A [1] [lines=5-6]", [(2, Span(4, 6))]),
        ("guide > ## A [1] [lines=1-99]", [(2, Span(2, 7))]),
        ("guide > ## A [1] [lines=6-12]", [(2, Span(5, 7))]),
        ("## A [lines=6-12]", [(2, Span(5, 7)), (4, Span(11, 12))]),
        ("guide [lines=1-99]", []),
        ("guide > ## A [1] [lines=10-10]", []),
    ],
)
def test_lines(selector: str, expected: list[tuple[int, Span]]) -> None:
    """Lines are counted as in the file and return a part of a section's own text, never a subsection's."""
    selected = outcome([LINES], selector)
    if expected:
        assert selected == tuple(Selected(0, head, (head,), lines) for head, lines in expected)
    else:
        assert isinstance(selected, SectionNotFoundError)


def test_narrowed_selectors_are_exact() -> None:
    """A selector narrowed to any lines of a section's own text returns exactly these."""
    for section, text in zip(LINES.sections, selectors_of(LINES), strict=True):
        for start in range(section.own.start, section.own.stop):
            for stop in range(start + 1, section.own.stop + 1):
                narrow = narrowed(text, lines=Span(start, stop))
                expected = Selected(0, section.index, (section.index,), Span(start, stop))
                assert outcome([LINES], narrow) == (expected,)


def test_depth_of_many_matches_hands_over_each_section_once() -> None:
    tree = build("guide", [(level, "A") for level in (1, 2, 3, 4, 3, 2, 3, 4, 5, 6)])
    for depth in range(5):
        chosen = select([tree], compile_selector(f"// * [depth={depth}]"))
        handed = [index for match in chosen for index in match.sections]
        assert sorted(handed) == list(range(1, 11))
        assert all(match.sections[0] == match.head for match in chosen)


@given(nodes=NODES, text=st.lists(PIECES, max_size=8).map("".join) | st.text(max_size=30))
def test_only_expected_errors(nodes: list[tuple[int, str]], text: str) -> None:
    """Any text over any tree gives an answer or one of the library's errors, whose proposals work."""
    tree = build("guide", nodes)
    selected = outcome([tree], text)
    if isinstance(selected, tuple):
        handed = [index for match in selected for index in match.sections]
        assert handed
        assert len(handed) == len(set(handed))
    elif isinstance(selected, SectionNotFoundError):
        assert all(isinstance(outcome([tree], near), tuple) for near in selected.near)
    else:
        assert isinstance(selected, InvalidRequestError)


@pytest.mark.parametrize("selector", ["// * // * // *", "// * [depth=2]", "## * [1]", "Same", "guide > *"])
@pytest.mark.parametrize("level", [2, None])
def test_growth(selector: str, level: int | None) -> None:
    """Eight times the sections take about eight times the work, deep or flat, not sixty times."""

    def work(count: int) -> int:
        tree = build("guide", [(level or 1 + number % 6, "Same") for number in range(count)])
        return lines_run(lambda: outcome([tree], selector))

    assert work(2_400) < 12 * work(300)


def test_growth_of_selectors_of() -> None:
    """The selectors of all sections take linear work, many equal siblings included."""
    small, large = (build("guide", [(2, "Same")] * count) for count in (300, 2_400))
    assert lines_run(lambda: selectors_of(large)) < 12 * lines_run(lambda: selectors_of(small))
