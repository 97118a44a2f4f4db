"""Passages: definitions of names, code whole or visibly cut, parents of items."""

import pytest

from npl_index.answer.cutting import WHOLE
from npl_index.answer.forms import Json
from npl_index.answer.request import TailorRequest
from npl_index.answer.tailoring import write
from npl_index.choices import DEFAULT_BUDGET
from tests.npl_index.conftest import document_set

OPTIONS = [
    f"pump_{word}" for word in ("inlet", "outlet", "filter", "valve", "hose", "seal", "motor", "wheel")
]
LIST = "```\n" + "".join(f"    {name} <value>\n" for name in OPTIONS) + "```\n\n"
SAID = "It is set once, is read at the start, and has a default that fits most ponds of a garden. " * 4


def passage(text: str, question: str, **arguments: object) -> str:
    request = TailorRequest.parse(question, default_budget=DEFAULT_BUDGET, **arguments)  # type: ignore[arg-type]
    return write(request, document_set({"pump.md": f"# Pump\n\n## Options\n\n{text}"}), Json()).value.content


@pytest.mark.parametrize("form", ["- **{}**: {}\n\n", "| `{}` | {} |\n", "{}\n: {}\n\n", "`{}` {}\n\n"])
@pytest.mark.parametrize("name", OPTIONS[1::3])
def test_what_a_named_thing_is_comes_before_its_mention(form: str, name: str) -> None:
    """The bullet, row, definition or paragraph that begins with the name beats a list of all names."""
    head = "| name | what |\n|:--|:--|\n" if form.startswith("|") else ""
    text = (
        LIST + head + "".join(form.format(option, f"This is {n}. {SAID}") for n, option in enumerate(OPTIONS))
    )
    shown = passage(text, name)
    assert f"This is {OPTIONS.index(name)}." in shown
    assert head in shown


def test_a_row_of_an_html_table_comes_whole_below_the_head() -> None:
    rows = "".join(f"<tr>\n<td>knob_{n}</td>\n<td>{n} bytes</td>\n</tr>\n" for n in range(200))
    head = "<tr><th>Name</th><th>Size</th></tr>\n"
    lines = passage(f"<table>\n{head}{rows}</table>\n", "knob_137").splitlines()
    assert lines[2] == head.strip()
    assert lines[lines.index("<td>knob_137</td>") + 1] == "<td>137 bytes</td>"
    assert lines[3].startswith("<td>knob_")


def test_an_item_comes_below_its_parents() -> None:
    text = "".join(
        f"- Region {region}\n" + "".join(f"  - Town {region}{n}: mayor {region}{n}\n" for n in range(120))
        for region in ("north", "south")
    )
    lines = passage(text, "mayor south77").splitlines()
    assert "  - Town south77: mayor south77" in lines
    assert lines[2] == "- Region south"


def test_code_is_whole_or_visibly_cut() -> None:
    """A line with an ellipsis stands where lines of a block are missing."""
    code = "".join(f"  open_valve({n});\n" for n in range(200)).replace("(117)", "(siphon)")
    lines = passage(f"Intro.\n\n```js\n{code}```\n", "siphon").splitlines()
    begin, end = lines.index("```js"), lines.index("```")
    assert (lines[begin + 1], lines[end - 1]) == ("…", "…")
    assert "  open_valve(siphon);" in lines[begin:end]
    assert "…" not in passage(f"Intro.\n\n```js\n{code[:800]}\n```\n", "open_valve 7")


@pytest.mark.parametrize("budget", [None, 150, 220, 300])
def test_a_paragraph_that_announces_code_brings_its_first_lines(budget: int | None) -> None:
    code = "".join(f"open_valve {n}\n" for n in range(300))
    text = f"{SAID}\n\nClean the siphon like this:\n\n```sh\n{code}```\n\n{SAID}"
    shown = passage(text, "clean siphon", token_budget=budget)
    assert "like this:\n\n```sh\nopen_valve 0\n" in shown
    assert shown.endswith("\n…\n```\n")


@pytest.mark.parametrize("budget", range(90, 200, 10))
def test_no_passage_is_a_bare_heading(budget: int) -> None:
    shown = passage(SAID + "pump " * 90, "options", token_budget=budget)
    assert shown.removeprefix("## Options").strip() or not shown


def test_a_section_that_is_asked_for_comes() -> None:
    """A short section comes whole with its subsections, a long one with its own text and pointers."""
    part = "Clean the filter of the pump, and look for leaves in the inlet.\n\n"
    below = "".join(f"### Step {n}\n\n{part * n}" for n in range(1, 18))
    documents = document_set({"pump.md": f"# Pump\n\n## Short\n\n{part * 20}\n## Long\n\n{part}{below}"})

    def read(*selectors: str, **arguments: object) -> tuple[int, int]:
        request = TailorRequest.parse(
            "filter leaves step",
            selectors=[*selectors],
            default_budget=DEFAULT_BUDGET,
            **arguments,  # type: ignore[arg-type]
        )
        answer = write(request, documents, Json()).value
        return answer.total_tokens, len(answer.request_more)

    assert read("## Short") == (read("## Short", token_budget=0)[0], 0)
    tokens, pointers = read("## Long")
    assert WHOLE / 2 < tokens <= WHOLE
    assert pointers
    assert read("## Long [lines=1-900]", "## Long [depth=1]")[1] == 0


def test_a_section_that_answers_as_well_follows_the_first() -> None:
    """With the default budget both come whole, together up to the longest whole section."""
    said = "The pump filter is cleaned in {0}, dried in {0} and oiled before it goes back. " * 13
    text = "".join(f"### Pump filter in {season}\n\n{said.format(season)}\n\n" for season in ("May", "July"))
    assert passage(text, "pump filter").count("oiled") == 26
