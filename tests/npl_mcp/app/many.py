"""Folders of many small files, and answers about them."""

import os
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from npl_index.index.database import NAME
from npl_mcp.app.app import App
from npl_mcp.app.document_sets import BACKGROUND_BYTES
from npl_mcp.config.settings import Settings
from tests.tools import npl_load_tailored

WORDS = ("pump", "valve", "sieve", "ladle", "spoon")


def write(root: Path, files: int) -> None:
    """Write files with a section of their own each, long ago."""
    for number in range(files):
        put(root / f"part{number % 5}" / f"page{number:03}.md", f"# Page {number}\n\n{text(number)}\n")


def large(settings: Settings, root: Path, files: int) -> Settings:
    """Return settings with a folder that several processes index, in the background."""
    for number in range(files):
        body = f"## Care of the valve {number}\n\nOil the valve of number{number}.\n\n## Table {number}\n\n"
        lines = (BACKGROUND_BYTES // files + 1_000) // 39 * "a line of words about pumps and sieves\n"
        put(root / f"page{number:02}.md", f"# Page {number}\n\n{body}{lines}", time.time() - 1e9)
    return replace(settings, roots=(root,))


def text(number: int) -> str:
    word = WORDS[number % len(WORDS)]
    return f"The {word} of number{number} turns {word}s.\n\n## Care of page {number}\n\nOil the {word}."


def put(path: Path, content: str, age: float = 100) -> None:
    """Write a file that looks as if it was written a while ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    then = time.time() - age
    os.utime(path, (then, then))


def told(app: App) -> list[object]:
    """Return what an application says of the whole folder."""
    lines: list[object] = []
    for question in ("care of the valve", "oil a spoon of number7", "pump sieve"):
        answer = npl_load_tailored(app, context=question, file=".", explain=True, token_budget=500).value
        lines += [answer.content, answer.ranking]
    return lines


def said(settings: Settings) -> list[object]:
    """Return what an application says that is started for it."""
    with closing(App(settings)) as app:
        return told(app)


def fresh(settings: Settings) -> list[object]:
    """Return what an application says that remembers nothing."""
    return said(replace(settings, cache_mode="memory"))


def assert_indexed(settings: Settings) -> None:
    """Check that a start indexes nothing, and answers as a new index does."""
    with closing(App(settings)) as app:
        assert parsed(app) == 0
        assert told(app) == fresh(settings)


def parsed(app: App) -> int:
    """Count the documents that an application has to index."""
    before = app.state.sets.built
    told(app)
    return app.state.sets.built - before


def index_file(settings: Settings) -> Path:
    return settings.data_folder / NAME


def settings_in(place: Path) -> Settings:
    """Return settings whose documents and data lie below one folder."""
    (place / "work").mkdir(exist_ok=True)
    return Settings(
        cwd=place / "work",
        home=place,
        system=place / "none",
        roots=(place / "many",),
        data_dir=place / "data",
        vocabulary_folders=(),
        warm_up=False,
    )
