"""A very long heading has its name, selectors and outline made from its beginning."""

from itertools import product
from pathlib import Path

import pytest

from npl_index import estimator
from npl_index.deadline import Deadline
from npl_index.errors import DocumentTimeoutError
from npl_index.markdown.headings import MAX_HEADING
from npl_index.markdown.sections import parse_sections
from npl_index.outline.folding import Sections, fitted
from npl_index.outline.nodes import outline
from npl_index.outline.text import OutlineText
from npl_index.selectors.filters import TraitFilter
from npl_index.tokens.sections import TokenCounts
from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from tests.conftest import Call
from tests.tools import npl_load_tailored, npl_section_index

SIZE = 400_000

LONG = {
    "one word": "# " + "a" * SIZE + "\n",
    "entities": "# " + "&amp;" * (SIZE // 5) + "\n",
    "emphasis": "# " + "*a **b _c " * (SIZE // 10) + "\n",
    "spaces": "# a" + " " * SIZE + "#b\n",
    "a paragraph above a line": "some words of it " * (SIZE // 17) + "\n---\n",
    "front matter that is too long": "---\n" + "".join(f"k{n}: v\n" for n in range(110_000)) + "---\n",
    "no mapping": "---\n" + "? " * (SIZE // 2) + "\n---\n",
    "a mark of NPL": "⌜" + "a" * SIZE + "|b⌝\nText.\n⌞" + "a" * SIZE + "⌟\n",
}


@pytest.mark.parametrize("kind", LONG)
def test_what_an_outline_shows_of_a_heading_is_bounded(call: Call, docs: Path, kind: str) -> None:
    """The whole answer is bounded: the heading is in its name, its source and its selector."""
    (docs / "x.md").write_text(LONG[kind] + "\n## After\n\nWater the roses.\n", encoding="utf-8")
    texts = [
        call.text("npl_section_index", file="x.md", format=form, **budget)
        for form, budget in product(("json", "markdown"), ({}, {"token_budget": 300}))
    ]
    texts.append(call.text("npl_load_tailored", file="x.md", context="roses", token_budget=300))
    assert all(len(text) < 12 * MAX_HEADING for text in texts)


def test_a_long_heading_is_selected_by_what_is_given_out_and_found_by_all_its_words(
    settings: Settings, docs: Path
) -> None:
    """The cut part counts as text."""
    (docs / "x.md").write_text("# Top\n\n## " + "pump " * 600 + "zyzzyva\n\nText.\n\n## Other\n\nText.\n")
    app = App(settings)
    (node,) = (
        child for child in npl_section_index(app, file="x.md").sections[0].children if "pump" in child.name
    )
    assert len(node.name) <= MAX_HEADING
    (row,) = npl_load_tailored(app, selectors=[node.selector], file="x.md").value.sections
    assert row.start_line == node.start_line
    sections = npl_load_tailored(app, context="zyzzyva", file="x.md").value.sections
    assert node.start_line in {row.start_line for row in sections}
    app.close()


def test_an_outline_ends_with_the_deadline() -> None:
    """Its text is counted until then, whether all of it is shown or not."""
    tree, counter = parse_sections(b"# A\n\n## B\n", "x"), estimator("o200k_base")
    node = outline(tree, TokenCounts(tree, counter), TraitFilter(), selector=str)
    text = OutlineText(node)
    assert "## B" in text.answer(fitted(Sections(node), text, None, counter))
    for budget in (1, 1_000):
        with pytest.raises(DocumentTimeoutError):
            fitted(Sections(node), text, budget, counter, Deadline("x", 0.0))
