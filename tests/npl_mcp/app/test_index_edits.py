"""After any edits the index equals a new index of the same files, bit for bit."""

import os
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from npl_index.index.collection import MAX_CANDIDATES
from npl_index.index.driver import driver
from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from tests.conftest import THOROUGH, cases
from tests.npl_mcp.app.many import index_file, put, write
from tests.tools import npl_load_tailored, npl_section_index

WORDS = cases("npl_mcp/app/index_edits")
FILES = 60
SETS = (".", "part1", "part1, part2", "part*/page*.md", "other:.")
"""All documents of a root, and some of them."""

EDITS = 1_000 if THOROUGH else 80
ASKED_EVERY = 10
QUESTIONS = ("valve and pump", "how cold may soil be", "compost water", "spare words of a hose", "tank9")

STATES = cases("npl_mcp/app/index_states")["states"]
CANDIDATES = "SELECT file.path FROM word JOIN file ON document = word.rowid WHERE word MATCH ? ORDER BY path"


def page(chance: Random) -> str:
    """Return a random page of a few sections."""
    lines = []
    for _ in range(chance.randint(1, 5)):
        lines.append(f"{'#' * chance.randint(1, 3)} {' '.join(chance.choices(WORDS, k=2))}")
        words = " ".join(chance.choices(WORDS, k=chance.randint(0, 30)))
        lines += ["", f"{words} tank{chance.randrange(40)}", ""]
    return "\n".join(lines)


def edit(root: Path, chance: Random) -> None:
    """Write, move or remove a random file."""
    path = root / f"part{chance.randrange(4)}" / f"page{chance.randrange(FILES // 4)}.md"
    act = chance.random()
    if act < 0.15:
        path.unlink(missing_ok=True)
    elif act < 0.25 and path.exists():
        path.replace(path.with_name(f"page{chance.randrange(FILES // 4)}.md"))
    else:
        path.write_text(page(chance), encoding="utf-8")


def contents(settings: Settings) -> dict[str, list[Any]]:
    """Return an index's contents by paths and texts, since its numbers are its own."""
    with closing(driver().connect(str(index_file(settings)))) as connection:
        states = {name: connection.execute(query).fetchall() for name, query in STATES.items()}
        terms = [term for term, *_ in states["statistics"]]
        for term in terms:
            for match in (f'"{term}"', f'name : "{term}"'):
                states[match] = connection.execute(CANDIDATES, (match,)).fetchall()
    return states


def scores(app: App, file: str) -> list[object]:
    """Return the exact scores of some questions."""
    asked = [{"context": question, "topics": ["hose"], "file": file} for question in QUESTIONS]
    answers = [npl_load_tailored(app, explain=True, token_budget=900, **one) for one in asked]
    rows = [answer.value.ranking or () for answer in answers]
    return [[(row.file, row.selector, row.score, row.content) for row in ranking] for ranking in rows]


def test_an_edited_index_is_one_made_afresh(settings: Settings, tmp_path: Path) -> None:
    """Questions about other sets, and restarts, change no score of any set either."""
    root, chance = tmp_path / "many", Random(7)
    for part in range(4):
        (root / f"part{part}").mkdir(parents=True)
    for _ in range(FILES):
        edit(root, chance)
    write(tmp_path / "other", 7)
    kept = replace(settings, roots=(root, tmp_path / "other"))
    app = App(kept)
    for number in range(EDITS):
        edit(root, chance)
        if number % ASKED_EVERY == 0:
            scores(app, chance.choice(SETS))
        if number % (4 * ASKED_EVERY) == 0:
            app.close()
            app = App(kept)
    later = time.time() + 10
    for path in root.rglob("*.md"):
        os.utime(path, (later, later))
    answers, tokens = [scores(app, file) for file in SETS], npl_section_index(app, file=".")
    app.close()
    afresh = replace(kept, data_dir=tmp_path / "afresh")
    with closing(App(afresh)) as app:
        assert answers[::-1] == [scores(app, file) for file in SETS[::-1]]
        assert tokens == npl_section_index(app, file=".")
    edited, other = contents(kept), contents(afresh)
    assert all(edited[name] for name in STATES)
    assert edited == other


@pytest.mark.thorough
def test_more_documents_than_candidates(settings: Settings, tmp_path: Path) -> None:
    """The choice of candidates depends neither on other documents nor on the order of indexing."""
    write(tmp_path / "other", 7)
    kept = replace(settings, roots=(tmp_path / "many", tmp_path / "other"))
    for place in reversed(range(MAX_CANDIDATES + 100)):
        put(kept.roots[0] / f"page{place}.md", "# Page\n\nThe valve turns.\n")
        if place % 100 == 0:
            with closing(App(kept)) as app:
                scores(app, ".")
    new = replace(kept, data_dir=kept.data_folder / "new")
    with closing(App(kept)) as app, closing(App(new)) as other:
        scores(app, "other:.")
        assert scores(app, ".") == scores(other, ".")


def test_a_heading_makes_a_candidate(settings: Settings) -> None:
    """Of too many documents with the words of a question, the one with a heading of these words is ranked."""
    root = settings.roots[0]
    for place in range(MAX_CANDIDATES + 10):
        put(root / f"page{place:03}.md", "# Page\n\nThe valve turns when a spring does.\n")
    put(root / "zone.md", "# Spring of the main valve\n\nOil it.\n")
    with closing(App(settings)) as app:
        answer = npl_load_tailored(app, context="which valve spring turns", file=".")
    assert "Oil it." in answer.value.content
