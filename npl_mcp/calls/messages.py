"""Limits of a message, checked on its bytes before any parser runs, and the id of its request.

A parser allocates 64 bytes or more for the three bytes ``[],``, and the validation of arguments visits every
value. So values and levels are counted first, by searches through the whole message: these cost next to
nothing compared with parsing. No code here handles long messages character by character.
"""

from __future__ import annotations

import re
from itertools import accumulate

MAX_VALUES = 32_768
"""Maximum values in one message: stores accept 64 Ki characters of JSON, and every list entry needs more than
two characters.
"""

MAX_DEPTH = 64
"""Maximum nesting of one message: stores keep 32 levels, and the message itself has three."""

_STEPS = dict(zip(b"[{]}", (1, 1, -1, -1), strict=True))
_NO_BRACKETS = bytes(set(range(256)) - set(_STEPS))
MAX_END = 512
"""Bytes at the end of a message that are searched for its id."""

_ID = rb'"id"\s*:\s*(?:(-?[0-9]{1,200})|"([^"\\\x00-\x1f]{1,200})")\s*'
_OTHER = rb'"(?:jsonrpc|method)"\s*:\s*"[^"\\]{0,100}"\s*'
_FIRST_ID = re.compile(rb"\s*\{\s*(?:" + _OTHER + rb",\s*){0,2}" + _ID + rb"(?:[,}]|$)")
_LAST_ID = re.compile(rb"[{,]\s*" + _ID + rb"(?:,\s*" + _OTHER + rb"){0,2}\}\s*$")


def exceeded(message: bytes | bytearray) -> str | None:
    """Return the limit that a message exceeds; ``None`` if it is within all limits.

    :param message: JSON, or invalid input.
    """
    # Nearly every message ends here: it is within limits even if all its commas were outside strings.
    commas = message.count(b",")
    openings = message.count(b"[") + message.count(b"{")
    if commas + openings <= MAX_VALUES and openings <= MAX_DEPTH:
        return None
    if message.count(b'"') - message.count(b'\\"') > 4 * MAX_VALUES:
        return f"more than {MAX_VALUES:,} values"
    # Escapes become NUL, which JSON does not allow; the parts outside and inside strings alternate.
    unescaped = bytes(message).replace(b"\\\\", b"\0").replace(b'\\"', b"\0")
    outside = b'""'.join(unescaped.split(b'"', 4 * MAX_VALUES)[::2])
    brackets = outside.translate(None, _NO_BRACKETS)
    if outside.count(b",") + brackets.count(b"[") + brackets.count(b"{") > MAX_VALUES:
        return f"more than {MAX_VALUES:,} values"
    if len(brackets) > 2 * MAX_VALUES or max(accumulate(map(_STEPS.__getitem__, brackets))) > MAX_DEPTH:
        return f"more than {MAX_DEPTH} levels of lists and objects"
    return None


def request_id(message: bytes | bytearray) -> int | str | None:
    """Return the id of a request that was not parsed; ``None`` if it cannot be determined.

    Clients write it before or after the parameters; the text in between is not searched.

    :param message: the request's bytes, or its first and last bytes.
    """
    match = _FIRST_ID.match(message) or _LAST_ID.search(message[-MAX_END:])
    if match is None:
        return None
    number, text = match.groups()
    return int(number) if number else text.decode("utf-8", "replace")
