"""Requests for pages as a browser sends them, for one caller."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from npl_mcp.config.domains import LISTED
from npl_mcp.stores.access import Permissions
from npl_mcp.web.browsers import SESSION_COOKIE, TOKEN_COOKIE, as_cookie, form_token
from tests import engines
from tests.folders import fill
from tests.npl_mcp.http.http_server import Answer, Running, call, request, serving

CONFIG = '[project]\ncode = "QUAY"\nname = "Quay"\nticketsPath = "crs"\n'
CR = (
    "---\ncode: QUAY-003\ntitle: Buoy\nstatus: Approved\ntype: Bug Fix\npriority: High\n---\n"
    "# Buoy\n\nIt sinks.\n"
)

_SESSION = "a-session-of-this-test"


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

    def get(self, who: str, path: str, **headers: str) -> Answer:
        return request(self.server, "GET", path, headers={"Cookie": self.cookies(who), **headers})

    def data(self, who: str, path: str) -> Any:
        """Return what a page shows, as its ``.json`` twin has it."""
        page, _, query = path.partition("?")
        answer = self.get(who, f"{page}.json?{query}")
        assert answer.status == 200, answer.body
        return answer.data["data"]

    def send(self, who: str, path: str, token: bool = True, origin: str = "", **fields: Any) -> Answer:
        """Send a form.

        :param token: whether it has what proves whose form it is.
        :param origin: of the page it stands on; empty for the right one.
        """
        proof = {"form_token": form_token(_SESSION, self._kept(who))} if token else {}
        headers = {
            "Cookie": self.cookies(who),
            "Content-Type": "application/x-www-form-urlencoded",
            "Origin": origin or f"http://127.0.0.1:{self.server.port}",
        }
        return request(self.server, "POST", path, urlencode({**proof, **fields}).encode(), headers)

    def _kept(self, who: str) -> str:
        return as_cookie(self.tokens[who])

    def cookies(self, who: str) -> str:
        """Return the cookies of a caller's browser."""
        return f"{SESSION_COOKIE}={_SESSION}; {TOKEN_COOKIE}={self._kept(who)}"


@contextmanager
def visited(folder: Path, *flags: str) -> Iterator[Pages]:
    """Run a server of a project with one change request, for ann and ben, a reader, and blind ones.

    One persona is blind for each domain, and has its name.
    """
    who = {name: Permissions() for name in ("ann", "ben", "reader")}
    who |= {f"no-{domain}": Permissions(frozenset(LISTED) - {domain}) for domain in LISTED}
    fill(folder / "work", {".mdt-config.toml": CONFIG, "crs/QUAY-003-buoy.md": CR})
    tokens = engines.tokens(folder / "data", who, readers=["reader"])
    with serving(folder, *flags, **engines.environment(folder / "data")) as running:
        yield Pages(running, tokens)
