"""An address of each declared page in the site of the safety tests."""

import re

from npl_mcp.web.routes import PAGES
from npl_mcp.web.routing import Action, WebPage

PARAMETERS = {
    "room": "1",
    "event": "1",
    "notification": "1",
    "session": "s",
    "worklog": "s",
    "artifact": "1",
    "review": "1",
    "revision": "0",
    "key": "BAD-001",
    "file": "hostile.md",
}
"""Values by the names of parameters in paths."""

QUERIES = {
    "/documents/edit": "file=hostile.md&selector=hostile+%23+Hostile",
    "/questions/one": "file=questions.md&line=1",
    "/changes/{key}/edit": "section=%23%23+Plain",
}
"""Query parameters by path."""

DECLARED: list[WebPage | Action] = [page for module in PAGES for page in module.DECLARED]
FORMS = [page for page in DECLARED if isinstance(page, Action)]
SHOWN = [page for page in DECLARED if isinstance(page, WebPage) and page.template]
"""Pages with a template."""

_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")


def names(path: str) -> list[str]:
    """Return the parameters of a declared path."""
    return _PARAMETER.findall(path)


def filled(path: str, **other: str) -> str:
    """Return the address of a declared path.

    :param other: values of some parameters.
    """
    values = {**PARAMETERS, **other}
    return _PARAMETER.sub(lambda match: values[match[1]], path)


def with_query(path: str) -> str:
    """Return the address of a declared path that can be opened."""
    query = QUERIES.get(path)
    return filled(path) + (f"?{query}" if query else "")


def twin(address: str) -> str:
    """Return the address of a page's data."""
    path, mark, query = address.partition("?")
    return f"{path.rstrip('/') or '/index'}.json{mark}{query}"
