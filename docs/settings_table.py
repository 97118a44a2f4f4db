"""The table of SETTINGS.md, from the declarations of the settings."""

from __future__ import annotations

from npl_index.choices import Weights
from npl_index.library.roots import Limits
from npl_mcp.config.settings import SETTINGS

MARKS = ("<!-- settings -->", "<!-- /settings -->")


def table() -> str:
    """Return the table, as Markdown."""
    rows = ["| setting | variable | default | in a project | meaning |", "|:--|:--|:--|:--|:--|"]
    for name, one in SETTINGS.items():
        option = one.kind.option
        value = one.metavar or option.get("metavar") or r"\|".join(option.get("choices", ()))
        flag = f"--{name} {value}".rstrip() if one.flag else name
        project = "yes" if one.project else ""
        meaning = one.meaning.removesuffix(".")
        rows.append(f"| `{flag}` | `{one.variable}` | {_default(one.default)} | {project} | {meaning} |")
    return "\n".join(rows)


def _default(value: object) -> str:
    if isinstance(value, Limits):
        value = value.max_bytes
    if isinstance(value, Weights):
        value = f"{value.name},{value.content},{value.topic}"
    if not value:
        return ""
    if isinstance(value, int) and value >= 1 << 20:
        return f"{value >> 30} GiB" if value >= 1 << 30 else f"{value >> 20} MiB"
    return f"`{value}`"
