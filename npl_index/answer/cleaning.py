"""Markup that tells a reader nothing, taken out of ranked passages; code is unchanged."""

from __future__ import annotations

import re

from npl_index.markdown.prose import without_code

_VALUE = r"""\s*=\s*(?:"[^"]*"|'[^']*'|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}|[^\s"'<>=`{]+)"""
_TAG = re.compile(rf"<(/?)([A-Za-z][\w.:-]*)((?:\s+[\w@:.-]+(?:{_VALUE})?)*)\s*(/?)>")
_VALUE_IN_TAG = re.compile(r"<[A-Za-z][^<>`=]*=")
_KEPT = re.compile(rf"\s(?:href|src|alt|title){_VALUE}")
_EMPTY = re.compile(r"<([A-Za-z][\w.:-]*)></\1>")
_DATA = re.compile(r"(data:[\w/+.-]+;base64,)[A-Za-z0-9+/=]{32,}")
_IMPORT = re.compile(r"import\s[^\n]*?['\"][^'\"\n]+['\"];?\s*")
_BARE = re.compile(r"[\s>*+-]*(?:</?[A-Za-z][\w.:-]*/?>\s*)+")
_SIGNS = ("<", ";base64,", "import ")


def cleaned(text: str) -> str:
    """Return a passage without lines of only tags or imports, attributes but ``href``, ``src``,
    ``alt`` and ``title``, empty elements, and data in Base64.
    """
    if not any(sign in text for sign in _SIGNS):
        return text
    # Code stays, but most texts need no look at what is code.
    value = _VALUE_IN_TAG.search(text)
    if (value is None or "`" not in text[value.end() :]) and _without_markup(text) == text:
        return text
    codes: list[str] = []
    source = "\n".join(
        line if line == prose else _hidden(line, prose, codes)
        for line, prose in zip(text.split("\n"), without_code(text).split("\n"), strict=True)
    )
    return re.sub("\x00(\\d+)\x00", lambda code: codes[int(code[1])], _without_markup(source))


def _without_markup(text: str) -> str:
    bare = _EMPTY.sub("", _TAG.sub(_without_attributes, _DATA.sub(r"\1…", text)))
    lines = (line for line in bare.split("\n") if not (_IMPORT.fullmatch(line) or _BARE.fullmatch(line)))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def _hidden(line: str, prose: str, codes: list[str]) -> str:
    """Return a line with the number of its code, from the first to the last character of it.

    :param prose: the line without code; empty for a line of a block.
    :param codes: texts by number; the code is added.
    """
    differing = [at for at, sign in enumerate(line) if prose[at : at + 1] != sign]
    begin, end = differing[0], differing[-1] + 1
    codes.append(line[begin:end])
    return f"{line[:begin]}\x00{len(codes) - 1}\x00{line[end:]}"


def _without_attributes(tag: re.Match[str]) -> str:
    kept = "".join(attribute[0] for attribute in _KEPT.finditer(tag[3]))
    return f"<{tag[1]}{tag[2]}{kept}{' /' if tag[4] and kept else tag[4]}>"
