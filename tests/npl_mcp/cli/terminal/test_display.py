"""Replies to terminal text and exit codes."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from npl_index.errors import NotFoundError, SelectorSyntaxError, escaped
from npl_mcp.cli.terminal.arguments import ProgramParser
from npl_mcp.cli.terminal.display import Display, exit_code
from npl_mcp.tools.contract.error_codes import ErrorCode

BELL = "# Bell\n\x1b[31mred\x07\tand\u202eback\n"
SHOWN = "# Bell\n\\x1b[31mred\\x07\tand\\u202eback\n"


UNSEEN = (
    "\u200b\u200e\u200f\u061c\u202a\u2066\u2028\u00ad\u3164\u2800\ufeff\U000e0041\U000e0100\x85\x9b\r\x0c"
)
SEEN = "café Ελλάδα नमस्ते می\u200cخواهم 中文 👩\u200d💻 ✔\ufe0f a\u0301 \u00a0\u3000 \\x1b"


@pytest.mark.parametrize("character", UNSEEN, ids=lambda sign: f"U+{ord(sign):04X}")
def test_invisible_characters_are_escaped(character: str) -> None:
    for lines in (True, False):
        shown = escaped(f"a{character}b", lines=lines)
        assert shown.isascii()
        assert shown.isprintable()
        assert shown.startswith("a\\")


def test_what_belongs_to_words_and_emoji_stays() -> None:
    """Joiners and variation selectors are part of ordinary writing."""
    assert escaped(SEEN) == SEEN
    assert escaped("a\tb\n") == "a\\tb\\n"


def test_errors_show_what_names_hide() -> None:
    """Errors escape names of artifacts, files and sections; lists keep their lines."""
    error = NotFoundError("there is no 'a\u202eb'", near=["one\u200b", "two"], hint="write\n  - x\U000e0041")
    assert str(error) == "there is no 'a\\u202eb'; write\n  - x\\U000e0041"
    wrong = SelectorSyntaxError("odd", "## a\u200bb[", 6)
    shown, caret = str(wrong).splitlines()[1:]
    assert shown.index("[") == caret.index("^")


def test_a_pipe_gets_the_bytes_and_a_terminal_escapes(tmp_path: Path) -> None:
    """The same command writes once into a pipe and once onto a terminal."""
    (tmp_path / ".npl" / "npl").mkdir(parents=True)
    (tmp_path / ".npl" / "npl" / "bell.md").write_text(BELL, encoding="utf-8")
    line = [sys.executable, "-m", "npl_mcp.cli.commands.load", "c", "bell"]
    piped = subprocess.run(line, cwd=tmp_path, capture_output=True, check=True, timeout=60)
    assert BELL.encode() in piped.stdout
    ours, theirs = pty.openpty()
    done = subprocess.run(line, cwd=tmp_path, stdout=theirs, stderr=theirs, check=True, timeout=60)
    os.close(theirs)
    seen = os.read(ours, 1 << 16).replace(b"\r\n", b"\n")
    os.close(ours)
    assert done.returncode == 0
    assert SHOWN.encode() in seen
    assert b"\x1b" not in seen


def test_text_that_is_no_unicode_is_written_all_the_same(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Bytes of a file name are written as read; other lone surrogates become question marks."""
    display = Display("x")
    display.text("a\udcffb")
    display.text("a\ud800b")
    assert capfdbinary.readouterr().out == b"a\xffba?b"


def test_messages_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A message has the program's name, no control characters, and the envelope's code."""
    code = Display("npl-load").failed(
        {"success": False, "error": "no\x1b", "error_code": "NOT_FOUND"}, ProgramParser()
    )
    shown = capsys.readouterr()
    assert (code, shown.out, shown.err) == (2, "", "npl-load: no\\x1b\n")


@pytest.mark.parametrize("code", ErrorCode)
def test_every_error_code_has_an_exit_code(code: ErrorCode) -> None:
    """None of them is success, and none is that of --strict."""
    assert exit_code({"success": False, "error_code": code.value}) not in (0, 1)
    assert exit_code({"success": True}) == 0


def test_a_long_call_is_told_on_a_terminal_only() -> None:
    code = (
        "import time\nfrom npl_mcp.cli.terminal.display import DELAY_SECONDS, progress\n"
        "with progress():\n    time.sleep(2 * DELAY_SECONDS)\n"
    )
    line = [sys.executable, "-c", code]
    ours, theirs = pty.openpty()
    subprocess.run(line, stderr=theirs, check=True, timeout=60)
    os.close(theirs)
    assert os.read(ours, 1 << 16).decode() == "working …\r\n"
    os.close(ours)
    assert subprocess.run(line, capture_output=True, check=True, timeout=60).stderr == b""
