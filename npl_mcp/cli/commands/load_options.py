"""Options shared by commands of ``npl-load``."""

from __future__ import annotations

from npl_mcp.cli.terminal.arguments import argument, option, repeated, whole_number

SELECT = repeated("--select", "SELECTOR", "load only these sections", dest="selectors")
DEPTH = option("--depth", "N", type=whole_number)
FILTER = repeated(
    "--filter", "'[P]'", "only sections with e.g. [has-code] or [has-table]; all conditions count"
)
ROOT = repeated("--root", "DIR", "search this folder; the first has priority")
WHERE = (
    repeated("--file", "F", "Markdown file, folder, glob or item name, - for standard input"),
    option("--kind", "TYPE", dest="resource_type"),
    option("--item", "NAME"),
    ROOT,
)
BUDGET = option("--budget", "N", dest="token_budget", type=whole_number)
FORMAT = option(
    "--format", "F", "text (default), yaml or json", choices=("text", "yaml", "json"), default="text"
)
AS_JSON = argument(
    "--json", action="store_const", const="json", dest="format", help="the same as --format json"
)
OUTPUT = (
    option(
        "--format",
        "F",
        "text (default), markdown (the form for agents), yaml or json",
        choices=("text", "markdown", "yaml", "json"),
    ),
    AS_JSON,
    argument("-o", "--output", metavar="FILE", help="write to this file instead of standard output"),
)
