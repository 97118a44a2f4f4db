"""What a command did, printed for people or for programs, by all commands that have ``--json``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npl_mcp.cli.terminal.display import Display

PROBLEMS = 1
"""Exit code of a command that found problems."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command did.

    :param text: for people, without the last line end.
    :param data: the same for programs, as JSON can hold it.
    :param problems: one line each.
    """

    text: str
    data: object = None
    problems: Sequence[str] = ()

    def write(self, display: Display, *, as_json: bool = False) -> int:
        """Write the text or the data to standard output, and the problems to standard error.

        :returns: the exit code.
        """
        for problem in self.problems:
            display.note(problem)
        if as_json:
            display.data(self.data, "json")
        else:
            display.text(f"{self.text}\n")
        return PROBLEMS if self.problems else 0


def counted(problems: Sequence[str]) -> str:
    """Return the number of problems in words."""
    return "1 problem" if len(problems) == 1 else f"{len(problems) or 'no'} problem{'s' if problems else ''}"
