"""Settings and flags of earlier versions: a warning for one minor version, never a refusal to start."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import cache

REMOVED_SETTINGS: Mapping[str, str] = {
    "worklog-files": "worklogs are in the database; npl-worklog read --json prints their entries",
}
"""The replacement of each removed setting, a sentence without a full stop, by its key in ``npl.toml``.

The key is also its flag of the servers and, after ``NPL_``, its variable.
"""


@cache
def warn(label: str, advice: str) -> None:
    """Write a warning to standard error, once in a process.

    :param label: the setting at its source, e.g. ``--worklog-files``.
    """
    sys.stderr.write(f"npl: {label} has no effect: {advice}\n")


class RemovedFlag(argparse.Action):
    """A flag without effect, which writes its advice as a warning.

    :param nargs: 0 for a flag without a value.
    """

    def __init__(
        self, option_strings: Sequence[str], dest: str, advice: str, nargs: int | str | None = None
    ) -> None:
        suppress = argparse.SUPPRESS
        super().__init__(option_strings, dest, nargs, default=suppress, help=suppress)
        self._advice = advice

    def __call__(self, _parser: object, _given: object, _value: object, flag: str | None = None) -> None:
        """Write the warning."""
        warn(str(flag), self._advice)
