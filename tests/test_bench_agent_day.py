"""The benchmark of an agent's day, on a small day over the bundled documents."""

import asyncio
import sys

import pytest

from benchmarks.agent_day.__main__ import HERE, figures
from benchmarks.agent_day.player import Played, Player, Probed
from benchmarks.agent_day.systems import Npl
from benchmarks.agent_day.tasks import DAYS, Documents, read_day
from npl_index.tokens.estimated import estimator
from npl_mcp.config.settings import corpus_folder

Day = tuple[dict[str, list[Played]], list[Probed]]


@pytest.fixture(scope="module")
def small_day() -> Day:
    """The results of the tasks over the bundled documents by day, and the answers to absent topics."""
    return asyncio.run(_play())


async def _play() -> Day:
    documents, day = Documents.read(corpus_folder()), read_day(HERE / "corpus.toml")
    topics = day.absent["corpus"]
    assert documents.faults(day.tasks) == []
    assert documents.present(topics) == []
    count = estimator("o200k_base").count
    player = Player(documents, count)
    async with Npl.started([sys.executable, "-m", "npl_mcp"], documents) as server:
        days = {}
        for name in DAYS:
            days[name] = [await player.play(task, name, server) for task in day.tasks]
        return days, await player.absent(topics, server)


@pytest.mark.thorough
@pytest.mark.parametrize(("day", "least", "listed"), [("lay", 11, 8), ("terms", 11, 10), ("topics", 11, 11)])
def test_tasks_are_held(small_day: Day, day: str, least: int, listed: int) -> None:
    """The floors lie a little below the measured figures; tokens are bounded generously."""
    sums = figures(small_day[0][day])
    assert sums["held"] >= least
    assert sums["listed"] >= listed
    assert sums["calls"] <= 20
    assert sums["tokens"] <= 10_000


def test_the_tasks_about_other_styles_fit_their_documents() -> None:
    """Each label is a section, and each solution is in it."""
    documents, day = Documents.read(HERE / "documents"), read_day(HERE / "styles.toml")
    assert documents.faults(day.tasks) == []
    for folder, topics in day.absent.items():
        assert Documents.read(HERE / "documents" / folder).present(topics) == []


@pytest.mark.thorough
def test_what_is_absent_costs_little(small_day: Day) -> None:
    """A word that stands nowhere brings no text; other topics bring some."""
    probed = small_day[1]
    assert not probed[-1].found, "zzzqqq frobnicate"
    assert sum(answer.tokens for answer in probed) <= 1_000 * len(probed)
