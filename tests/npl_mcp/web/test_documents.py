"""Pages of documents: they show only what a caller may see, while it is indexed, and compressed."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import pytest

from npl_mcp.stores.access import Permissions
from tests.npl_mcp.http.http_server import request, serving
from tests.npl_mcp.web.browsing import Pages, Shown, Visitor, visited


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    folder = tmp_path_factory.mktemp("site")
    text = "# {0}\n\nTo [the other](../{1}/{1}.md).\n\n## End\n\n[Back](#{0})\n"
    files = {
        f"{own}/{own}.md": text.format(own, other) for own, other in (("docs", "more"), ("more", "docs"))
    }
    sights = {
        "all": Permissions(),
        "docs": Permissions(roots=(str(folder / "docs"),)),
        "none": Permissions(frozenset({"chat"})),
    }
    with visited(folder, sights, files=files) as pages:
        yield pages


def test_roots_are_those_of_the_caller(site: Pages) -> None:
    def tops(who: str) -> dict[str, int]:
        items = site.data(who, "/documents")["folder"]["items"]
        return {row["address"]: row["files"] for row in items if row["address"] != "bundled:"}

    assert tops("all") == {"docs:": 1, "more:": 1}
    assert tops("docs") == {"docs:": 1}
    assert site.get("none", "/documents").status == 404
    for path in ("more:", "more.md"):
        assert site.get("docs", f"/documents/{path}").status in (404, 403), path


def test_a_filter_sees_all_folders_of_the_caller(site: Pages) -> None:
    def files(who: str, path: str) -> list[str]:
        folder = site.data(who, f"{path}?filter=.md&sort=name")["folder"]
        return [row["address"] for row in folder["items"] if row["kind"] == "file"]

    assert {"docs.md", "more.md"} <= {
        address.partition(":")[2] or address for address in files("all", "/documents")
    }
    assert files("all", "/documents/more:") == ["more.md"]
    assert "more.md" not in files("docs", "/documents")


def test_links_lead_only_to_what_the_caller_sees(site: Pages) -> None:
    path = "/documents/health?file=docs.md&check=broken"
    assert [site.data(who, path)["total"] for who in ("all", "docs")] == [0, 1]


@pytest.mark.parametrize(
    ("query", "target"), [("", "#s-docs"), ("?selector=%23%23+End", "/documents/docs.md#s-docs")]
)
def test_a_link_within_a_document_leads_to_its_section(site: Pages, query: str, target: str) -> None:
    """A page that begins with a later section leads to the page of the whole document."""
    links = Shown(site.get("all", f"/documents/docs.md{query}")).all("a")
    assert [link.get("href") for link in links if link.text == "Back"] == [target]


@pytest.mark.parametrize("view", ["both", "links", "none"])
def test_a_view_that_is_not_there_shows_the_text(site: Pages, view: str) -> None:
    assert site.data("all", f"/documents/docs.md?view={view}")["view"] == "text"


@pytest.mark.parametrize("path", ["lib:guides", "lib%3Aguides/frost.md", "lib:guides@2/frost.md"])
def test_a_page_of_a_library_says_what_became_of_it(site: Pages, path: str) -> None:
    """Bookmarks and links in old texts lead to it."""
    answer = site.get("all", f"/documents/{path}")
    assert (answer.status, b"npl-mcp library export DIR" in answer.body) == (404, True)


def test_links_lead_to_names_with_any_mark(tmp_path: Path) -> None:
    """The first page, folders and files link to them, and the links work."""
    files = {"a: 50% #1?/b: 5% #2?.md": "# One\n\n[it](b:%205%25%20%232%3F.md)\n"}
    seen: dict[str, int] = {}
    waiting = ["/"]
    with serving(tmp_path, files=files) as server:
        while waiting:
            path = waiting.pop()
            answer = request(server, "GET", path)
            seen[path] = answer.status
            links = (urljoin(path, link.get("href", "")) for link in Shown(answer).all("a"))
            places = {urldefrag(link).url for link in links if link.startswith(("/documents", "/?"))}
            waiting += [
                place for place in places - seen.keys() if "bundled" not in place and "sort=" not in place
            ]
    assert [path for path, status in seen.items() if status != 200] == []
    assert any("view=source" in path for path in seen)


MANY = 1_500
"""Files of a folder that is indexed for a while."""


@pytest.mark.thorough
def test_a_folder_is_shown_while_it_is_read(tmp_path: Path) -> None:
    words = " ".join(f"word{number % 977}" for number in range(400))
    files = {f"docs/p{at:04}.md": f"# Page {at}\n\n{words} {at}\n" for at in range(MANY)}
    with serving(tmp_path, "--patience", "60", files=files) as running:
        visitor = Visitor(running)
        first = visitor.open("/documents/docs:")
        assert first.status == 200
        folder = visitor.json("/documents/docs:")["folder"]
        while "missing_files" in folder:
            assert folder["files"] + folder["missing_files"] == MANY
            assert folder["sections"] == folder["files"]
            folder = visitor.json("/documents/docs:")["folder"]
        assert (folder["files"], folder["total"]) == (MANY, MANY)
        assert "Indexing" not in visitor.open("/documents/docs:").text
        # The first page came while files were read, and renewed itself.
        assert f"of {MANY:,} files." in first.text
        renewed = {node.get("id") for node in first.tree.iter() if node.get("data-fresh") is not None}
        assert {"size", "here"} <= renewed


def test_what_is_long_is_sent_short(tmp_path: Path) -> None:
    plums = "".join(f"## Plum {number}\n\nA plum.\n\n" for number in range(99))
    with serving(tmp_path, files={"docs/plums.md": f"# Plums\n\n{plums}"}) as server:
        for path in ("/ask?context=plums&budget=900", "/ask.json?context=plums", "/static/npl.css"):
            plain = request(server, "GET", path)
            packed = request(server, "GET", path, headers={"Accept-Encoding": "gzip"})
            assert "content-encoding" not in plain.headers
            assert packed.headers["content-encoding"] == "gzip"
            assert len(gzip.decompress(packed.body)) == len(plain.body) > 3 * len(packed.body)
