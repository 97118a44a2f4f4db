"""Elements of pages that our templates do not make."""

from collections.abc import Iterator
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


ELEMENTS = _words(
    "html head meta title link script body a header nav form input span button main h1 h2 h3 h4 h5 h6",
    "p b i em strong s del ins ol ul li div section article aside time code pre label select option textarea",
    "table thead tbody tr th td dl dt dd details summary figure figcaption blockquote hr br small output",
    "datalist fieldset legend meter progress kbd mark footer optgroup caption abbr q sub sup img noscript",
)
"""HTML elements that templates and Markdown make."""

SVG = _words("svg g rect line path circle text title polyline polygon tspan a desc ellipse")

ATTRIBUTES = _words(
    "id class href rel type src lang charset name content value method action placeholder accesskey title",
    "datetime hidden tabindex role for rows cols required autocomplete autofocus selected checked disabled",
    "readonly scope colspan rowspan open start min max step multiple list size maxlength spellcheck alt",
    "width height download pattern inputmode form low high optimum loading",
    "data-copy data-stream data-tree data-leaf data-auto data-keep formaction formnovalidate",
    "data-renews data-swap data-swapped data-sets data-fresh data-ends data-stays data-draft data-news",
    "data-poll data-reply data-quote data-guard data-later data-line data-title form",
)

LEADING = _words("href src action formaction data-stream")

OF_SVG = _words(
    "viewBox preserveAspectRatio x y x1 x2 y1 y2 width height rx ry cx cy r d points fill stroke",
    "stroke-width opacity fill-opacity transform text-anchor dominant-baseline font-size stroke-dasharray",
)

_SVG_SPACE = "{http://www.w3.org/2000/svg}"
_SCRIPTS = ([("/static/npl.js", None)], [("/static/npl.js", "")])


def strange(tree: Element) -> Iterator[str]:
    """Yield the elements that none of our templates makes."""
    for element in tree.iter():
        if not isinstance(element.tag, str):  # a comment
            continue
        tag = element.tag.removeprefix(_SVG_SPACE)
        if tag not in (SVG if element.tag.startswith(_SVG_SPACE) else ELEMENTS):
            yield f"<{element.tag}>"
        for name, value in element.attrib.items():
            if name not in ATTRIBUTES | OF_SVG and not name.startswith("aria-"):
                yield f"<{element.tag} {name}>"
            if name in LEADING and not _leads_well(tag, name, value):
                yield f"<{element.tag} {name}={value!r}>"
    if [(element.get("src"), element.text) for element in tree.iter("script")] not in _SCRIPTS:
        yield "another script"
    if len(list(tree.iter("meta"))) != 2:
        yield "another meta"


def _leads_well(tag: str, name: str, value: str) -> bool:
    """Return whether an address is one of ours, or a link that a person may follow."""
    if value.startswith(("/", "#")) and not value.startswith(("//", "/\\")):
        return True
    scheme = urlsplit(value).scheme
    followed = scheme in ("http", "https", "mailto") or (not scheme and ":" not in value)
    return tag == "a" and name == "href" and followed
