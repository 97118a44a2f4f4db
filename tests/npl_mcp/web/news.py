"""The news of a page, as a browser reads them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse

from tests.npl_mcp.web.pages import Pages


@dataclass
class News:
    """Server-sent events on their way.

    ``cursor`` is the id of the last one, by which a browser goes on.
    """

    answer: HTTPResponse
    cursor: str = ""

    def next(self) -> tuple[str, str]:
        """Return the type and the data of the next event; pings are not events."""
        kind, data = "message", list[str]()
        while True:
            line = self.answer.readline().decode()
            assert line, "the news ended"
            name, _, value = line.rstrip("\r\n").partition(": ")
            if name == "id":
                self.cursor = value
            elif name == "event":
                kind = value
            elif name == "data":
                data.append(value)
            elif not name and data:
                return kind, "\n".join(data)


@contextmanager
def told(pages: Pages, who: str, path: str, cursor: str = "") -> Iterator[News]:
    """Read the news of a page.

    :param cursor: where the browser left off, if it was cut off.
    """
    line = HTTPConnection("127.0.0.1", pages.server.port, timeout=60)
    try:
        headers = {"Cookie": pages.cookies(who), **({"Last-Event-ID": cursor} if cursor else {})}
        line.request("GET", path, headers=headers)
        yield News(line.getresponse())
    finally:
        line.close()
