"""``npl-mcp index`` and ``npl-mcp cache``: folders are indexed ahead, shown, checked and let go."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from npl_index.errors import DocumentNotFoundError
from npl_mcp.cli.terminal.arguments import JSON, add
from npl_mcp.cli.terminal.outcome import Outcome, counted
from npl_mcp.config.arguments import path
from npl_mcp.config.settings import Settings
from npl_mcp.core.building import SMALL
from npl_mcp.core.kept_sets import Kept, index_ahead, kept_sets
from npl_mcp.core.segment_store import SegmentStore

STEPS = ("check", "clear")


def add_kept(commands: Any) -> None:
    """Add the commands to those of ``npl-mcp``.

    :param commands: what :meth:`argparse.ArgumentParser.add_subparsers` returned.
    """
    index = commands.add_parser("index", help="index folders ahead; servers with these roots need not")
    index.add_argument("folders", nargs="*", type=path, metavar="FOLDER", help="by default the roots")
    cache = commands.add_parser("cache", help="show which folders are kept indexed")
    about = "check: whether they can be used; clear: remove them; servers index again what they need"
    cache.add_argument("step", nargs="?", choices=STEPS, metavar="|".join(STEPS), help=about)
    for one in (index, cache):
        add(one, JSON)


def run_index(given: argparse.Namespace, settings: Settings) -> Outcome:
    """Index folders.

    :raises NPLError: a folder cannot be indexed, or nothing is kept with these settings.
    """
    for folder in given.folders:
        if not folder.is_dir():
            raise DocumentNotFoundError(f"{folder} is not a folder", hint="name an existing folder")
    settings = replace(settings, roots=tuple(given.folders) or settings.roots)
    try:
        done = index_ahead(settings)
    except DocumentNotFoundError as error:
        names = ", ".join(map(str, settings.roots))
        raise DocumentNotFoundError(f"{names}: {error.message}", hint="name another folder") from None
    small = "not kept" if done.files >= SMALL else "too few files to be kept"
    kept = f"{_size(done.size)} kept in {settings.data_folder}" if done.size else small
    before = f", {done.files - done.built:,} were" if done.built < done.files else ""
    found = f"{done.files:,} files with {done.sections:,} sections"
    data = {
        "files": done.files,
        "sections": done.sections,
        "indexed": done.built,
        "seconds": round(done.seconds, 3),
        "bytes": done.size,
        "unreadable": done.unreadable,
    }
    text = f"{found}: {done.built:,} indexed{before}, {done.seconds:.1f} s; {kept}"
    return Outcome(text, data, done.unreadable)


def run_cache(given: argparse.Namespace, settings: Settings) -> Outcome:
    """Show what is kept, check it, or remove it."""
    store = SegmentStore(settings.data_folder, settings.index_bytes)
    try:
        sets = list(kept_sets(store))
        problems = [f"{one.name}: {problem}" for one in sets for problem in one.problems]
        size = sum(one.row.size for one in sets)
        total = f"{len(sets)} sets, {_size(size)} in {store.folder}"
        if given.step == "clear":
            store.clear()
            text, problems = f"removed: {total}", []
        elif given.step == "check":
            problems += store.problems()
            text = f"checked: {total}: {counted(problems)}"
        else:
            text = "\n".join([*map(_line, sets), total])
        return Outcome(text, _data(store, sets, size, problems), problems)
    finally:
        store.close()


def _data(store: SegmentStore, sets: Sequence[Kept], size: int, problems: Sequence[str]) -> dict[str, Any]:
    rows = [
        {
            "name": one.name,
            "files": one.files,
            "sections": one.sections,
            "bytes": one.row.size,
            "used": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(one.row.used_at // 10**9)),
        }
        for one in sets
    ]
    return {"folder": str(store.folder), "bytes": size, "sets": rows, "problems": problems}


def _line(one: Kept) -> str:
    used = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.row.used_at / 1e9))
    size = _size(one.row.size)
    return f"{one.files:>9,} files {one.sections:>11,} sections {size:>9}  used {used}  {one.name}"


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
