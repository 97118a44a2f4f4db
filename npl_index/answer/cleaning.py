"""Markup that tells a reader nothing, taken out of ranked passages; code is unchanged."""

from __future__ import annotations

import re

from npl_index.markdown.prose import without_code

LAYOUT = frozenset(
    """a abbr b br center col colgroup dd div dl dt em figure font hr i img li ol p picture small span strong
    sub sup table tbody td tfoot th thead tr u ul""".split()  # noqa: SIM905
)
"""Elements of HTML that only lay out their text. Other names in angle brackets may be placeholders, labels or
elements of a prompt.
"""

_VALUE = r"""\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'<>=`{]+)"""
_NAMES = "|".join(sorted(LAYOUT))
_TAG = re.compile(rf"<(/?)({_NAMES})((?:\s+[\w@:.-]+(?:{_VALUE})?)*)\s*(/?)>", re.IGNORECASE)
_KEPT = re.compile(rf"\s(?:href|src|alt|title|label){_VALUE}")
_EMPTY = re.compile(rf"<({_NAMES})></\1>", re.IGNORECASE)
_DATA = re.compile(r"(data:[\w/+.-]+;base64,)[A-Za-z0-9+/=]{32,}")
_BARE = re.compile(rf"[\s>]*(?:</?(?:{_NAMES})\s*/?>\s*)*", re.IGNORECASE)
_MODULE = re.compile(r"^(?:import|export)\s", re.MULTILINE)
_HIDDEN = re.compile(r"\x00([0-9]+)\x00")


def cleaned(text: str, *, is_mdx: bool = False) -> str:
    """Return a passage without data in Base64, without what only lays out its text, and without imports.

    Elements of :data:`LAYOUT` lose their attributes but ``href``, ``src``, ``alt``, ``title`` and ``label``,
    and disappear if they are empty or alone on a line.

    :param is_mdx: whether paragraphs that begin with ``import`` or ``export`` are modules, not text.
    """
    if not (_TAG.search(text) or _DATA.search(text) or (is_mdx and _MODULE.search(text))):
        return text
    shown: list[str] = []
    is_module = is_gap = False
    for line, prose in zip(text.split("\n"), without_code(text).split("\n"), strict=True):
        begins = is_mdx and _MODULE.match(prose) is not None and not "".join(shown[-1:])
        is_module = bool(line) and (is_module or begins)
        bare = _without_markup(line, prose) if prose.strip() else line
        if is_module or ("<" in prose and _BARE.fullmatch(bare)):
            is_gap = True
        elif line or not is_gap or "".join(shown[-1:]):
            shown.append(bare)
            is_gap = False
    return "\n".join(shown)


def _without_markup(line: str, prose: str) -> str:
    """Return a line without markup outside of code.

    :param prose: the line with blanks for its code.
    """
    codes: list[str] = []
    hidden = line if line == prose else _hidden(line, prose, codes)
    bare = _EMPTY.sub("", _TAG.sub(_without_attributes, _DATA.sub(r"\1…", hidden)))
    return _HIDDEN.sub(lambda code: codes[int(code[1])], bare)


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
