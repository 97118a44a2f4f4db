"""Foreign Markdown as HTML: it adds no markup of its own, runs nothing and loads nothing from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from markdown_it import MarkdownIt
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
    text: str,
    link: Link = as_written,
    level: int = 2,
    definitions: str = "",
    edits: Sequence[tuple[str, str]] = (),
) -> Markup:
    """Return Markdown as HTML.

    :param link: the function that returns the target of a link.
    :param level: the highest heading level; deeper ones follow without gaps, as screen readers need it.
    :param definitions: a text with further definitions of link targets.
    :param edits: headings in their order, each with the address where its section is edited.
    """
    env: dict[str, Any] = {"link": link, "level": level, "edits": list(edits)}
    if "]:" in definitions:
        env["references"] = dict(_references(definitions[:LIMIT]))
    shown = _cut(text)
    html = visible(_writer().render(shown, env))
    if len(shown) < len(text):
        html += f"<p>… {len(text) - len(shown):,} characters more are not shown.</p>\n"
    return Markup(html)


def message(text: str, names: Sequence[str] = ()) -> Markup:
    """Return a message as HTML: line breaks stay, and mentions of members are marked.

    :param names: the names of the mentioned members.
    """
    known = frozenset(("all", *map(str.lower, names))) if names else frozenset()
    return Markup(visible(_writer().render(_cut(text), {"link": as_written, "level": 2, "names": known})))


def _cut(text: str) -> str:
    """Return the rendered part of a text: whole lines where possible."""
    if len(text) <= LIMIT:
        return text
    return text[: text.rfind("\n", 0, LIMIT) + 1] or text[:LIMIT]


@cache
def _writer() -> MarkdownIt:
    """Return the parser and renderer: CommonMark with GitHub's tables and strikethrough."""
    writer = MarkdownIt("js-default", {"html": False, "linkify": False, "typographer": False})
    writer.validateLink = is_safe  # type: ignore[method-assign]
    writer.core.ruler.at("inline", _read_lines)
    writer.core.ruler.push("guard", _guard)
    writer.add_render_rule("fence", _code)
    writer.add_render_rule("code_block", _code)
    writer.add_render_rule("table_open", lambda *_: f"{_TABLE}<table>\n")
    writer.add_render_rule("table_close", lambda *_: "</table>\n</div>\n")
    writer.render("", {"link": as_written, "level": 2})  # compiles the rules, which is not thread-safe
    return writer


_TABLE = '<div class="scroll" tabindex="0" role="group" aria-label="Table">'


@lru_cache(maxsize=8)
def _references(definitions: str) -> Mapping[str, Any]:
    """Return link targets by their labels; the sections of a document share them."""
    env: dict[str, Any] = {"link": as_written, "level": 2}
    _writer().parse(definitions, env)
    return dict(env.get("references", {}))


def _code(_: object, tokens: Sequence[Token], at: int, *__: object) -> str:
    return f"<pre><code>{escape(tokens[at].content)}</code></pre>\n"


def _read_lines(state: StateCore) -> None:
    """Parse inline content as the library does, until the limit of steps."""
    left = STEPS
    for token in state.tokens:
        if token.type == "inline":
            left -= len(token.content) * token.content.count("[")
            token.children = []
            if left < 0:
                token.children = [_text(token.content)]
            else:
                state.md.inline.parse(token.content, state.md, state.env, token.children)


def _guard(state: StateCore) -> None:
    """Adapt the parsed tokens to a page: headings and table headers are never empty."""
    link, levels, tokens = state.env["link"], Levels(state.env["level"]), state.tokens
    dropped: set[int] = set()
    for at, token in enumerate(tokens):
        if token.type == "inline":
            children: Iterator[Token] = _inline(token.children or [], link)
            if "names" in state.env:
                children = _spoken(children, state.env["names"])
            token.children = list(children)
            if tokens[at - 2].type == "list_item_open":
                _tick(token.children)
        elif token.type == "heading_open":
            if _is_empty(tokens[at + 1]):
                dropped.update((at, at + 1, at + 2))
            else:
                token.tag = tokens[at + 2].tag = levels.tag(int(token.tag[1:]))
                _offer_edit(tokens[at + 1], state.env.get("edits", []))
        elif token.type == "th_open" and _is_empty(tokens[at + 1]):
            token.tag = tokens[at + 2].tag = "td"
        if "style" in token.attrs:
            # The policy of pages forbids inline styles.
            token.attrs["class"] = str(token.attrs.pop("style")).rpartition(":")[2]
    state.tokens = [token for at, token in enumerate(tokens) if at not in dropped]


def _offer_edit(heading: Token, edits: list[tuple[str, str]]) -> None:
    """Add the link to the form of a heading's section."""
    place = next((at for at, (name, _) in enumerate(edits) if name == heading.content), None)
    if place is not None and heading.children is not None:
        attrs: dict[str, str | int | float] = {
            "href": edits[place][1],
            "aria-label": f"Edit {heading.content}",
        }
        link = Token("link_open", "a", 1, attrs={**attrs, "class": "edit"})
        heading.children += [link, _text("Edit"), Token("link_close", "a", -1)]
        del edits[: place + 1]


def _is_empty(token: Token) -> bool:
    """Return whether a line has no words; those of images and links count."""
    return not any(
        child.content.strip() or child.type in ("image", "link_open") for child in token.children or ()
    )


_BOXES = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}


def _tick(children: Sequence[Token]) -> None:
    """Replace the mark of a task at the beginning of a list item by a box."""
    first = children[0].content if children else ""
    if first[:4] in _BOXES:
        children[0].content = _BOXES[first[:4]] + first[4:]


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


def _inline(tokens: Sequence[Token], link: Link) -> Iterator[Token]:
    """Yield inline tokens: links have permitted targets, and images become links to their source."""
    inside: Token | None = None
    said = False
    for token in tokens:
        if token.type == "link_open":
            inside, said = token, False
            _lead(token, link)
        elif token.type == "link_close":
            if inside is not None and not said:
                yield _text(str(inside.meta.get("url", "")) or "link")
            token.tag = inside.tag if inside is not None else token.tag
            inside = None
        if token.type == "image":
            said = True
            yield from _picture(token, link, inside is not None)
        else:
            said = said or bool(token.content.strip())
            yield token


def _spoken(tokens: Iterator[Token], names: Collection[str]) -> Iterator[Token]:
    """Yield the inline tokens of a message, with marked mentions, and links to what it names."""
    inside = False
    for token in tokens:
        inside = token.type == "link_open" or (inside and token.type != "link_close")
        if token.type == "softbreak":
            yield Token("hardbreak", "br", 0)
        elif token.type == "code_inline" and not inside and (match := _NAMED.fullmatch(token.content)):
            yield from _around(match, token, names)
        elif token.type == "text":
            at = 0
            for match in () if inside else _NAMED.finditer(token.content):
                yield _text(token.content[at : match.start()])
                yield from _around(match, _text(match[0]), names)
                at = match.end()
            yield _text(token.content[at:])
        else:
            yield token


def _around(match: re.Match[str], shown: Token, names: Collection[str]) -> Iterator[Token]:
    """Yield a token within the mark of a member's name, or within the link to what a message names."""
    kind = str(match.lastgroup)
    tag = "a" if kind in _PLACES else "mark"
    if kind == "name" and (shown.type != "text" or match["name"].lower() not in names):
        yield shown
        return
    attrs: dict[str, str | int | float] = {"href": f"{_PLACES[kind]}{match[kind]}"} if tag == "a" else {}
    yield Token(f"{tag}_open", tag, 1, attrs=attrs)
    yield shown
    yield Token(f"{tag}_close", tag, -1)


def _lead(token: Token, link: Link) -> None:
    """Give a link its permitted target."""
    url = str(token.attrs.get("href", ""))
    token.meta["url"] = url
    target = link(url)
    title = token.attrs.get("title")
    token.attrs = {} if title is None else {"title": title}
    if target is None or not is_safe(target):
        token.tag = "span"
    else:
        token.attrs = {"href": target, "rel": REL, **token.attrs}


def _picture(token: Token, link: Link, inside: bool) -> Iterator[Token]:
    """Yield the words of an image, as a link to it except inside another link."""
    url = str(token.attrs.get("src", ""))
    words = _text("".join(child.content for child in token.children or ()).strip() or url or "image")
    if inside:
        yield words
        return
    first = Token("link_open", "a", 1, attrs={"href": url})
    _lead(first, link)
    yield first
    yield words
    yield Token("link_close", first.tag, -1)


def _text(words: str) -> Token:
    return Token("text", "", 0, content=words)
