"""Parts of all command lines: one declaration for a flag, a call and a message."""

import pytest

from npl_mcp.cli.commands import load, mcp, worklog
from npl_mcp.cli.terminal.arguments import Program, parsers_of
from npl_mcp.config.domains import LISTED, PRESETS
from npl_mcp.config.settings import SETTINGS
from npl_mcp.tools.domains import tool_named
from tests.conftest import cases

PROGRAMS = (load.PROGRAM, worklog.PROGRAM, mcp.PROGRAM)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_option_says_what_it_is(program: Program) -> None:
    for words, parser in parsers_of(program.parser()).items():
        parser.describe()
        options = [action for action in parser._actions if action.option_strings]
        assert [option.option_strings for option in options if not option.help] == [], words


def test_an_option_has_the_text_of_the_parameter() -> None:
    parsers = parsers_of(worklog.PROGRAM.parser())
    text = parsers["log"].format_help()
    meanings = tool_named("worklog_log").meanings
    for name in ("agent_id", "summary", "tags"):
        assert meanings[name].removesuffix(".") in " ".join(text.split())


@pytest.mark.parametrize(
    ("problem", "parameter", "said"),
    cases("npl_mcp/cli/terminal/arguments")["a_message_names_the_option"],
)
def test_a_message_names_the_option(problem: str, parameter: str | None, said: str) -> None:
    """A message that begins with a parameter's name shows the option instead."""
    parser = parsers_of(worklog.PROGRAM.parser())["log"]
    assert parser.with_flag(problem, parameter) == said


def test_settings_have_a_meaning() -> None:
    assert all(setting.meaning for setting in SETTINGS.values())
    text = SETTINGS["domains"].meaning
    assert all(f"`{name}`" in text for name in (*LISTED, *PRESETS))
