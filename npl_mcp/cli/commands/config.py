"""``npl-mcp config``: which settings are in force, and who said so."""

from __future__ import annotations

import argparse
from operator import attrgetter

from npl_index.choices import Weights
from npl_index.errors import escaped
from npl_mcp.cli.terminal.arguments import JSON, Commands
from npl_mcp.cli.terminal.display import Outcome
from npl_mcp.config.settings import SETTINGS, Settings, given_settings

COMMANDS = Commands()


@COMMANDS.add("config show", JSON)
def _show(given: argparse.Namespace, settings: Settings) -> Outcome:
    """Show every setting: flag, variable, npl.toml or default."""
    said = given_settings(flags=vars(given))
    rows = []
    for name, one in SETTINGS.items():
        value = _plain(attrgetter(one.shown or one.attribute)(settings))
        value = "(not shown)" if one.secret and value is not None else value
        rows.append(
            {"name": name, "value": value, "source": said[name].source if name in said else "default"}
        )
    shown = [(str(row["name"]), _text(row["value"]), str(row["source"])) for row in rows]
    widths = [max(len(row[column]) for row in shown if len(row[column]) <= 40) for column in (0, 1)]
    table = (f"{name:{widths[0]}}  {value:{widths[1]}}  {source}" for name, value, source in shown)
    return Outcome("\n".join(table), rows)


def _plain(value: object) -> object:
    """Return a value as JSON can hold it."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Weights):
        return [value.name, value.content, value.topic]
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def _text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value)) or "-"
    if isinstance(value, bool):
        return "on" if value else "off"
    return "-" if value is None else escaped(str(value))
