"""The rule that plays an agent.

It asks. If the text of the answer holds the solution of the task, it stops. Else, if a right section is in
the answer or among its pointers, it reads that section. Else it asks again in the words of the documents, and
reads. If it still lacks the solution, it reads one more right section that an answer lists, and stops. That
is kinder than life: the rule never reads a wrong section.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from benchmarks.agent_day.tasks import Documents, Phrasing, Place, Task

MOST_READS = 2
CONVERSATION = 50_000
"""Tokens of the conversation in which an agent calls."""

Count = Callable[[str], int]
"""Counts the tokens of a text."""


class Hit(NamedTuple):
    """A section in an answer, or a pointer to one.

    :param handle: names it in a read; nothing if the answer has it whole.
    :param places: the sections that it selects.
    :param score: of a section in the text, the best one's is the highest; a pointer has none.
    """

    handle: str | None
    places: frozenset[Place]
    score: float | None = None


@dataclass(frozen=True)
class Answer:
    """An answer to a call.

    :param arguments: of the call.
    :param hits: in the order in which they should be read: pointers come before sections of the text, since
        the text of these is there.
    :param plain: the text as a reader sees it, where it is not sent as plain text.
    """

    arguments: dict[str, Any]
    text: str
    hits: Sequence[Hit] = ()
    plain: str | None = None

    @property
    def call(self) -> str:
        """The arguments as they are sent."""
        return json.dumps(self.arguments, ensure_ascii=False)

    def cost(self, count: Count) -> int:
        """Return the tokens of arguments and text."""
        return count(self.call) + count(self.text)


class System(Protocol):
    """A system that an agent asks."""

    async def ask(self, phrasing: Phrasing) -> Answer:
        """Answer a question."""

    async def read(self, hit: Hit, phrasing: Phrasing) -> Answer:
        """Return the text of a section that an answer listed.

        :param phrasing: the question of that answer.
        """

    def passages(self, answer: Answer) -> str:
        """Return the text of documents in an answer."""


@dataclass
class Played:
    """How a task went.

    :param first: the first answer held the solution.
    :param listed: it did, or a right section was in its text or among its pointers.
    :param held: the solution was held at the end.
    """

    id: str
    tokens: int = 0
    first: bool = False
    listed: bool = False
    held: bool = False
    answers: list[Answer] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """Number of calls."""
        return len(self.answers)

    @property
    def cost(self) -> int:
        """Tokens with those of the conversation, which each call sends again at a tenth of their price."""
        return self.tokens + self.calls * CONVERSATION // 10

    @property
    def letters(self) -> str:
        """F, L and H: first, listed, held; a hyphen if not."""
        pairs = zip("FLH", (self.first, self.listed, self.held), strict=True)
        return "".join(letter if is_so else "-" for letter, is_so in pairs)

    @property
    def row(self) -> dict[str, Any]:
        """The figures as JSON."""
        names = ("id", "tokens", "calls", "first", "listed", "held")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Probed:
    """An answer about an absent topic.

    :param found: it has text of documents.
    """

    question: str
    tokens: int
    found: bool


@dataclass
class Player:
    """Plays tasks."""

    documents: Documents
    count: Count

    async def play(self, task: Task, day: str, system: System) -> Played:
        """Play a task on a day."""
        played = Played(task.id)
        right = self.documents.right(task)
        wanted = frozenset[Place]().union(*right)
        for phrasing in (task.first(day), Phrasing(task.again)):
            answer = await system.ask(phrasing)
            hits = [hit for hit in answer.hits if hit.places & wanted]
            self._take(answer, task, played)
            if played.calls == 1:
                played.first = played.held
                played.listed = played.held or bool(hits)
            hits = [hit for hit in hits if hit.handle]
            for _ in range(MOST_READS):
                if played.held or not hits:
                    break
                hit = hits.pop(0)
                answer = await system.read(hit, phrasing)
                self._take(answer, task, played)
                known = [label for label in right if label & hit.places]
                hits += [one for one in answer.hits if one.places & wanted]
                hits = [one for one in hits if one.handle not in (None, hit.handle)]
                hits.sort(key=lambda one: any(label & one.places for label in known))
            if played.held or played.calls > 1:
                break
        return played

    async def absent(self, topics: Iterable[str], system: System) -> list[Probed]:
        """Ask about absent topics."""
        answers = [(topic, await system.ask(Phrasing(topic))) for topic in topics]
        return [
            Probed(topic, answer.cost(self.count), bool(system.passages(answer))) for topic, answer in answers
        ]

    def _take(self, answer: Answer, task: Task, played: Played) -> None:
        played.answers.append(answer)
        played.tokens += answer.cost(self.count)
        played.held = task.is_held("\n".join(one.plain or one.text for one in played.answers))
