"""Draws README's picture: a file, what an answer took of it, and the answer."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from html import escape
from pathlib import Path

from npl_index import load_tailored, section_index

FILE = "OPERATIONS.md"
QUESTION = "how do I take a backup"
BUDGET = 300

WIDTH, MARGIN, TOP = 860, 20, 78
ROW, BAR_LEFT, BAR_WIDTH = 26, 170, 150
ANSWER_LEFT, ANSWER_COLUMNS, LINE = 436, 54, 19
MAX_NAME = 20
TAKEN, LEFT_OUT, INK, PALE = "#1f6feb", "#c9d1d9", "#1f2328", "#59636e"
STYLE = "font-size:12px;font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre"


def picture(folder: Path) -> str:
    """Return the picture as SVG; tokens are estimated.

    It brings its own background, so that it can be read on light and on dark pages.

    :param folder: where the file lies.
    """
    document = section_index(folder / FILE)[0]
    answer = load_tailored(folder / FILE, QUESTION, budget=BUDGET)
    title = document.children[0]
    taken = {section.start_line for section in answer.sections}
    below = sum(one.token_count for one in title.children)
    sections = [(title.name, title.token_count - below, title.start_line)]
    sections += [(one.name, one.token_count, one.start_line) for one in title.children]
    lines = list(_wrapped(answer.content))
    height = TOP + max(ROW * len(sections), LINE * len(lines)) + MARGIN
    parts = [
        _text(MARGIN, 32, f"{FILE}, {document.token_count:,} tokens", 'font-weight="bold"'),
        _text(MARGIN, 54, f"{len(sections)} sections", f'fill="{PALE}"'),
        _text(ANSWER_LEFT, 32, f"“{QUESTION}”", 'font-weight="bold"'),
        _text(ANSWER_LEFT, 54, f"the answer, {answer.total_tokens:,} tokens", f'fill="{TAKEN}"'),
        *_bars(sections, taken),
        *(
            _text(ANSWER_LEFT, TOP + 14 + LINE * at, line, f'style="{STYLE}"')
            for at, line in enumerate(lines)
        ),
    ]
    label = f"{answer.total_tokens} of the {document.token_count} tokens of {FILE} answer: {QUESTION}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img" '
        f'font-family="system-ui,sans-serif" font-size="13" fill="{INK}" aria-label="{escape(label)}">\n'
        f'<rect x="1" y="1" width="{WIDTH - 2}" height="{height - 2}" rx="8" fill="#fff" stroke="#d1d9e0"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _bars(sections: list[tuple[str, int, int]], taken: set[int]) -> Iterator[str]:
    largest = max(tokens for _, tokens, _ in sections)
    for at, (name, tokens, line) in enumerate(sections):
        y, length = TOP + ROW * at, max(2, round(BAR_WIDTH * tokens / largest))
        color = TAKEN if line in taken else LEFT_OUT
        weight = 'font-weight="bold"' if line in taken else ""
        yield _text(MARGIN, y + 14, textwrap.shorten(name, MAX_NAME, placeholder="…"), weight)
        yield f'<rect x="{BAR_LEFT}" y="{y + 2}" width="{length}" height="16" rx="2" fill="{color}"/>'
        yield _text(BAR_LEFT + length + 6, y + 14, f"{tokens:,}", weight)
        if line in taken:
            end = ANSWER_LEFT - 14
            start, middle = BAR_LEFT + length + 36, y + 10
            arrow = f"M{start} {middle}H{end}m-6 -5l7 5l-7 5"
            yield f'<path d="{arrow}" fill="none" stroke="{TAKEN}" stroke-width="2"/>'


def _wrapped(content: str) -> Iterator[str]:
    """Return the lines of an answer, those that are too long in several."""
    for paragraph in content.strip().split("\n\n"):
        yield from textwrap.wrap(paragraph, ANSWER_COLUMNS)
        yield ""


def _text(x: int, y: int, text: str, attributes: str = "") -> str:
    return f'<text x="{x}" y="{y}"{attributes and " " + attributes}>{escape(text, quote=False)}</text>'
