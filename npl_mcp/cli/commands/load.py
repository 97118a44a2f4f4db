"""``npl-load``: Markdown and prompts on the command line, whole or by section.

One line may have several types, ``c "syntax" --skip "" m "persona.qa"``, and ``--skip`` takes all words that
follow it. argparse cannot read such a line: it reads the options, and :func:`read_groups` the words between
them.

A word that is both a type and a name begins a type if the type before it already has a name and another word
follows, as in ``c syntax m persona``; otherwise it is a name, as in ``c m`` and ``c syntax m``. With a comma
it is always a name: ``c syntax m, persona``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from npl_index.answer.values import as_dict
from npl_index.items.loading import Group, load_groups
from npl_mcp.cli.commands import claude_file, local, raw_files, section_commands, targets
from npl_mcp.cli.commands.targets import AS_JSON, DEPTH, FILTER, FORMAT, SELECT
from npl_mcp.cli.terminal.arguments import CLIENT_FLAGS, EXAMPLES, Commands, Program, option, switch
from npl_mcp.cli.terminal.display import NOT_THERE, Display, run_command
from npl_mcp.cli.transports.connecting import connect

TYPES: dict[str, str] = json.loads(EXAMPLES.with_name("item_types.json").read_text("utf-8"))
"""Types of items with their plural; one line may have several."""


def _load_items(given: Namespace, display: Display) -> int:
    """Print items by section, or whole with one header for all.

    :returns: the exit code: 0, or with ``--strict`` 1 if an item is missing.
    """
    if given.filter and not given.index:
        hint = "write the condition into --select, e.g. '## Purpose [has-code]'"
        given.parser.error(f"argument --filter: needs --index; {hint}")
    if given.selectors or given.index:
        with connect(given, display.note) as connection:
            return section_commands.run_items(given, connection, display)
    if given.depth is not None:
        given.parser.error("argument --depth: needs --select or --index")
    named = (group for group in given.groups if group.names)
    groups = [Group(group.kind, ",".join(group.names), " ".join(group.skip)) for group in named]
    if not groups:
        return 0
    with targets.with_files(given, display) as (files, _):
        loaded = load_groups(files.own, groups)
    if given.format != "text":
        display.data(as_dict(loaded), given.format)
    else:
        display.text(loaded.header if given.quiet else loaded.header + loaded.content)
    problems = list(loaded.problems or ())
    for missing in loaded.missing or ():
        near = f"; near: {', '.join(missing.near)}" if missing.near else ""
        problems.append(f"there is no {missing.kind} {missing.name!r}{near}")
    for problem in problems:
        display.note(problem)
    return NOT_THERE if problems and given.strict else 0


@dataclass
class ItemGroup:
    """The items of one type to load.

    :param kind: type in the user's spelling.
    :param words: names of items.
    :param skip: words of the last ``--skip``.
    """

    kind: str
    words: list[str] = field(default_factory=list)
    skip: list[str] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, split at commas, without duplicates."""
        parts = (part.strip() for word in self.words for part in word.split(","))
        return tuple(dict.fromkeys(part for part in parts if part))


def read_groups(parser: argparse.ArgumentParser, words: Sequence[str], given: Namespace) -> None:
    """Read the types one after another, each with its names and its ``--skip``.

    argparse reads one option at a time, with the words up to the next option, and leaves the words that are
    not the option's value.

    :param parser: parser of the first type, whose argument ``item`` takes the words.
    :param words: words after the first type.
    :param given: target of the options and of ``groups``, a list of :class:`ItemGroup`.
    """
    given.groups = groups = [ItemGroup(parser.prog.split()[-1])]
    end = words.index("--") if "--" in words else len(words)
    starts = [0, *(at for at in range(end) if _is_option(words[at])), end]
    for start, stop in pairwise(starts):
        part = words[start:stop]
        group, given.skip = groups[-1], None
        left = [*parser.parse_known_args(part, given)[1], *given.item]
        if (patterns := given.skip) is not None:
            # Without a name before it, the option takes one pattern.
            ends = (at for at in range(len(patterns)) if _begins_type(patterns, at, group))
            stop = next(ends, len(patterns)) if group.words else 1
            group.skip, left = patterns[:stop], [*patterns[stop:], *left]
        if left and _is_option(left[0]):
            hint = f" (write {left[0]} before the command)" if left[0] == "--quiet" else ""
            parser.error(f"unrecognized arguments: {left[0]}{hint}")
        for at, word in enumerate(left):
            if _begins_type(left, at, groups[-1]):
                groups.append(ItemGroup(word))
            else:
                groups[-1].words.append(word)
    groups[-1].words += words[end + 1 :]


def _begins_type(words: Sequence[str], at: int, group: ItemGroup) -> bool:
    return words[at] in TYPES and bool(group.words) and at + 1 < len(words)


def _is_option(word: str) -> bool:
    """Return whether argparse reads a word as an option, unlike negative numbers and texts with a space."""
    return re.match(r"-[^\d\s=][^\s=]*(=|\Z)", word) is not None


_NOTES = """\
  --skip P [P ...]      names to leave out, with * as wildcard; ends at the next option or type

A line may have several types. A word that is a type begins a new one if the type before it already has a name
and another word follows; with a comma it is always a name. --quiet goes before the command.

"""
_OPTIONS = (
    option("item", "NAME", "names of items, separated by commas or spaces", nargs="*"),
    option("--skip", "P", argparse.SUPPRESS, nargs="*"),
    SELECT,
    switch("--index", help="print the headings with their sizes instead of the text"),
    FILTER,
    DEPTH,
    FORMAT,
    AS_JSON,
    switch("--verbose", help="accepted for compatibility, no effect"),
)
COMMANDS = Commands()
for _module in (section_commands, local, raw_files, claude_file):
    COMMANDS.update(_module.COMMANDS)
_READ = {"tool": "npl_load_tailored", "notes": _NOTES, "reader": read_groups}
for _name, _what in TYPES.items():
    _usage = f"npl-load [--quiet] {_name} [OPTION ...] [NAME ...]"
    COMMANDS.add(_name, *_OPTIONS, help=f"Load {_what}", usage=_usage, **_READ)(_load_items)

_STRICT = switch("--strict", help="exit with 1 if an item is missing (default: report it, exit with 0)")
_QUIET = switch("--quiet", help="print the flags of the items without their text; goes before the command")
PROGRAM = Program("npl-load", COMMANDS, (_STRICT, *CLIENT_FLAGS), (_QUIET,))

main = partial(run_command, PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
