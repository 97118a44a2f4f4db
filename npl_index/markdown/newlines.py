"""One form of line ends: Markdown is read with line feeds alone, whatever the file has."""

from __future__ import annotations


def with_line_feeds(text: str) -> str:
    r"""Return a text whose lines end in ``\n``, where they ended in ``\r\n`` or ``\r``."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
