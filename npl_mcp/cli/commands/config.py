"""``npl-mcp config``: the settings in force and their sources."""

from __future__ import annotations

import argparse
from operator import attrgetter

from npl_index.choices import Weights
from npl_index.errors import escaped
from npl_mcp.cli.terminal.arguments import JSON, Commands
from npl_mcp.cli.terminal.display import CommandResult
from npl_mcp.config.settings import SETTINGS, Settings, given_settings

COMMANDS = Commands()


@COMMANDS.add("config show", JSON)
def _show(given: argparse.Namespace, settings: Settings) -> CommandResult:
    """Show every setting with its source: flag, variable, npl.toml or default."""
    sources = given_settings(flags=vars(given))
    rows = []
    for name, setting in SETTINGS.items():
        value = _json_value(attrgetter(setting.shown or setting.attribute)(settings))
        value = "(not shown)" if setting.secret and value is not None else value
        rows.append(
            {"name": name, "value": value, "source": sources[name].source if name in sources else "default"}
        )
    shown = [(str(row["name"]), _cell(row["value"]), str(row["source"])) for row in rows]
    widths = [max(len(row[column]) for row in shown if len(row[column]) <= 40) for column in (0, 1)]
    table = (f"{name:{widths[0]}}  {value:{widths[1]}}  {source}" for name, value, source in shown)
    return CommandResult("\n".join(table), rows)


def _json_value(value: object) -> object:
    if isinstance(value, tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, Weights):
        return [value.name, value.content, value.topic]
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def _cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_cell, value)) or "-"
    if isinstance(value, bool):
        return "on" if value else "off"
    return "-" if value is None else escaped(str(value))
