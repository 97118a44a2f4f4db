"""``npl-load init-claude``: versioned prompts in a file of instructions, added and updated; and the hook."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace

from npl_index.errors import NPLError
from npl_index.items import versioned
from npl_index.items.loading import Group, load_groups, load_raw, text_of
from npl_mcp.app.file_view import Files
from npl_mcp.cli.commands.hook import EVENT
from npl_mcp.cli.commands.targets import Target, with_files
from npl_mcp.cli.terminal.arguments import Commands, option, switch
from npl_mcp.cli.terminal.display import NOT_THERE, CommandResult, Display

CURRENT, CHANGED, BEHIND, LOST = 0, 1, 2, 3
"""Exit codes: nothing to do, file changed, newer prompts available, source not found."""

STATUSES = ("current", "outdated", "missing", "extra", "newer")

DEFAULT_PROMPTS = ("npl-conventions", "npl-delegation", "npl-load-directive", "npl-scripts", "sqlite-guide")
"""Default prompts for a file without versioned sections; missing ones are skipped."""

_SETTINGS = ".claude/settings.json"
_COMMAND = "npl-load hook"
_TO_UPDATE = ("outdated", "missing")
_HELP = """
Use --update <section1,section2> to update specific sections
Use --update-all to update all outdated/missing sections"""

COMMANDS = Commands(with_files)


@COMMANDS.add(
    "init-claude",
    option("--target", "FILE", "file of instructions (default ./CLAUDE.md)", default="./CLAUDE.md"),
    option("--prompts", "NAME", "prompts to append", nargs="*", action="extend"),
    option("--update", "A,B", "update or add these sections"),
    switch("--update-all", help="update all outdated sections and add the missing ones"),
    option("--hook", "FILE", f"add {_COMMAND} to FILE (default {_SETTINGS})", nargs="?", const=_SETTINGS),
    switch("--dry-run", help="print the changes without writing them"),
    switch("--json", help="print the versions as JSON"),
)
def _init_claude(given: Namespace, files: Files, display: Display) -> CommandResult:
    """Put versioned prompts into CLAUDE.md and keep them up to date."""
    if given.hook is not None:
        return _add_hook(given)
    if not given.target or "\0" in given.target:
        given.parser.error("argument --target: no file can have this path; write e.g. ./CLAUDE.md")
    given.target, sources = Target(given.target), _sources(files)
    text = given.target.text
    rows = versioned.compare(sources, versioned.versioned_sections(text))
    behind = [row.name for row in rows if row.status in _TO_UPDATE]
    if given.update is not None or given.update_all:
        names = [name.strip() for name in given.update.split(",")] if given.update else behind
        return _update(given, versioned.renew(text, sources, filter(None, names)), display)
    if any(row.installed_version is not None for row in rows):
        return _versions(rows, BEHIND if behind else CURRENT)
    return _append(given, files, display)


def _sources(files: Files) -> dict[str, versioned.VersionedSection]:
    """Return the versioned sections of all prompts by name; for equal names the first place counts."""
    kind = files.library.catalog.kind("prompt")
    items = files.own.find_items(kind, "*")
    order = {place.root.label: number for number, place in reversed(list(enumerate(kind.places)))}
    sources: dict[str, versioned.VersionedSection] = {}
    for name in sorted(items, key=lambda name: (order[items[name].label], name)):
        place = files.place(items[name].absolute)
        with suppress(NPLError):  # an unreadable prompt updates nothing
            text = text_of(files.library.read(items[name]))
            for section in versioned.versioned_sections(text).values():
                sources.setdefault(section.name, replace(section, location=place))
    return sources


def _update(given: Namespace, done: versioned.VersionsReport, display: Display) -> CommandResult:
    if not (done.changes or done.lost or done.unknown):
        return CommandResult("No sections to update")
    for name in done.lost or ():
        display.say(f"Warning: Source not found for {name}")
    if done.unknown:
        near = f"; near: {', '.join(done.near)}" if done.near else ""
        display.note(f"no prompt has the section {', '.join(map(repr, done.unknown))}{near}")
    if not done.changes and not given.dry_run:
        code = LOST if done.lost else NOT_THERE if done.unknown and given.strict else CURRENT
        return CommandResult("No sections updated", code=code)
    report = [_change_line(change, "Updated", "Added") for change in done.changes or ()]
    return _write(given, display, done, report, f"Updated {len(report)} section(s) in {given.target}")


def _append(given: Namespace, files: Files, display: Display) -> CommandResult:
    """Append whole prompts to a file without versioned sections."""
    bodies, changes, near = [], list[versioned.Change](), list[str]()
    for name in given.prompts or DEFAULT_PROMPTS:
        loaded = load_groups(files.own, [Group("prompt", name)])
        if loaded.items:
            bodies.append(load_raw(files.own, "prompt", name).content)
            changes.append(versioned.Change(name, None, loaded.items[0].version or "0.0.0"))
        elif given.prompts:
            display.say(f"Prompt not found: {name}")
            near += [similar for missing in loaded.missing or () for similar in missing.near]
    if near:
        display.say(f"near: {', '.join(near)}")
    if not changes:
        code = NOT_THERE if given.strict else CURRENT
        return CommandResult(f"No prompts added to {given.target}", code=code)
    report = [f"Added {change.name} to {given.target}" for change in changes]
    done = versioned.VersionsReport((), versioned.append(given.target.text, bodies), tuple(changes))
    return _write(given, display, done, report, f"Added {len(report)} prompt(s) to {given.target}")


def _write(
    given: Namespace, display: Display, done: versioned.VersionsReport, report: Sequence[str], total: str
) -> CommandResult:
    """Write the changed text and report it, or show the changes of ``--dry-run``."""
    if given.dry_run:
        lines = (_change_line(change, "Would update", "Would add") for change in done.changes or ())
        return CommandResult("\n".join(lines))
    given.target.save(done.text or "")
    for line in report:
        display.say(line)
    return CommandResult(total, code=CHANGED)


def _change_line(change: versioned.Change, updated: str, added: str) -> str:
    if change.before is None:
        return f"{added}: {change.name} (v{change.after})"
    return f"{updated}: {change.name} ({change.before} -> {change.after})"


def _versions(rows: Sequence[versioned.VersionComparison], code: int) -> CommandResult:
    counts = {status: sum(row.status == status for row in rows) for status in STATUSES}
    cells = [("Section", "Source", "Installed", "Status")]
    for row in rows:
        status = row.status.upper() if row.status in _TO_UPDATE else row.status
        cells.append((row.name, row.source_version or "-", row.installed_version or "-", status))
    head, *lines = (f"{name:<25} {source:<10} {own:<10} {status:<10}" for name, source, own, status in cells)
    order = (*_TO_UPDATE, "current", "extra", "newer")
    summary = ", ".join(f"{counts[status]} {status}" for status in order if counts[status])
    title = ("NPL Prompt Version Status", "=" * 60, "", head, "-" * 60)
    text = "\n".join([*title, *lines, "", f"Summary: {summary}", _HELP])
    return CommandResult(text, {"sections": list(map(asdict, rows)), "summary": counts}, code=code)


def _add_hook(given: Namespace) -> CommandResult:
    """Add the hook to the settings of Claude Code, or to ``.codex/hooks.json``, which has the same form."""
    target = Target(given.hook)
    try:
        settings = json.loads(target.text or "{}")
        present = settings.setdefault("hooks", {}).setdefault(EVENT, [])
        if any(_COMMAND in json.dumps(entry) for entry in present):
            return CommandResult(f"{target} has the hook")
        present.append({"hooks": [{"type": "command", "command": _COMMAND, "timeout": 2}]})
    except (ValueError, AttributeError, TypeError, RecursionError):
        given.parser.error(f"argument --hook: {target} is not a JSON object with hooks")
    if given.dry_run:
        return CommandResult(f"Would add the hook to {target}")
    os.makedirs(os.path.dirname(given.hook) or os.curdir, exist_ok=True)  # noqa: PTH103, PTH120
    target.save(f"{json.dumps(settings, indent=2, ensure_ascii=False)}\n")
    text = f"Added the hook to {target}; it asks the server that npl-mcp-server start runs"
    return CommandResult(text, code=CHANGED)
