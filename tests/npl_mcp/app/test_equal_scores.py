"""Equal files give equal scores, after any questions, edits and other indexing."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from npl_index.index.collection import MAX_CANDIDATES
from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from tests.npl_mcp.app.many import WORDS, put, text, write
from tests.tools import npl_load_tailored

pytestmark = pytest.mark.thorough

FILES = 24

SETS = (".", "part1", "part1, part2", "part*/page00*.md", "part1/page001.md, part3/page003.md")
"""All documents of a root, and some of them."""


@pytest.fixture
def kept(settings: Settings, tmp_path: Path) -> Settings:
    """Settings with a folder that is many files, and a second root."""
    write(tmp_path / "other", 7)
    return replace(settings, roots=(tmp_path / "many", tmp_path / "other"))


def scores(app: App, file: str) -> list[object]:
    """Return the exact scores of some questions."""
    asked = [("care of the valve", ()), ("oil a spon of number7", ("Page 7",)), ("pump turning", ())]
    answers = [
        npl_load_tailored(app, context=question, topics=topics, file=file, explain=True, token_budget=900)
        for question, topics in asked
    ]
    return [
        [(row.file, row.selector, row.score, row.content) for row in answer.value.ranking]
        for answer in answers
    ]


def page(root: Path, number: int) -> Path:
    return root / f"part{number % 5}" / f"page{number:03}.md"


def edit(root: Path, chance: Random) -> None:
    words = " ".join(chance.choices((*WORDS, "anvil", "number7"), k=9))
    put(page(root, chance.randrange(FILES)), f"# {words}\n\n{words}\n\n## Care\n\n{words}\n", chance.random())


def remove(root: Path, chance: Random) -> None:
    page(root, chance.randrange(FILES)).unlink(missing_ok=True)


def add(root: Path, chance: Random) -> None:
    put(root / f"part{chance.randrange(5)}" / f"new{chance.randrange(4)}.md", f"# Valve\n\n{text(7)}\n")


CHANGES: tuple[Callable[[Path, Random], None], ...] = (edit, remove, add)


def walk(settings: Settings, chance: Random) -> App:
    """Edit, ask and restart at random, then restore the folder as :func:`write` makes it."""
    root = settings.roots[0]
    app = App(settings)
    for _ in range(12):
        chance.choice(CHANGES)(root, chance)
        step = chance.randrange(4)
        if step == 0:
            app.close()
            app = App(settings)
        else:
            scores(app, chance.choice((*SETS, "part2", "other:.")))
    for path in sorted(root.rglob("new*.md")):
        path.unlink()
    numbers = list(range(FILES))
    chance.shuffle(numbers)
    for number in numbers:
        put(page(root, number), f"# Page {number}\n\n{text(number)}\n", 50)
        if chance.random() < 0.2:
            scores(app, chance.choice(SETS))
    return app


@pytest.mark.parametrize("seed", range(10))
def test_the_past_changes_no_score(kept: Settings, seed: int) -> None:
    """Each set has the scores of a server without a past."""
    write(kept.roots[0], FILES)
    chance = Random(seed)
    app = walk(kept, chance)
    sets = list(SETS)
    chance.shuffle(sets)
    for file in sets:
        with closing(App(replace(kept, data_dir=kept.data_folder / f"{SETS.index(file)}"))) as new:
            assert scores(app, file) == scores(new, file), file
    app.close()


def test_more_documents_than_candidates(kept: Settings) -> None:
    """The choice of candidates depends neither on other documents nor on the order of indexing."""
    root, number = kept.roots[0], MAX_CANDIDATES + 100
    for place in reversed(range(number)):
        put(page(root, place), "# Page\n\nThe valve turns.\n")
        if place % 100 == 0:
            with closing(App(kept)) as app:
                scores(app, ".")
    new = replace(kept, data_dir=kept.data_folder / "new")
    with closing(App(kept)) as app, closing(App(new)) as other:
        scores(app, "other:.")
        assert scores(app, ".") == scores(other, ".")
