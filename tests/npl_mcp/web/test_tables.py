"""Tables of pages: every column sorts, words filter, and the same rows are a CSV file."""

import csv
import io
from collections.abc import Iterator

import pytest

from tests.conftest import cases
from tests.npl_mcp.http.http_server import Running, request, serving
from tests.npl_mcp.web.browsing import Visitor


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    files = {f"docs/p{at:03}.md": f"# Page {at}\n\n{'word ' * at}\n" for at in range(1, 251)}
    files["docs/=evil.md"] = "# =1+1\n"
    with serving(tmp_path_factory.mktemp("tables"), files=files) as running:
        yield running


def names(server: Running, query: str) -> list[str]:
    return [row["name"] for row in Visitor(server).json(f"/documents/docs:?{query}")["folder"]["items"]]


SORTED = cases("npl_mcp/web/tables")["sorted"]


@pytest.mark.parametrize("query", SORTED)
def test_a_table_shows_the_rows_that_were_asked_for(server: Running, query: str) -> None:
    assert names(server, query)[:3] == SORTED[query]


def test_a_column_that_is_not_there_is_refused_with_those_that_are(server: Running) -> None:
    shown = Visitor(server).open("/documents/docs:?sort=colour")
    assert shown.status == 400
    assert "tokens" in shown.text


def test_each_head_sorts_and_keeps_the_filter(server: Running) -> None:
    """Numbers begin with the largest; the same head turns the order."""
    visitor = Visitor(server)
    for asked, state, leads in (("", None, "-tokens"), ("&sort=-tokens", "descending", "tokens")):
        page = visitor.open(f"/documents/docs:?filter=page{asked}")
        head = next(node for node in page.all("th") if "".join(node.itertext()).startswith("Tokens"))
        link = head.find("a")
        assert link is not None
        assert head.get("aria-sort") == state
        assert f"sort={leads}" in link.get("href", "")
        assert "filter=page" in link.get("href", "")


def test_a_csv_file_has_all_rows_and_no_formulas(server: Running) -> None:
    answer = request(server, "GET", "/documents/docs:.csv?sort=name")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.reader(io.StringIO(answer.body.decode())))
    assert (rows[0][0], rows[0][2]) == ("Name", "Title")
    assert len(rows) == 252
    assert (rows[1][0], rows[1][2]) == ("'=evil.md", "'=1+1")
    assert request(server, "GET", "/search.csv").status == 404
