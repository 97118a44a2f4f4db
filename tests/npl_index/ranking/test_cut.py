"""Which of the ranked sections are returned."""

from __future__ import annotations

from npl_index.ranking.cut import cut
from tests.npl_index.ranking.test_scoring import ONE, ask, names


def test_the_cut_keeps_the_best() -> None:
    """What is returned are the first hits, few of them, and with a budget at least as many."""
    hits = ask("agent definition of a table list")
    few, more = cut(hits, ONE), cut(hits, ONE, generous=True)
    assert few == hits[: len(few)]
    assert 0 < len(few) <= len(more) <= len(hits)
    assert set(few) <= set(more)


def test_a_bare_heading_gives_way_to_its_sections() -> None:
    """A heading without text of its own is not returned; what stands below it is."""
    hits = ask("formatting")
    assert "Formatting" in names(hits)
    assert names(cut(hits, ONE))[0] == "Table Formatting"


def test_named_topics_survive_the_cut() -> None:
    """A section whose heading is a topic the caller named is returned, however good another one is."""
    topics = ("agent declaration", "definition list", "runtime environment", "table formatting")
    hits = ask("corner marks with name and type of an agent declaration", *topics)
    wanted = {"Agent Declaration", "Definition List", "Runtime Environment", "Table Formatting"}
    assert wanted <= set(names(cut(hits, ONE)))


def test_cutting_nothing() -> None:
    """Without hits nothing is returned."""
    assert cut([], ONE) == []
