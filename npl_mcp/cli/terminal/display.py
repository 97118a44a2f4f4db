"""Output of the command lines and their exit codes.

Results go to standard output, messages to standard error, without colours. On a terminal, invisible
characters of the content are printed as escapes; into a pipe the content passes unchanged.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

from npl_index.errors import NPLError, escaped
from npl_mcp.cli.terminal.arguments import Program, ProgramParser, UsageError
from npl_mcp.config.child_processes import use_one_thread_for_numpy

NOT_THERE = 1
"""Exit code of ``--strict`` if an item is missing."""

PROBLEMS = 1
"""Exit code of a command that found problems."""

USAGE = 2
INTERRUPTED = 130
BROKEN_PIPE = 141

EXIT_CODES: Mapping[str, int] = {
    "PERMISSION_DENIED": 77,
    "OPERATION_FAILED": 65,
    "ALREADY_EXISTS": 73,
    "FILE_SYSTEM_ERROR": 74,
    "DATABASE_ERROR": 74,
    "INTERNAL_ERROR": 70,
    "UNAVAILABLE": 69,
    "UNCERTAIN": 76,
}
"""Exit codes by error code, numbered as in ``sysexits.h``. All other error codes give 2: the caller can
correct them. The last two error codes come from :mod:`npl_mcp.cli.transports.connecting`."""

DELAY_SECONDS = 0.5
"""Time of a call until a line says that it runs."""


class FailedCallError(Exception):
    """A tool call that failed.

    :param reply: envelope of the answer.
    """

    def __init__(self, reply: Mapping[str, Any]) -> None:
        self.reply = reply
        super().__init__(reply["error"])


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command.

    :param text: text for people, without the last line end; empty for none.
    :param data: JSON value of the same result, for programs.
    :param problems: problems that the command reports, one line each.
    :param code: exit code; :data:`PROBLEMS` if there are any and it is 0.
    """

    text: str = ""
    data: object = None
    problems: Sequence[str] = ()
    code: int = 0


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


class Display:
    """Standard output and standard error of one command.

    :param program: name of the program, which begins each message.
    """

    def __init__(self, program: str) -> None:
        self.program = program

    def text(self, text: str) -> None:
        """Write to standard output, always as UTF-8.

        :raises BrokenPipeError: the reader has closed the pipe.
        """
        shown = escaped(text, lines=True) if sys.stdout is not None and sys.stdout.isatty() else text
        _write_all(sys.stdout, shown)

    def data(self, value: object, form: str, *, ascii_only: bool = False) -> None:
        """Write a value to standard output.

        :param value: JSON value; paths become texts.
        :param form: ``json`` or ``yaml``.
        :param ascii_only: whether JSON has escapes for all other characters.
        """
        if form == "json":
            self.text(json.dumps(value, ensure_ascii=ascii_only, indent=2, default=str) + "\n")
        else:
            import yaml  # 20 ms

            self.text(yaml.safe_dump(value, allow_unicode=True, sort_keys=False))

    def outcome(self, done: CommandResult, *, as_json: bool) -> int:
        """Write the result of a command and return the exit code; problems go to standard error."""
        for problem in done.problems:
            self.note(problem)
        if as_json and done.data is not None:
            self.data(done.data, "json")
        elif done.text:
            self.text(f"{done.text}\n")
        return done.code or (PROBLEMS if done.problems else 0)

    def note(self, line: str) -> None:
        """Write a message to standard error, with the program's name before it."""
        self.say(f"{self.program}: {line}")

    def say(self, line: str) -> None:
        """Write a line to standard error."""
        _write_all(sys.stderr, escaped(line, lines=True) + "\n")

    def failed(self, reply: Mapping[str, Any], parser: ProgramParser) -> int:
        """Report a failed tool call and return the exit code.

        :param reply: envelope of the answer.
        :param parser: parser of the command, whose arguments have the names of the tool's parameters.
        """
        self.note(parser.with_flag(str(reply["error"]), reply.get("parameter")))
        return exit_code(reply)


def exit_code(reply: Mapping[str, Any]) -> int:
    """Return the exit code of an envelope."""
    return 0 if reply["success"] else EXIT_CODES.get(str(reply["error_code"]), USAGE)


def _write_all(stream: TextIO | None, text: str) -> None:
    if stream is None:  # closed before the start
        return
    stream.flush()
    rest = memoryview(_encoded(text))
    while rest:  # an unbuffered stream may take only a part
        rest = rest[stream.buffer.write(rest) :]
    stream.buffer.flush()


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")  # the bytes that a file name has
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def run_command(program: Program, words: Sequence[str] | None = None) -> int:
    """Run a command of a program and return the exit code.

    An interrupt or a closed pipe ends it without a message.

    :param words: command line without the program's name; by default that of the process.
    """
    use_one_thread_for_numpy()
    display = Display(program.name)
    parser = program.parser()
    try:
        given = parser.parse_args(sys.argv[1:] if words is None else words)
        parser = given.parser
        done = given.run(given, display)
        if isinstance(done, CommandResult):
            return display.outcome(done, as_json=getattr(given, "json", False))
        return done or 0
    except UsageError as error:
        display.say(str(error))
        return USAGE
    except FailedCallError as refused:
        return display.failed(refused.reply, parser)
    except NPLError as error:
        display.note(parser.with_flag(str(error), getattr(error, "parameter", None)))
        return USAGE
    except SystemExit as end:
        return int(end.code or 0)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        silence()
        return BROKEN_PIPE
    except OSError as error:
        display.note(f"{error.filename or program.name}: {error.strerror or error}")
        return EXIT_CODES["FILE_SYSTEM_ERROR"]


@contextmanager
def progress() -> Iterator[None]:
    """Tell a terminal of a call that takes longer than :data:`DELAY_SECONDS`."""
    timer = threading.Timer(DELAY_SECONDS, sys.stderr.write, ("working …\n",))
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def silence() -> None:
    """Discard all further output after the pipe was closed, so that closing the streams raises nothing."""
    for stream in (sys.stdout, sys.stderr):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
