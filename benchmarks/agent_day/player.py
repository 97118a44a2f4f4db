"""The rule that plays an agent.

It asks. If the whole text of the answer holds what the task needs, it stops; else, if a right section is in
the answer or among its pointers, it reads that; else it asks again in the words of the documents, and reads.
If what it needs is still not held, it reads one more right section, if the answer lists one, and stops. That
is kinder than life: the rule never reads a wrong section.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from benchmarks.agent_day.tasks import Documents, Phrasing, Place, Task

MOST_READS = 2


@dataclass(frozen=True)
class Hit:
    """A section in an answer, or a pointer to one.

    :param handle: what reading it takes.
    :param places: what it means.
    """

    handle: str
    places: frozenset[Place]


@dataclass(frozen=True)
class Answer:
    """What came back.

    :param arguments: of the call.
    :param hits: in the order in which they should be read: pointers come before sections of the text, since
        the text of these is there.
    """

    arguments: dict[str, Any]
    text: str
    hits: Sequence[Hit] = ()

    @property
    def call(self) -> str:
        """The arguments as they are sent."""
        return json.dumps(self.arguments, ensure_ascii=False)


class System(Protocol):
    """What an agent asks."""

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

    :param first: the first answer held what was needed.
    :param listed: it did, or a right section was in its text or among its pointers.
    :param held: what was needed was held at the end.
    """

    id: str
    tokens: int = 0
    first: bool = False
    listed: bool = False
    held: bool = False
    answers: list[Answer] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """How many calls were made."""
        return len(self.answers)


@dataclass
class Player:
    """Plays tasks.

    :param count: counts tokens.
    """

    documents: Documents
    count: Any

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
            for _ in range(MOST_READS):
                if played.held or not hits:
                    break
                hit = hits.pop(0)
                self._take(await system.read(hit, phrasing), task, played)
                known = [label for label in right if label & hit.places]
                hits.sort(key=lambda other: any(label & other.places for label in known))
                hits = [other for other in hits if other.handle != hit.handle]
            if played.held or played.calls > 1:
                break
        return played

    def _take(self, answer: Answer, task: Task, played: Played) -> None:
        played.answers.append(answer)
        played.tokens += self.count(answer.call) + self.count(answer.text)
        played.held = task.is_held("\n".join(one.text for one in played.answers))
