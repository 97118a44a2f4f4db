"""A server whose pages all show something, filled by calls of tools as agents make them."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import folders
from tests.conftest import cases
from tests.npl_mcp.http.http_server import Running, call, serving

DOCS = Path(__file__).parents[1] / "cases" / "browser" / "docs"

HOSTILE = """"'><img src=x onerror=alert(1)>{{ 7 * 7 }} &lt;b&gt; %2e#?;"""
"""May be a file's name."""

PROJECT = {
    ".mdt-config.toml": '[project]\nname = "Harbour"\ncode = "HBR"\nid = "harbour"\nticketsPath = "crs"\n'
}

_WEEK = "In week {0} barrel {0} is turned and its bung is driven home.\n\n"
_PART = "## Part {0}\n\nThe siphon lifts water over edge {0}. {1}\n\n"
_STEP = "\n## Step {0}\n\n{1}\n"
LONG = {
    "guide/steps.md": "# Steps\n"
    + "".join(_STEP.format(number, "Turn the valve slowly. " * number) for number in range(1, 40)),
    "cellar/barrels.md": f"# Barrels\n\n## Turning barrels\n\n{''.join(map(_WEEK.format, range(40)))}"
    "## Filling\n\nFill it to the bung.\n",
    "siphons.md": "# Siphons\n\n" + "".join(_PART.format(at, "Water runs. " * 30) for at in range(12)),
}


@dataclass
class Site:
    """The server.

    :param docs: the folder it serves.
    """

    server: Running
    docs: Path

    @property
    def url(self) -> str:
        return self.server.state.url or ""

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """Return the data of a tool's answer."""
        answer = call(self.server, tool, arguments)
        assert answer.status == 200, answer.data
        return answer.data["data"]

    def fill(self, *groups: str) -> None:
        """Call tools: those of agents at work, of change requests, of a word everywhere, of questions."""
        calls = cases("browser/calls")
        for tool, arguments in (row for group in groups for row in calls[group]):
            self.call(tool, **arguments)


@contextmanager
def running(folder: Path, *flags: str, **variables: str) -> Iterator[Site]:
    docs = folder / "docs"
    shutil.copytree(DOCS, docs)
    (docs / "crs").mkdir()
    hostile = {f"{HOSTILE}.md": f"# {HOSTILE}\n\n## {HOSTILE}\n\n{HOSTILE}\n"}
    folders.fill(docs, {**PROJECT, **LONG, **hostile})
    with serving(folder, "--root", str(docs), "--log-calls", "contexts", *flags, **variables) as server:
        site = Site(server, docs)
        site.fill("stores", "changes", "search", "calls")
        yield site
