"""``npl-load init-claude``: versioned prompts in a file of instructions, added and updated; and the hook."""

from __future__ import annotations

import errno
import json
import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from npl_index.answer.values import as_dict
from npl_mcp.app.file_view import Files
from npl_mcp.cli.commands.hook import EVENT
from npl_mcp.cli.commands.prompt_versions import appended, compared, renewed
from npl_mcp.cli.commands.targets import opened_target, with_files
from npl_mcp.cli.terminal.arguments import Commands, option, switch
from npl_mcp.cli.terminal.display import NOT_THERE, Display

CURRENT, CHANGED, BEHIND, LOST = 0, 1, 2, 3
"""Exit codes: nothing to do, file changed, newer prompts available, source not found."""

STATUSES = ("outdated", "missing", "current", "extra", "newer")

MAX_BYTES = 4 << 20
"""Bytes of the file."""

_SETTINGS = ".claude/settings.json"
_COMMAND = "npl-load hook"

COMMANDS = Commands(with_files)


@COMMANDS.add(
    "init-claude",
    option("--target", "FILE", "file of instructions (default ./CLAUDE.md)", default="./CLAUDE.md"),
    option("--prompts", "NAME", "prompts to append", nargs="*", action="extend"),
    option("--update", "A,B", "update or add these sections"),
    switch("--update-all", help="update all outdated sections and add the missing ones"),
    option(
        "--hook",
        "FILE",
        f"add the hook npl-load hook to FILE (default {_SETTINGS})",
        nargs="?",
        const=_SETTINGS,
    ),
    switch("--dry-run", help="print the changes without writing them"),
    switch("--json", help="print the versions as JSON"),
)
def _init_claude(given: Namespace, files: Files, display: Display) -> int:
    """Put versioned prompts into CLAUDE.md and keep them up to date."""
    if given.hook is not None:
        return _add_hook(given, display)
    target: str = given.target
    if not target or "\0" in target:
        given.parser.error("argument --target: no file can have this path; write e.g. ./CLAUDE.md")
    before = _text_of(target)
    rows: list[dict[str, Any]] = as_dict(compared(files, before))
    behind = [row["name"] for row in rows if row["status"] in ("outdated", "missing")]
    if given.update is not None or given.update_all:
        names = [name for part in (given.update or "").split(",") if (name := part.strip())]
        return _update(given, files, display, before, names if given.update else behind)
    if any("installed_version" in row for row in rows):
        _show_versions(rows, display, as_json=given.json)
        return BEHIND if behind else CURRENT
    return _append(given, files, display, before)


def _update(given: Namespace, files: Files, display: Display, before: str, names: Sequence[str]) -> int:
    if not names:
        display.text("No sections to update\n")
        return CURRENT
    data = as_dict(renewed(files, before, names))
    for name in data.get("lost", ()):
        display.say(f"Warning: Source not found for {name}")
    if data.get("unknown"):
        near = f"; near: {', '.join(data['near'])}" if data.get("near") else ""
        display.note(f"no prompt has the section {', '.join(map(repr, data['unknown']))}{near}")
    if not data["changes"] and not given.dry_run:
        display.text("No sections updated\n")
        return LOST if data.get("lost") else NOT_THERE if data.get("unknown") and given.strict else CURRENT
    report = [_change_line(change, "Updated", "Added") for change in data["changes"]]
    return _apply(given, display, data, report, f"Updated {len(report)} section(s) in {given.target}")


def _append(given: Namespace, files: Files, display: Display, before: str) -> int:
    """Append the prompts to the file."""
    data = as_dict(appended(files, before, given.prompts or []))
    for name in data.get("unknown", ()):
        display.say(f"Prompt not found: {name}")
    if data.get("near"):
        display.say(f"near: {', '.join(data['near'])}")
    if not data["changes"]:
        display.text(f"No prompts added to {given.target}\n")
        return NOT_THERE if given.strict else CURRENT
    report = [f"Added {change['name']} to {given.target}" for change in data["changes"]]
    return _apply(given, display, data, report, f"Added {len(report)} prompt(s) to {given.target}")


def _apply(
    given: Namespace, display: Display, data: Mapping[str, Any], report: Sequence[str], total: str
) -> int:
    """Write the changed text and report it, or show the changes of ``--dry-run``."""
    if given.dry_run:
        lines = (_change_line(change, "Would update", "Would add") for change in data["changes"])
        display.text("".join(f"{line}\n" for line in lines))
        return CURRENT
    _replace_file(given.target, data["text"])
    for line in report:
        display.say(line)
    display.text(f"{total}\n")
    return CHANGED


def _change_line(change: Mapping[str, Any], updated: str, added: str) -> str:
    if "before" in change:
        return f"{updated}: {change['name']} ({change['before']} -> {change['after']})"
    return f"{added}: {change['name']} (v{change['after']})"


def _show_versions(rows: Sequence[Mapping[str, Any]], display: Display, *, as_json: bool) -> None:
    counts = {status: sum(row["status"] == status for row in rows) for status in STATUSES}
    if as_json:
        fields = ("name", "source_version", "installed_version", "source_path", "status")
        order = ("current", "outdated", "missing", "extra", "newer")
        sections = [{field: row.get(field) for field in fields} for row in rows]
        display.data({"sections": sections, "summary": {status: counts[status] for status in order}}, "json")
        return
    lines = ["NPL Prompt Version Status", "=" * 60, "", _columns("Section", "Source", "Installed", "Status")]
    lines.append("-" * 60)
    for row in rows:
        status = row["status"].upper() if row["status"] in ("outdated", "missing") else row["status"]
        source, installed = row.get("source_version") or "-", row.get("installed_version") or "-"
        lines.append(_columns(row["name"], source, installed, status))
    summary = ", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status])
    lines += [
        "",
        f"Summary: {summary}",
        "",
        "Use --update <section1,section2> to update specific sections",
        "Use --update-all to update all outdated/missing sections",
        "",
    ]
    display.text("\n".join(lines))


def _columns(name: str, source: str, installed: str, status: str) -> str:
    return f"{name:<25} {source:<10} {installed:<10} {status:<10}"


def _add_hook(given: Namespace, display: Display) -> int:
    """Add the hook to the settings of Claude Code, or to ``.codex/hooks.json``, which has the same form."""
    target: str = given.hook
    try:
        settings = json.loads(_text_of(target) or "{}")
        present = settings.setdefault("hooks", {}).setdefault(EVENT, [])
        if any(_COMMAND in json.dumps(entry) for entry in present):
            display.text(f"{target} has the hook\n")
            return CURRENT
        present.append({"hooks": [{"type": "command", "command": _COMMAND, "timeout": 2}]})
    except (ValueError, AttributeError, TypeError, RecursionError):
        given.parser.error(f"argument --hook: {target} is not a JSON object with hooks")
    if given.dry_run:
        display.text(f"Would add the hook to {target}\n")
        return CURRENT
    os.makedirs(os.path.dirname(target) or os.curdir, exist_ok=True)  # noqa: PTH103, PTH120
    _replace_file(target, json.dumps(settings, indent=2, ensure_ascii=False) + "\n")
    display.text(f"Added the hook to {target}; it asks the server that npl-mcp-server start runs\n")
    return CHANGED


def _text_of(target: str) -> str:
    """Return the text of a file with line feeds as line ends; ``""`` if the file does not exist."""
    try:
        data = b""
        if os.path.exists(target):  # noqa: PTH110
            with opened_target(target) as (folder, name):
                data = folder.read(name, MAX_BYTES)[0]
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise OSError(errno.EILSEQ, "it is not UTF-8", target) from None
    except OSError as error:
        raise OSError(error.errno, error.strerror, target) from None


def _replace_file(path: str, text: str) -> None:
    """Replace a file in one step, with its line ends and mode."""
    data = text.encode("utf-8")
    with opened_target(path) as (folder, name):
        if folder.stat(name) and b"\r\n" in folder.read(name, MAX_BYTES)[0]:
            data = data.replace(b"\n", b"\r\n")
        folder.replace(name, data)
