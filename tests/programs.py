"""Command lines of npl, run in this process."""

import re
from collections.abc import Callable
from typing import NamedTuple

from npl_mcp import __main__
from npl_mcp.cli.commands import load, serving, worklog

PROGRAMS: dict[str, Callable[[list[str]], int]] = {
    "npl-load": load.main,
    "npl-mcp": __main__.main,
    "npl-mcp-server": serving.main,
    "npl-worklog": worklog.main,
}


class Ended(NamedTuple):
    """Exit code, standard output and standard error of a command."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


def masked(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", "<time>", text)
