"""A passage shows a rare word of a far too long block as the block does."""

import json
from dataclasses import replace
from itertools import product

import pytest

from npl_index.answer.cutting import cut
from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import Form, Json, Markdown
from npl_index.answer.request import TailorRequest
from npl_index.answer.tailoring import write
from npl_index.answer.values import Tailored, Written
from tests.conftest import cases
from tests.npl_index.conftest import document_set

NEEDLE = "zanzibar"
PLAIN = (
    "The pump moves water from the pond to the beds. It runs at night, e.g. in May with version 2.11 of it."
)


def many(text: str, needle: str, times: int = 300) -> str:
    """Return a text repeated with the needle in the middle; ``#`` becomes the number."""
    lines = [text.replace("#", str(number)) for number in range(times)]
    lines[times // 2] = needle.replace("#", str(times // 2))
    return "".join(lines)


def indented(text: str, margin: str) -> str:
    return "".join(margin + line if line.strip() else line for line in text.splitlines(keepends=True))


CALL = f"value_150 = {NEEDLE}(150)\n"
CODE = many("value_# = water(#)\n", f"value_# = {NEEDLE}(#)\n")
SENTENCE = f"Only {NEEDLE} stops the pump."
LINES = many(f"{PLAIN}\n", f"{SENTENCE}\n")
ONE_LINE = LINES.replace("\n", " ").strip() + "\n"
WRAPPED = LINES.replace("from the", "from\nthe")
BLOCKS = LINES.replace("\n", "\n\n")
ROWS = many("| row # | water |\n", f"| row # | {NEEDLE} |\n")
HTML_ROWS = many("<tr><td>row #</td></tr>\n", f"<tr><td>{NEEDLE}</td></tr>\n")
VALUES = [(NEEDLE if number == 150 else f"key{number}", {"pump": number}) for number in range(300)]

KINDS = {
    "fence": (f"```python title='x'\n{CODE}```\n", ("\n```python title='x'\n", CALL, "```\n")),
    "tildes": (f"~~~~ sh\n{CODE}~~~~\n", ("\n~~~~ sh\n", CALL, "~~~~\n")),
    "fence in an item": (
        f"3. Start it:\n\n   ```sh\n{indented(CODE, '   ')}   ```\n",
        ("\n3. Start it:\n", "   ```sh\n", f"   {CALL}", "   ```\n"),
    ),
    "fence in a quote": (f"> ```sh\n{indented(CODE, '> ')}> ```\n", ("\n> ```sh\n", f"> {CALL}", "> ```\n")),
    "fence in a tab": (
        f'=== "Python"\n\n    ```py\n{indented(CODE, "    ")}    ```\n',
        ('\n=== "Python"\n', "    ```py\n", f"    {CALL}", "    ```\n"),
    ),
    "indented code": (indented(CODE, "    "), (f"\n    {CALL}",)),
    "JSON": (
        f"```json\n{json.dumps(dict(VALUES), indent=1)}\n```\n",
        ("\n```json\n", f'\n "{NEEDLE}": {{\n', "\n```\n"),
    ),
    "JSON on one line": (
        f"```json\n{json.dumps(dict(VALUES))}\n```\n",
        ("\n```json\n", f'"{NEEDLE}": {{"pump": 150}}', "\n```\n"),
    ),
    "JSON without a space": (
        f"```json\n{json.dumps(dict(VALUES), separators=(',', ':'))}\n```\n",
        ("\n```json\n", f'"{NEEDLE}":{{"pump":150}}', "\n```\n"),
    ),
    "HTML": (f"<table>\n{HTML_ROWS}</table>\n", (f"\n<tr><td>{NEEDLE}</td></tr>\n",)),
    "paragraph on one line": (ONE_LINE, (SENTENCE,)),
    "paragraph": (LINES, (f"\n{SENTENCE}\n",)),
    "wrapped paragraph": (WRAPPED, (f"\n{SENTENCE}\n",)),
    "quote": (indented(LINES, "> "), (f"\n> {SENTENCE}\n",)),
    "quote on one line": (f"> {ONE_LINE}", ("\n> ", SENTENCE)),
    "table": (
        f"| name | use |\n|:--|--:|\n{ROWS}",
        ("\n| name | use |\n|:--|--:|\n", f"| row 150 | {NEEDLE} |\n"),
    ),
    "numbers": (many("#. Fill the pump.\n", f"#. Ask {NEEDLE}.\n"), (f"\n150. Ask {NEEDLE}.\n",)),
    "nested list": (
        many("- Fill pump #.\n  - With water.\n", f"- Fill pump #.\n  - Ask {NEEDLE}.\n"),
        (f"- Ask {NEEDLE}.\n",),
    ),
    "item on one line": (f"7. {ONE_LINE}", ("\n7. ", SENTENCE)),
    "item": (indented(LINES, "  ").replace("  ", "- ", 1), ("\n- ", f"{SENTENCE}\n")),
    "later paragraphs of an item": (
        f"- Start it.\n\n{indented(BLOCKS, '  ')}",
        ("\n- Start it.\n", f"\n  {SENTENCE}\n"),
    ),
    "definitions": (
        many("Pump #\n: It moves water.\n\n", f"Pump #\n: Stopped by {NEEDLE}.\n\n"),
        (f"\nPump 150\n: Stopped by {NEEDLE}.\n",),
    ),
    "definition on one line": (f"Motor\n: {ONE_LINE}", ("\nMotor\n: ", SENTENCE)),
    "admonition": (
        f'!!! note "Pumps"\n{indented(LINES, "    ")}',
        ('\n!!! note "Pumps"\n', f"    {SENTENCE}\n"),
    ),
    "admonition of paragraphs": (
        f'!!! note "Pumps"\n\n{indented(BLOCKS, "    ")}',
        ('\n!!! note "Pumps"\n', f"    {SENTENCE}\n"),
    ),
    "container": (f":::note\n{LINES}:::\n", ("\n:::note\n", f"\n{SENTENCE}\n", ":::\n")),
    "container of paragraphs": (f":::note\n\n{BLOCKS}:::\n", ("\n:::note\n", f"\n{SENTENCE}\n", ":::\n")),
    "footnote on one line": (f"A note.[^1]\n\n[^1]: {ONE_LINE}", ("\n[^1]: ", SENTENCE)),
}
"""Blocks that are far too long, and the lines of each in an answer."""


ASKED = [(Markdown(), 600), (Markdown(), 300), (Markdown(), 150), (Json(), 600), (Json(), 400)]


def page(block: str) -> DocumentSet:
    """Return a document with ordinary sections around one that holds a block."""
    before = "# Garden\n\nThe pump.\n\n## Beds\n\nWater.\n\n## Pump\n\nA pump.\n\n"
    return document_set({"garden.md": f"{before}{block}\n## Pond\n\n{PLAIN}\n"})


def asked(documents: DocumentSet, form: Form, budget: int) -> Written[Tailored]:
    request = TailorRequest.parse(context=f"what does {NEEDLE} do to the pump", token_budget=budget)
    written = write(request, documents, form)
    assert documents.counter.count(written.text) <= budget
    return written


@pytest.mark.parametrize(
    ("name", "form", "budget"), [(name, *asked) for name, asked in product(KINDS, ASKED)]
)
def test_a_rare_word_in_a_huge_block_is_shown(name: str, form: Form, budget: int) -> None:
    """The passage keeps the frame of the block and fits the budget."""
    block, parts = KINDS[name]
    content = asked(page(block), form, budget).value.content
    at = content.index("## Pump\n")
    for part in parts:
        at = content.find(part, at)
        assert at >= 0, part
        at += len(part) - 1


@pytest.mark.parametrize("name", [name for name in KINDS if "one line" not in name and "space" not in name])
def test_the_selector_of_a_piece_brings_it_again(name: str) -> None:
    """The selector also brings the frame, which follows from the lines."""
    documents = page(KINDS[name][0])
    value = asked(documents, Markdown(), 300).value
    (selector,) = (row.selector for row in value.sections if "lines=" in row.selector)
    again = write(TailorRequest.parse(selectors=[selector]), documents, Json()).value
    assert again.content.strip() in value.content


@pytest.mark.parametrize("budget", [150, 200, 250, 300, 350])
@pytest.mark.parametrize("name", [name for name in KINDS if SENTENCE in KINDS[name][1][-1]])
def test_no_piece_begins_or_ends_within_a_sentence(name: str, budget: int) -> None:
    """A piece is not cut after "e.g." or within a version either."""
    content = asked(page(KINDS[name][0]), Markdown(), budget).value.content
    text = content.partition("## Pump\n")[2].partition("## Pond\n")[0]
    words = " ".join(text.replace(">", "").split())
    begun = words.removeprefix("7. ").removeprefix("Motor : ").removeprefix("[^1]: ").removeprefix("- ")
    begun = begun.removeprefix("Start it. ")
    begun = begun.removeprefix('!!! note "Pumps" ').removeprefix(":::note ").removesuffix(" :::")
    assert begun.startswith(("The pump moves", "It runs at night", SENTENCE, "A pump."))
    assert begun.endswith((".2.11 of it.".lstrip("."), "to the beds.", SENTENCE))


FILLER = "".join(f"Paragraph {number} says something of the weather.\n\n" for number in range(100))
LEADS = cases("npl_index/answer/passages")["leads"]


@pytest.mark.parametrize("lead", LEADS.values(), ids=LEADS)
@pytest.mark.parametrize("room", range(20, 120, 7))
def test_no_piece_ends_on_what_introduces_the_next(lead: str, room: int) -> None:
    """A piece has both the introduction and the block, or neither."""
    shown = "    The siphon's neighbour, shown.\n\n"
    documents = document_set({"x.md": f"# T\n\n{FILLER}The siphon.\n\n{lead}\n\n{shown}{FILLER}"})
    documents = replace(documents, wanted=(("siphon", 1.0),))
    piece = cut(documents, documents.part((0, 1)), room)
    assert piece
    text = piece.text
    assert "siphon" in text
    assert (lead in text) == ("neighbour" in text)


def test_a_paragraph_comes_with_the_code_that_it_introduces() -> None:
    text = f"# T\n\n{FILLER}Open the valve first.\n\n```sh\nsiphon --start\n```\n\n{FILLER}"
    documents = replace(document_set({"x.md": text}), wanted=(("siphon", 1.0),))
    for room in range(22, 100):
        piece = cut(documents, documents.part((0, 1)), room)
        assert piece
        assert "Open the valve first.\n\n```sh\nsiphon --start\n```\n" in piece.text


def test_what_a_fence_shows_is_no_fence() -> None:
    """Fences of other signs, fences inside code and lists inside a fence frame nothing."""
    shown = "~~~~\n```py\n1. x\n~~~~\n\nText:\n\n    ```\n\n"
    text = f"# T\n\n{shown}{FILLER}The siphon.\n\n{FILLER}"
    documents = replace(document_set({"x.md": text}), wanted=(("siphon", 1.0),))
    piece = cut(documents, documents.part((0, 1)), 60)
    assert piece
    assert "`" not in piece.text
