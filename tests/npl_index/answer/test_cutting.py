"""Sections that do not fit are cut around their matches."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from npl_index.answer.cutting import cut, rest_of
from npl_index.answer.document_set import DocumentSet
from npl_index.answer.frames import Stretch
from npl_index.answer.request import TailorRequest
from npl_index.deadline import Deadline
from npl_index.errors import DocumentTimeoutError
from npl_index.ranking.keywords import extract_keywords
from npl_index.tokens.estimated import estimator
from tests.conftest import cases, every
from tests.npl_index.conftest import Meter, document_set, exact_counter, tailor

BLOCKS = cases("npl_index/answer/cutting")["blocks"]


def wanting(on: DocumentSet, question: str) -> DocumentSet:
    return replace(on, wanted=extract_keywords(question).weights)


def kept(on: DocumentSet, room: int, question: str = "", section: int = 1) -> str:
    piece = cut(wanting(on, question), on.part((0, section)), room)
    return "" if piece is None else piece.text


def words(kind: str, times: int) -> str:
    return "".join(kind.replace("N", str(number)) for number in range(times))


KINDS = cases("npl_index/answer/cutting")["kinds"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at", [0.02, 0.5, 0.97])
@pytest.mark.parametrize("room", [50, 300])
def test_the_blocks_around_the_match_are_kept(kind: str, at: float, room: int) -> None:
    """The piece has the section's heading, wherever in the section the match stands."""
    needle = {"rows": "| greenfly | spray |\n", "items": "- spray against greenfly\n"}.get(
        kind, "Against greenfly, spray soap.\n\n"
    )
    head = "| a | b |\n|--|--|\n" if kind == "rows" else ""
    before, after = words(KINDS[kind], int(1000 * at)), words(KINDS[kind], int(1000 * (1 - at)))
    on = document_set({"long.md": f"# Pests\n\n## Weather\n\n{head}{before}{needle}{after}"})
    text = kept(on, room, "what helps against greenflies?", section=2)
    assert text.startswith("## Weather\n\n")
    assert needle.strip() in text
    assert estimator().count(text) <= room
    assert estimator().count(text) > room / 3
    assert text.count("```") % 2 == 0


@pytest.mark.parametrize("word", ["durability", "visibility", "durable", "table", "policies", "stability"])
def test_a_word_is_found_whatever_its_stem_ends_in(word: str) -> None:
    """The stem of "durability" is "durabl", and that of "policies" is "polici"."""
    filler = words(KINDS["paragraphs"], 60)
    on = document_set({"long.md": f"# T\n\n{filler}This is about {word}.\n\n{filler}"})
    assert f"about {word}." in kept(on, 60, word)


def test_what_holds_most_of_the_question_is_kept() -> None:
    """The words together weigh more than one of them alone, even an earlier one."""
    filler = words(KINDS["paragraphs"], 60)
    texts = (
        "The proxy.\n\n",
        "A timeout.\n\n",
        "The timeout of the proxy is a minute.\n\n",
        "The proxy.\n\n",
    )
    on = document_set({"long.md": "# T\n\n" + filler + filler.join(texts) + filler})
    assert "is a minute" in kept(on, 60, "timeout of the proxy")


@pytest.mark.parametrize("question", ["", "nothing of this kind", "weather"])
def test_without_a_place_to_look_for_the_beginning_is_kept(question: str) -> None:
    """The beginning is kept if nothing was asked, nothing matches, or the word stands everywhere."""
    on = document_set({"long.md": "# T\n\n" + words(KINDS["paragraphs"], 500)})
    assert kept(on, 50, question).startswith("# T\n\nParagraph 0 ")


def test_a_match_near_the_beginning_keeps_the_beginning() -> None:
    on = document_set(
        {"long.md": "# T\n\nFirst.\n\nSecond.\n\nAbout frogs.\n\n" + words(KINDS["items"], 500)}
    )
    assert kept(on, 100, "frogs").startswith("# T\n\nFirst.")


def test_a_fence_that_holds_no_match_is_not_cut_for_one_elsewhere() -> None:
    """The piece ends before a fence that does not fit."""
    fence = "```\n" + "line\n" * 300 + "```\n\n"
    on = document_set({"long.md": f"# T\n\n{fence}First.\n\nAbout frogs.\n\n{fence}Last.\n"})
    assert kept(on, 50, "frogs") == "# T\n\nFirst.\n\nAbout frogs.\n"


def test_lines_of_a_paragraph_that_does_not_fit_are_kept() -> None:
    before, after = (words(f"Line N {way} the frogs of the pond.\n", 60) for way in ("before", "behind"))
    paragraph = f"{before}Newts sleep in winter.\n{after}\n"
    on = document_set({"long.md": f"# T\n\n## Animals\n\n{paragraph}Toads.\n"})
    text = kept(on, 60, "when do newts sleep", section=2)
    assert text.startswith("## Animals\n\nLine ")
    assert "\nNewts sleep in winter.\n" in text
    assert estimator().count(text) <= 60


ROWS = words("| row N | weather |\n", 60)
ROW = "| exclude | what is not wanted |\n"


@pytest.mark.parametrize(
    ("question", "begin"), [("exclude parameter", "A parameter each."), ("exclude pump", "The pump.")]
)
def test_a_word_that_says_little_draws_no_cut(question: str, begin: str) -> None:
    """A word of many sections, or of the heading, which comes with every piece, moves no cut."""
    pages = {f"p{number}.md": f"# P{number}\n\nA parameter.\n" for number in range(5)}
    table = f"| name | meaning |\n|--|--|\n{ROWS}{ROW}{ROWS}"
    on = document_set({"long.md": f"# T\n\n## Pump\n\n{begin}\n\n{table}", **pages})
    request = TailorRequest.parse(context=question, selectors=["## Pump"], token_budget=300)
    content = tailor(request, on).content
    assert ROW in content
    assert "## Pump\n\n| name | meaning |\n" in content


def test_the_answer_says_what_was_kept_and_what_stands_around_it() -> None:
    """The row's selector selects the same text; ``request_more`` selects the text before and after it."""
    lines = [f"Paragraph {number}." for number in range(800)]
    lines[400] = "Newts like ponds."
    on = document_set({"long.md": "# T\n\n## Animals\n\n" + "\n\n".join(lines) + "\n"})
    answer = tailor(TailorRequest.parse(context="newts", token_budget=700), on)
    (row,) = answer.sections
    assert "[lines=" in row.selector
    assert answer.content.startswith("## Animals\n\nParagraph 3")
    assert "Paragraph 399.\n\nNewts like ponds.\n\nParagraph 401." in answer.content
    again = tailor(TailorRequest.parse(selectors=[row.selector]), on)
    assert again.content == answer.content
    assert (again.sections[0].selector, again.total_tokens) == (row.selector, row.token_count)
    rest = tailor(TailorRequest.parse(selectors=answer.request_more), on)
    assert {part.title for part in rest.sections} == {"Animals"}
    everything = [line for line in (answer.content + rest.content).split("\n") if line and line[0] != "#"]
    assert sorted(everything) == sorted(lines)


@given(
    st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=60),
    st.integers(1, 400),
    st.sampled_from(["", "soil", "seeds below", "water slowly", "June", "frost inside"]),
    st.booleans(),
)
@example(["```sh\nwater --slowly\n\nwait\n```\n\n"], 13, "", True)
def test_pieces_are_the_whole(blocks: list[str], room: int, question: str, exact: bool) -> None:
    """A piece fits, and the text before it, the piece and the text after it are the section."""
    counter = exact_counter() if exact else estimator()
    on = wanting(document_set({"x.md": "# T\n\n" + "".join(blocks)}, counter), question)
    part = on.part((0, 1))
    piece = cut(on, part, room)
    if piece is None:
        return
    pieces = (piece, *rest_of(part, piece))
    assert counter.upper_bound(max(piece.size)) <= room
    tree = on.tree(0)
    inside = sorted((piece.lines.start, piece.lines.stop) for piece in pieces)
    covered = {line for start, stop in inside for line in range(start, stop)}
    twice = sum(stop - start for start, stop in inside) - len(covered)
    assert twice == 0 or (isinstance(piece.lines, Stretch) and twice <= 2)
    missing = [tree.line(line) for line in range(part.lines.start, part.lines.stop) if line not in covered]
    assert not "".join(missing).strip()
    text = piece.text
    assert text.count("```") % 2 == text.count("~~~") % 2 == 0
    assert not text.rstrip().endswith(":")
    assert all(piece.size.last > 0 for piece in pieces)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_counted_depends_on_the_room_alone(kind: str) -> None:
    """The counted text grows neither with the section nor with the place of the match."""
    shown = []
    for times in (300, 3_000):
        meter = Meter()
        text = words(KINDS[kind], times).replace(str(times - 20), "greenfly")
        on = document_set({"x.md": "# T\n\n" + text}, meter)
        part = on.part((0, 1), chosen=False)
        meter.shown = 0
        assert cut(wanting(on, "greenfly"), part, 50)
        shown.append(meter.shown)
    assert max(shown) < 3_000


@pytest.mark.parametrize("line", every(2, ["x" * 300_000, "word " * 60_000, "- " * 100_000, "文" * 200_000]))
def test_a_line_that_does_not_fit_is_not_read_to_its_end(line: str) -> None:
    meter = Meter()
    on = document_set({"x.md": f"# T\n\nShort.\n\n{line}\n"}, meter)
    part = on.part((0, 1), chosen=False)
    meter.shown = 0
    piece = cut(wanting(on, "word x"), part, 50)
    assert piece
    assert piece.text.startswith("# T\n\n")
    assert estimator().upper_bound(max(piece.size)) <= 50
    assert meter.shown < 30_000


def test_a_long_block_is_divided_only_around_matches() -> None:
    line = "A word. " * 50_000
    blocks = document_set({"x.md": f"# T\n\n{line}\n"}).blocks((0, 1))
    begin, end = blocks.body, blocks.body + len(line)
    assert 10 < len(blocks.bounds(begin, end, [begin, end - 1], 100)) < 100


def test_cutting_looks_at_the_clock() -> None:
    on = document_set({"x.md": "# T\n\n" + words(KINDS["items"], 100)})
    late = replace(on, clock=Deadline("x.md", -1.0))
    with pytest.raises(DocumentTimeoutError):
        cut(late, on.part((0, 1)), 50)


HEAD = "| name | what it does |\n|:--|:--|\n"
ROWS = "".join(f"| option{n} | sets the flow of pipe {n} |\n" for n in range(200)).replace(
    "option150", "siphon"
)
TABLES = {
    "alone": (HEAD, ROWS, ""),
    "behind a paragraph": (f"Words.\n{HEAD}", ROWS, ""),
    "in a list": (HEAD, ROWS, "  "),
    "in a quote": (HEAD, ROWS, "> "),
}


@pytest.mark.parametrize("case", TABLES)
@pytest.mark.parametrize("room", [60, 120, 400])
def test_rows_come_under_the_head_of_their_table(case: str, room: int) -> None:
    """The lines in the selector are those of the rows, so it selects the same piece."""
    head, rows, margin = TABLES[case]
    table = "".join(margin + line for line in (head + rows).splitlines(keepends=True))
    lead = "- an item\n\n" if case == "in a list" else ""
    on = document_set({"long.md": f"# T\n\n## Options\n\nIntro.\n\n{lead}{table}\nAfter the table.\n"})
    text = kept(on, room, "siphon option flow", section=2)
    assert "siphon" in text
    above = ["an item"] if case == "in a list" else []
    begin = ["## Options", "", *above, *HEAD.splitlines()]
    assert [line.strip("-> ") for line in text.splitlines()][: len(begin)] == begin
    assert estimator().count(text) <= room
    answer = tailor(TailorRequest.parse(context="siphon option flow", token_budget=room + 150), on)
    (row,) = answer.sections
    again = tailor(TailorRequest.parse(selectors=[row.selector]), on)
    assert again.content == answer.content
    assert answer.content.count("what it does") == 1


def test_what_is_only_like_a_table_gets_no_head() -> None:
    """Lines with a bar after a blank line get no head, nor does a section that begins with the table."""
    bars = "a | b in a paragraph of its own\n\n" * 200
    on = document_set({"long.md": f"# T\n\n{HEAD}| x | y |\n\n{bars}The siphon | here.\n\n{bars}"})
    assert "what it does" not in kept(on, 60, "siphon")


@pytest.mark.parametrize("aside", ["[Siphon valve]: ../siphon-valve.png", '{{< siphon "valve" >}}'])
def test_a_window_shows_text_and_no_aside(aside: str) -> None:
    """A link definition or a shortcode with more of the question's words draws no window."""
    lines = words(KINDS["paragraphs"], 60)
    on = document_set({"x.md": f"# T\n\n{lines}The siphon is open.\n\n{lines}{aside}\n\n{lines}"})
    assert "is open" in kept(on, 60, "siphon valve")
