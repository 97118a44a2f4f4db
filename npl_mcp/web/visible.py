"""Invisible characters that change the displayed text."""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, and marks that change the text direction."""

_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "␡"}


def visible(text: str) -> str:
    """Return a text with visible signs in place of invisible characters.

    CR LF is a line break: pages of earlier versions stored typed line breaks in this form.
    """
    return _UNSEEN.sub(lambda found: _PICTURES.get(ord(found[0]), "\ufffd"), text.replace("\r\n", "\n"))
