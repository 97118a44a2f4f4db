"""Settings and flags of earlier versions: a warning for one minor version, never a refusal to start."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True, slots=True)
class RemovedSetting:
    """A setting of an earlier version.

    :param advice: the replacement, as a sentence without a full stop.
    :param variable: its variable in the environment.
    :param switch: whether its flag had no value.
    """

    advice: str
    variable: str = ""
    switch: bool = False


REMOVED_SETTINGS: Mapping[str, RemovedSetting] = {
    "worklog-files": RemovedSetting(
        "worklogs are in the database; npl-mcp worklog export writes them as files"
    ),
}
"""Removed settings, by name: the key in ``npl.toml`` and the flag of the servers."""


@cache
def warn(label: str, advice: str) -> None:
    """Write a warning to standard error, once in a process.

    :param label: the setting at its source, e.g. ``--worklog-files``.
    """
    sys.stderr.write(f"npl: {label} has no effect: {advice}\n")


class RemovedFlag(argparse.Action):
    """A flag without effect, which writes its advice as a warning; see :func:`removed_flag`."""

    def __init__(
        self, option_strings: Sequence[str], dest: str, advice: str, nargs: int | str | None
    ) -> None:
        suppress = argparse.SUPPRESS
        super().__init__(option_strings, dest, nargs, default=suppress, help=suppress)
        self._advice = advice

    def __call__(self, _parser: object, _given: object, _value: object, flag: str | None = None) -> None:
        """Write the warning."""
        warn(str(flag), self._advice)


def removed_flag(advice: str, *, switch: bool) -> dict[str, Any]:
    """Return the keyword arguments of ``add_argument`` for a removed flag."""
    return {"action": RemovedFlag, "advice": advice, "nargs": 0 if switch else None}
