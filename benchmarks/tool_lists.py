"""Tokens of npl's lists of tools, which every conversation pays.

Usage: ``python -m benchmarks.tool_lists [--readme]``

The figures are stored in ``tool_lists.json``. ``--readme`` writes the sentence about them into the project's
README.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from fastmcp import Client

from benchmarks.common import best_counter, put_between, settings
from npl_mcp.server.server import create_server

KEPT = Path(__file__).with_suffix(".json")
README = KEPT.parent.parent / "README.md"
MARKS = ("<!-- tool lists -->", "<!-- /tool lists -->")

LISTS: dict[str, dict[str, object]] = {
    "reading": {"domains": ("reading",)},
    "all": {},
    "small": {"small_list": True},
}
"""Settings that list other tools."""

Lists = Mapping[str, Mapping[str, int]]


async def measure(count: Callable[[str], int]) -> Lists:
    """Return the number of listed tools and their tokens, for each of :data:`LISTS`."""
    lists = {}
    for name, changes in LISTS.items():
        with TemporaryDirectory() as folder:
            served = settings(Path(folder), data_dir=Path(folder), **changes)
            async with Client(create_server(served)) as client:
                tools = [
                    tool.model_dump(mode="json", by_alias=True, exclude_none=True)
                    for tool in await client.list_tools()
                ]
        text = json.dumps({"tools": tools}, separators=(",", ":"), ensure_ascii=False)
        lists[name] = {"tools": len(tools), "tokens": count(text)}
    return lists


def sentence(lists: Lists) -> str:
    """Return README's sentence about the lists."""
    reading, every, small = (lists[name] for name in LISTS)
    return (
        f"`--domains reading` lists {reading['tools']} tools in {reading['tokens']:,} tokens; "
        f"without it all {every['tools']} take {every['tokens']:,}.\n"
        f"`--small-list` has {small['tools']} tools in {small['tokens']:,} tokens: `search`, the two section "
        "tools, one that finds the others, and one that calls them.\n"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the lists, store the figures and print the sentence."""
    parser = argparse.ArgumentParser(prog="benchmarks.tool_lists", description=__doc__.split("\n")[0])
    parser.add_argument("--readme", action="store_true", help="write the sentence into README")
    given = parser.parse_args(arguments)
    lists = asyncio.run(measure(best_counter().count))
    KEPT.write_text(json.dumps(lists, indent=1) + "\n", encoding="utf-8")
    print(sentence(lists), end="")
    if given.readme:
        put_between(README, MARKS, sentence(lists))
    return 0


if __name__ == "__main__":
    sys.exit(main())
