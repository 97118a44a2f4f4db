"""Runs of questions in the background, and their stored results."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from npl_index.errors import InvalidRequestError, NPLError
from npl_index.library.files import Folder
from npl_mcp import __version__
from npl_mcp.app.app import App
from npl_mcp.app.lanes import lane
from npl_mcp.questions.files import Question
from npl_mcp.questions.running import Outcome, ask_one
from npl_mcp.stores.base.errors import StorageError
from npl_mcp.stores.base.folder import FILE, FOLDER, QUESTION_FOLDER, private_folder
from npl_mcp.stores.base.paging import now
from npl_mcp.tools.contract.responses import as_dict

MAX_RUNS = 50
"""Stored runs."""

MAX_BYTES = 64 * 1024 * 1024
"""Bytes of the file of runs."""

RUNNING, DONE, CANCELLED = "running", "done", "cancelled"

_FILE = "runs.jsonl"
_LOCK_SECONDS = 10
"""Time to wait for another process that writes the file."""


@dataclass(slots=True)
class Run:
    """A run of questions, which are asked one after another.

    :param id: time of its start; ids only grow.
    :param file: name of the question file; empty for all files.
    :param total: number of questions.
    :param owner: name of the token that started it; empty without tokens.
    :param version: version of npl.
    :param state: ``running``, ``done``, ``cancelled``, or the reason of its failure.
    :param outcomes: outcomes in the order of the questions.
    """

    id: str
    file: str
    total: int
    owner: str = ""
    version: str = __version__
    state: str = RUNNING
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def held(self) -> int:
        """Number of questions that passed."""
        return sum(outcome.passed for outcome in self.outcomes)

    @property
    def reciprocal_rank(self) -> float | None:
        """Mean of 1 / rank over the questions with right sections, from 0 to 1."""
        answerable = (outcome for outcome in self.outcomes if outcome.question.answers)
        ranks = [1 / outcome.rank if outcome.rank else 0.0 for outcome in answerable]
        return fmean(ranks) if ranks else None

    @property
    def tokens(self) -> int | None:
        """Mean tokens of an answer."""
        return round(fmean(outcome.tokens for outcome in self.outcomes)) if self.outcomes else None

    @classmethod
    def of_dict(cls, stored: dict[str, Any]) -> Run:
        """Return a run from the result of :func:`as_dict`."""
        return cls(**{**stored, "outcomes": [Outcome.of_dict(part) for part in stored["outcomes"]]})


class Runs:
    """The runs of one server: finished runs in a file of its data folder, the others in memory.

    :param folder: data folder of the server.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._going: dict[str, tuple[Run, asyncio.Task[None]]] = {}

    def all(self, owner: str | None = None) -> list[Run]:
        """Return the runs, newest first.

        :param owner: owner of the runs; ``None`` for all runs.
        """
        every = [*(run for run, _ in self._going.values()), *self._stored()]
        by_id = {run.id: run for run in reversed(every)}
        return [by_id[key] for key in sorted(by_id, reverse=True) if owner in (None, by_id[key].owner)]

    def start(self, app: App, questions: Sequence[Question], file: str, owner: str) -> Run:
        """Start a run; to be called on the event loop.

        :param app: the caller's view of the documents.
        :raises InvalidRequestError: a run of this owner is in progress, or there are no questions.
        """
        if not questions:
            raise InvalidRequestError("there are no questions to run", hint="write some")
        if any(run.owner == owner for run, _ in self._going.values()):
            raise InvalidRequestError("a run is in progress", hint="wait for it or cancel it")
        run = Run(now(), file, len(questions), owner)
        self._going[run.id] = (run, asyncio.create_task(self._run(app, run, questions)))
        return run

    def cancel(self, id: str) -> None:
        """Stop a run after its present question."""
        if id in self._going:
            self._going[id][0].state = CANCELLED

    async def _run(self, app: App, run: Run, questions: Sequence[Question]) -> None:
        try:
            for question in questions:
                if run.state != RUNNING:
                    break
                run.outcomes.append(await lane("heavy").run(ask_one, app, question))
            run.state = DONE if run.state == RUNNING else run.state
        except NPLError as error:
            run.state = str(error)
        with suppress(StorageError):
            await lane("light").run(self._store, replace(run))
        del self._going[run.id]

    def _stored(self) -> list[Run]:
        try:
            with Folder.opened(self._folder, QUESTION_FOLDER) as folder:
                lines = folder.read(_FILE, MAX_BYTES)[0].splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _refused(error) from error
        return [Run.of_dict(json.loads(line)) for line in lines]

    def _store(self, run: Run) -> None:
        try:
            private_folder(self._folder)
            with (
                Folder.opened(self._folder, QUESTION_FOLDER, make=True, mode=FOLDER) as folder,
                folder.locked(_LOCK_SECONDS),
            ):
                runs = [*self._stored(), run][-MAX_RUNS:]
                lines = (json.dumps(as_dict(stored), ensure_ascii=False) + "\n" for stored in runs)
                folder.replace(_FILE, "".join(lines).encode("utf-8", "replace"), mode=FILE)
        except OSError as error:
            raise _refused(error) from error


@cache
def runs_of(folder: Path) -> Runs:
    """Return the runs of a data folder."""
    return Runs(folder)


def _refused(error: OSError) -> StorageError:
    return StorageError(f"the runs of questions cannot be read or written: {error.strerror or error}")
