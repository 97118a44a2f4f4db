"""Token counts kept with a set are those of its files, and no text is read for them."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from npl_mcp.tools.contract.responses import as_dict
from tests.conftest import cases
from tests.npl_mcp.app.many import put, write
from tests.npl_mcp.opened_files import opened
from tests.tools import npl_load_tailored, npl_section_index

pytestmark = pytest.mark.thorough

ODD = cases("npl_mcp/app/kept_counts")["odd"]
"""Texts with sections whose beginning or end a token may cross."""

VOCABULARIES = ("o200k_base", "cl100k_base")


@pytest.fixture
def kept(settings: Settings, tmp_path: Path) -> Settings:
    root = tmp_path / "many"
    write(root, 34)
    for name, text in ODD.items():
        put(root / name, text)
    return replace(settings, roots=(root,))


def answer(app: App, **options: Any) -> dict[str, Any]:
    fields: dict[str, Any] = as_dict(npl_section_index(app, format="json", **options))  # type: ignore[arg-type]
    return fields


def sizes(nodes: list[dict[str, Any]]) -> Iterator[object]:
    """Return the tokens of sections and all below them."""
    for node in nodes:
        yield node["selector"], node["token_count"], (node.get("own") or {}).get("token_count")
        yield from sizes(node["children"])


def assert_counts_are_true(app: App) -> None:
    """Check that a set's counts are those of its files, each counted when it is asked for alone."""
    whole = answer(app, file=".", depth=6, token_budget=0)
    total = 0
    for node in whole["sections"]:
        alone = answer(app, file=node["name"])
        assert list(sizes(node["children"])) == list(sizes(alone["sections"]))
        assert (node["token_count"], node["level"]) == (alone["total_tokens"], 0)
        total += alone["total_tokens"]
    assert whole["total_tokens"] == total
    assert whole["total_sections"] == sum(
        answer(app, file=node["name"])["total_sections"] for node in whole["sections"]
    )


def told(app: App) -> list[object]:
    """Return the answers that depend on counts: indices of any depth and kind, and packed budgets."""
    indices: list[dict[str, Any]] = cases("npl_mcp/app/kept_counts")["indices"]
    answers: list[object] = [answer(app, file=".", **options) for options in indices]
    answers += [
        npl_section_index(app, file=".", format="markdown", token_budget=budget) for budget in (200, 9000)
    ]
    for question in ({"context": "oil the valve"}, {"selectors": ["## *"]}):
        for budget in (120, 900):
            reply = npl_load_tailored(app, file=".", token_budget=budget, **question).value  # type: ignore[arg-type]
            answers.append(as_dict(reply))
    return answers


def said(settings: Settings, **changes: Any) -> list[object]:
    with closing(App(replace(settings, **changes))) as app:
        return told(app)


@pytest.mark.parametrize("mode", ["memory", "disk"])
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_counts_are_those_of_the_files(kept: Settings, mode: str, vocabulary: str) -> None:
    settings = replace(kept, cache_mode=mode, vocabulary=vocabulary)
    with closing(App(settings)) as app:
        assert_counts_are_true(app)
        put(kept.roots[0] / "empty.md", "# Full\n\nOf words now.\n\n## And more\n", 50)
        (kept.roots[0] / "signs.md").unlink()
        put(kept.roots[0] / "new" / "a.md", ODD["front.md"], 50)
        assert_counts_are_true(app)
        expected = told(app)
    assert said(settings) == expected


@pytest.mark.parametrize(("vocabulary", "other"), [VOCABULARIES, VOCABULARIES[::-1]])
def test_a_set_that_was_indexed_with_another_vocabulary(kept: Settings, vocabulary: str, other: str) -> None:
    """It is not indexed again; answers equal those of a server that indexed it, also after edits."""
    expected = said(kept, cache_mode="memory", vocabulary=vocabulary)
    said(kept, vocabulary=other)
    with closing(App(replace(kept, vocabulary=vocabulary))) as app:
        assert told(app) == expected
        assert app.state.sets.built == 0
    put(kept.roots[0] / "empty.md", "# Full\n\nOf words now.\n", 50)
    expected = said(kept, cache_mode="memory", vocabulary=vocabulary)
    assert said(kept, vocabulary=vocabulary) == expected
    assert said(kept, vocabulary=other) != expected


@pytest.mark.parametrize("mode", ["memory", "disk"])
def test_a_section_index_of_a_set_reads_no_text(kept: Settings, mode: str) -> None:
    settings = replace(kept, cache_mode=mode)
    app = App(settings)
    answer(app, file=".")
    if mode == "disk":
        app.close()
        app = App(settings)
    with opened() as names:
        for options in ({}, {"depth": 6}, {"filter": {"min_word_count": 8}}):
            assert answer(app, file=".", **options)["sections"]
    assert names == []
    with opened() as names:
        assert answer(app, file="signs.md")["sections"]
    assert names == ["signs.md"]
    app.close()
