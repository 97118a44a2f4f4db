"""Foreign Markdown as HTML: it adds no markup of its own, runs nothing and loads nothing from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, lru_cache
from itertools import takewhile
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup, escape

_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters, and marks that change the text direction."""

_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "␡"}


def visible(text: str) -> str:
    """Return a text with visible signs for invisible characters.

    CR LF is a line break: pages of earlier versions stored typed line breaks in this form.
    """
    return _UNSEEN.sub(lambda match: _PICTURES.get(ord(match[0]), "\ufffd"), text.replace("\r\n", "\n"))


LIMIT = 50_000
"""Maximum characters rendered from a text: about a second of work for any content."""

STEPS = 1_000_000
"""Maximum of characters times brackets in the rendered paragraphs: the parser searches all of a paragraph
for each bracket's end. The maximum takes about a second; links of later paragraphs stay text.
"""

REL = "noopener noreferrer nofollow"

Link = Callable[[str], "str | None"]
"""A function from an address in a text to the displayed one; ``None`` keeps the words without a link."""

Edits = Sequence[tuple[str, str]]
"""Headings with the addresses where their sections are edited."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NAMED = re.compile(
    r"(?<![\w.+\-@/:])(?:@(?P<name>[\w-]{1,64})|artifact[ :](?P<artifact>\d{1,9})\b"
    r"|(?P<key>[A-Z][A-Z0-9]{1,9}-\d{3})\b|(?P<file>\w[\w./-]{0,200}\.md)\b)(?![\w-])"
)
"""What a message names: a member, an artifact, a change request, a document."""
_PLACES = {"artifact": "/artifacts/", "key": "/changes/", "file": "/documents/"}
_LEADING = ("http:", "https:", "mailto:")


def is_safe(url: str) -> bool:
    """Return whether a link may lead to an address: a web page, an e-mail or a path of this server."""
    scheme = _SCHEME.match(url)
    return scheme is None or scheme[0].lower() in _LEADING


def as_written(url: str) -> str:
    """Return an address unchanged."""
    return url


def markdown(
    text: str, link: Link = as_written, level: int = 2, definitions: str = "", edits: Edits = ()
) -> Markup:
    """Return Markdown as HTML.

    :param link: the function that returns the target of a link.
    :param level: the highest heading level; deeper ones follow without gaps, as screen readers need it.
    :param definitions: a text with further definitions of link targets.
    :param edits: headings in their order, each with the address where its section is edited.
    """
    env = _env(link=link, level=level, edits=list(edits))
    if "]:" in definitions:
        env["references"] = dict(_references(definitions[:LIMIT]))
    shown = _cut(text)
    html = visible(_writer().render(shown, env))
    if len(shown) < len(text):
        html += f"<p>… {len(text) - len(shown):,} characters more are not shown.</p>\n"
    return Markup(html)


def message(text: str, names: Sequence[str] = ()) -> Markup:
    """Return a message as HTML: line breaks stay, mentions are marked, and what it names is linked.

    :param names: the names of the mentioned members.
    """
    known = {"all", *map(str.lower, names)} if names else ()
    return Markup(visible(_writer(is_message=True).render(_cut(text), _env(names=known))))


def _cut(text: str) -> str:
    """Return the rendered part of a text: whole lines where possible."""
    if len(text) <= LIMIT:
        return text
    return text[: text.rfind("\n", 0, LIMIT) + 1] or text[:LIMIT]


def _env(**other: object) -> dict[str, Any]:
    """Return the values for the rules of one text."""
    return {"link": as_written, "level": 2, "edits": [], **other}


@cache
def _writer(is_message: bool = False) -> MarkdownIt:
    """Return the parser and renderer: CommonMark with GitHub's tables and strikethrough."""
    writer = MarkdownIt("js-default", {"html": False, "linkify": False, "breaks": is_message})
    writer.validateLink = is_safe  # type: ignore[method-assign]
    writer.core.ruler.at("inline", _read_lines)
    writer.core.ruler.push("guard", _guard)
    writer.add_render_rule("link_open", _link_open)
    writer.add_render_rule("image", _image)
    writer.add_render_rule("table_open", lambda *_: f"{_TABLE}<table>\n")
    writer.add_render_rule("table_close", lambda *_: "</table>\n</div>\n")
    if is_message:
        writer.add_render_rule("text", _said)
        writer.add_render_rule("code_inline", _said_code)
    writer.render("", _env())  # compiles the rules, which is not thread-safe
    return writer


_TABLE = '<div class="scroll" tabindex="0" role="group" aria-label="Table">'


@lru_cache(maxsize=8)
def _references(definitions: str) -> Mapping[str, Any]:
    """Return link targets by their labels; the sections of a document share them."""
    env = _env()
    _writer().parse(definitions, env)
    return dict(env.get("references", {}))


def _read_lines(state: StateCore) -> None:
    """Parse inline content as the library does, until the limit of steps."""
    left = STEPS
    for token in state.tokens:
        if token.type == "inline":
            left -= len(token.content) * token.content.count("[")
            token.children = [_text(token.content)] if left < 0 else []
            if left >= 0:
                state.md.inline.parse(token.content, state.md, state.env, token.children)


def _guard(state: StateCore) -> None:
    """Adapt the parsed tokens to a page: headings and table headers are never empty."""
    levels, tokens = Levels(state.env["level"]), state.tokens
    for at, token in enumerate(tokens):
        if token.type == "inline" and token.children and tokens[at - 2].type == "list_item_open":
            first = token.children[0]
            first.content = _BOXES.get(first.content[:4], first.content[:4]) + first.content[4:]
        elif token.type == "heading_open":
            if _is_empty(tokens[at + 1]):
                token.hidden = tokens[at + 2].hidden = True
            else:
                token.tag = tokens[at + 2].tag = levels.tag(int(token.tag[1:]))
                _offer_edit(tokens[at + 1], state.env["edits"])
        elif token.type == "th_open" and _is_empty(tokens[at + 1]):
            token.tag = tokens[at + 2].tag = "td"
        if "style" in token.attrs:
            # The policy of pages forbids inline styles.
            token.attrs["class"] = str(token.attrs.pop("style")).rpartition(":")[2]


_BOXES = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
"""Boxes for the marks of tasks at the beginnings of list items."""


def _offer_edit(heading: Token, edits: list[tuple[str, str]]) -> None:
    """Add the link to the form of a heading's section."""
    place = next((at for at, (name, _) in enumerate(edits) if name == heading.content), None)
    if place is not None and heading.children is not None:
        label = f"Edit {heading.content}"
        link = Token("edit_open", "a", 1, {"href": edits[place][1], "aria-label": label, "class": "edit"})
        heading.children += [link, _text("Edit"), Token("edit_close", "a", -1)]
        del edits[: place + 1]


def _is_empty(token: Token) -> bool:
    """Return whether a line has no words; those of images and links count."""
    children = token.children or ()
    return not any(child.content.strip() or child.type in ("image", "link_open") for child in children)


class Levels:
    """Levels of headings without gaps.

    :param highest: the level of the first heading.
    """

    def __init__(self, highest: int) -> None:
        self._highest, self._open = highest, [0]

    def tag(self, level: int) -> str:
        """Return the element of the next heading, for its level in the text."""
        while self._open[-1] >= level:
            self._open.pop()
        self._open.append(level)
        return f"h{min(6, self._highest + len(self._open) - 2)}"


def _link_open(self: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    """Write a link with its permitted target; without words it shows its address, and images are words."""
    token, inside = tokens[at], list(takewhile(lambda other: other.type != "link_close", tokens[at + 1 :]))
    for other in inside:
        other.meta["inside"] = True
        if other.type == "image":
            other.type, other.content = "text", _words(other)
    url = str(token.attrs.pop("href", ""))
    target = env["link"](url)
    if target is None or not is_safe(target):
        token.tag = tokens[at + 1 + len(inside)].tag = "span"
    else:
        token.attrs = {"href": target, "rel": REL, **token.attrs}
    has_words = any(other.content.strip() for other in inside)
    return f"{self.renderToken(tokens, at, options, env)}{'' if has_words else escape(url or 'link')}"


def _image(self: RendererHTML, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
    """Write the words of an image as a link to it."""
    link = Token("link_open", "a", 1, {"href": tokens[at].attrs["src"]})
    return self.renderInline([link, _text(_words(tokens[at])), Token("link_close", "a", -1)], options, env)


def _words(image: Token) -> str:
    words = "".join(child.content for child in image.children or ()).strip()
    return words or str(image.attrs["src"]) or "image"


def _said(_: RendererHTML, tokens: Sequence[Token], at: int, __: Any, env: Any) -> str:
    """Write a text of a message."""
    html = escape(tokens[at].content)
    if tokens[at].meta.get("inside"):
        return html
    return _NAMED.sub(lambda match: _around(match, match[0], env["names"]), html)


def _said_code(_: RendererHTML, tokens: Sequence[Token], at: int, *__: Any) -> str:
    """Write code of a message; what is no name of a place is no mention."""
    match, html = _NAMED.fullmatch(tokens[at].content), f"<code>{escape(tokens[at].content)}</code>"
    return _around(match, html) if match and not tokens[at].meta.get("inside") else html


def _around(match: re.Match[str], html: str, names: Collection[str] = ()) -> str:
    """Return HTML as the mark of a member's name, or as the link to what a message names."""
    kind = str(match.lastgroup)
    if kind in _PLACES:
        return f'<a href="{_PLACES[kind]}{match[kind]}">{html}</a>'
    return f"<mark>{html}</mark>" if match["name"].lower() in names else html


def _text(words: str) -> Token:
    return Token("text", "", 0, content=words)
