"""Questions besides the tasks: absent topics, and pages by their own titles."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from benchmarks.agent_day.player import Answer, Count, System
from benchmarks.agent_day.tasks import Documents, Phrasing
from npl_index.ranking.collection import IndexedDocument

MOST_PAGES = 60
"""Most pages of a folder that are asked for."""

_FRONT_MATTER = re.compile(r"\A---\n(.*?)^---$", re.DOTALL | re.MULTILINE)
_TITLE = re.compile(r"^title:[ \t]*(.*\S)", re.MULTILINE)


@dataclass(frozen=True)
class Probed:
    """An answer that is checked for one property.

    :param found: it has text of documents, or begins with the page that was asked for.
    """

    question: str
    tokens: int
    found: bool

    @property
    def row(self) -> dict[str, Any]:
        """The same as JSON."""
        return asdict(self)


async def absent(system: System, topics: Mapping[str, str], count: Count) -> list[Probed]:
    """Ask about absent topics."""
    probed = []
    for topic in topics:
        answer = await system.ask(Phrasing(topic))
        probed.append(Probed(topic, answer.cost(count), bool(system.passages(answer))))
    return probed


async def titles(system: System, documents: Documents, count: Count) -> list[Probed]:
    """Ask for pages by their titles, evenly spread over the folder."""
    named = [(title, path) for path, indexed in documents.files.items() if (title := title_of(indexed))]
    step = max(1.0, len(named) / MOST_PAGES)
    probed = []
    for number in range(min(MOST_PAGES, len(named))):
        title = named[int(number * step)][0]
        pages = {path for other, path in named if other.casefold() == title.casefold()}
        answer = await system.ask(Phrasing(title))
        probed.append(Probed(title, answer.cost(count), best_page(answer) in pages))
    return probed


def title_of(indexed: IndexedDocument) -> str | None:
    """Return the title of a page: that of its front matter, else its first heading of level 1."""
    front_matter = _FRONT_MATTER.match(indexed.tree.source)
    if front_matter and (title := _TITLE.search(front_matter[1])):
        return title[1].strip("\"'")
    return next((one.name for one in indexed.tree.sections if one.level == 1), None)


def best_page(answer: Answer) -> str | None:
    """Return the page of the best section in an answer's text; without text, that of its first pointer."""
    if not answer.hits:
        return None
    best = max(answer.hits, key=lambda hit: -1 if hit.score is None else hit.score)
    return min(best.places)[0]


def table(name: str, probed: Mapping[str, Mapping[str, list[Probed]]]) -> str:
    """Write how often something was found, by system and folder, as a table in Markdown."""
    lines = [f"| {name} | folder | asked | found | tokens each |", "|:--|:--|--:|--:|--:|"]
    for system, folders in probed.items():
        every = {**folders, "all": [one for rows in folders.values() for one in rows]}
        for folder, rows in every.items():
            found, tokens = sum(one.found for one in rows), fmean(one.tokens for one in rows)
            lines.append(f"| {system} | {folder} | {len(rows)} | {found} | {tokens:,.0f} |")
    return "\n".join(lines)
