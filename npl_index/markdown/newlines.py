"""Normalization of line ends."""

from __future__ import annotations


def with_line_feeds(text: str) -> str:
    r"""Return a text with ``\n`` in place of each ``\r\n`` and ``\r``."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
