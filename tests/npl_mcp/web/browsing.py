"""A browser without a window: it keeps cookies, sends the forms of pages, and parses HTML."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from xml.etree.ElementTree import Element

import html5lib

from npl_mcp.config.domains import LISTED
from npl_mcp.stores.access import Permissions
from npl_mcp.web.browsers import TOKEN_COOKIE, as_cookie
from tests import engines
from tests.npl_mcp.http.http_server import Answer, Running, call, request, serving

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass
class Shown:
    answer: Answer

    @property
    def status(self) -> int:
        return self.answer.status

    @property
    def html(self) -> str:
        return self.answer.body.decode("utf-8")

    @cached_property
    def tree(self) -> Element:
        tree: Element = html5lib.parse(self.html, namespaceHTMLElements=False)
        return tree

    @property
    def text(self) -> str:
        main = self.tree.find(".//main")
        assert main is not None
        return " ".join("".join(main.itertext()).split())

    def all(self, tag: str) -> list[Element]:
        return list(self.tree.iter(tag))

    def forms(self, action: str) -> list[Element]:
        return [node for node in self.all("form") if node.get("action") == action]

    def fields(self, action: str, number: int = 0) -> dict[str, str]:
        """Return what a form sends as it stands.

        :param number: of the form, among those with this action.
        """
        form = self.forms(action)[number]
        values = {node.get("name", ""): node.get("value", "") for node in form.iter("input")}
        values |= {node.get("name", ""): "".join(node.itertext()) for node in form.iter("textarea")}
        for node in form.iter("select"):
            options = list(node.iter("option"))
            chosen = next((option for option in options if option.get("selected") is not None), options[0])
            values[node.get("name", "")] = "".join(chosen.itertext())
        return values


@dataclass
class Visitor:
    """A person with a browser.

    :param token: signed in with it.
    """

    server: Running
    token: str | None = None
    cookies: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.token is not None:
            self.cookies[TOKEN_COOKIE] = as_cookie(self.token)

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies:
            named["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = request(self.server, method, path, body, named)
        if "set-cookie" in answer.headers:
            name, _, value = answer.headers["set-cookie"].partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer

    def open(self, path: str) -> Shown:
        return Shown(self.send("GET", path, Accept="text/html"))

    def json(self, path: str) -> Any:
        """Return the data of a page's twin."""
        path, mark, query = path.partition("?")
        answer = self.send("GET", f"{path}.json{mark}{query}")
        assert answer.status == 200, answer.data
        return answer.data["data"]

    def post(self, path: str, fields: Mapping[str, str | list[str]], **headers: str) -> Shown:
        return Shown(self.send("POST", path, urlencode(fields, doseq=True).encode(), **{**FORM, **headers}))

    def submit(self, page: str, action: str, **changed: str) -> Shown:
        """Open a page, change fields of one of its forms, and send it."""
        return self.post(action, {**self.open(page).fields(action), **changed})


@dataclass
class Pages:
    """A server, and the tokens of those who visit it."""

    server: Running
    tokens: dict[str, str]

    def call(self, who: str, tool: str, /, **arguments: Any) -> Any:
        """Return the data of a tool's answer."""
        answer = call(self.server, tool, arguments, Authorization=f"Bearer {self.tokens[who]}")
        assert answer.status == 200, answer.data
        return answer.data["data"]

    def visitor(self, who: str) -> Visitor:
        return Visitor(self.server, self.tokens[who])

    def get(self, who: str, path: str) -> Answer:
        return self.visitor(who).send("GET", path)

    def data(self, who: str, path: str) -> Any:
        """Return the data of a page's twin."""
        return self.visitor(who).json(path)

    def send(self, who: str, path: str, **fields: str) -> Answer:
        """Send a form of one of our pages."""
        visitor = self.visitor(who)
        token = visitor.open("/sign-in").fields("/sign-in")["form_token"]
        return visitor.post(path, {"form_token": token, **fields}).answer


def without(*domains: str) -> dict[str, Permissions]:
    """Return permissions for all domains but each of some, by ``no-`` and its name."""
    return {f"no-{domain}": Permissions(frozenset(LISTED) - {domain}) for domain in domains}


@contextmanager
def visited(
    folder: Path, sights: Iterable[str], *flags: str, readers: tuple[str, ...] = (), **given: Any
) -> Iterator[Pages]:
    """Run a server for callers with tokens.

    :param sights: names of the callers, or what they may see by name.
    :param readers: those who only read.
    :param given: files and variables of the server.
    """
    tokens = engines.tokens(folder / "data", sights, readers=readers)
    with serving(folder, *flags, **engines.environment(folder / "data"), **given) as server:
        yield Pages(server, tokens)
