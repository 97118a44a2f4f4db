"""Documents as people browse them: folders with their tokens, a file, its sections."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from npl_index.errors import DocumentNotFoundError, OutsideRootError, SectionNotFoundError
from npl_index.library.documents import DocumentRef
from npl_mcp.app.app import App
from npl_mcp.browsing.health import Defect, find_defects
from npl_mcp.browsing.looking import look
from npl_mcp.config.settings import Settings
from tests.conftest import Call, cases


@pytest.fixture
def app(settings: Settings) -> Iterator[App]:
    opened = App(settings)
    yield opened
    opened.close()


def seen(
    app: App, file: str | None = None, selector: str | None = None, limit: int = 100, whole: bool = False
) -> dict[str, Any]:
    return look(app, file, selector, 0, limit, whole=whole)


def test_folders_add_up(app: App) -> None:
    tops = {row["address"]: row for row in seen(app)["folder"]["items"]}
    assert {"docs:", "bundled:"} <= tops.keys()
    root = seen(app, "docs:")["folder"]
    assert [(row["kind"], row["name"], row["address"]) for row in root["items"]] == [
        ("folder", "plants", "docs:plants"),
        ("file", "guide.md", "guide.md"),
    ]
    assert (root["files"], root["name"], root["crumbs"]) == (3, "docs", [])
    assert root["tokens"] == tops["docs:"]["tokens"] == sum(row["tokens"] for row in root["items"])
    plants, _ = root["items"]
    below = seen(app, plants["address"])["folder"]
    assert sum(row["tokens"] for row in below["items"]) == plants["tokens"]
    assert [row["name"] for row in below["crumbs"]] == ["docs"]
    assert seen(app, "plants/*.md")["folder"]["address"] == "plants/*.md"
    assert {row["name"] for row in below["items"]} == {"roses.md", "beans.md"}
    files = seen(app, "docs:", whole=True)["folder"]["items"]
    assert {row["name"] for row in files} == {"guide.md", "plants/roses.md", "plants/beans.md"}


def test_a_file_shows_its_sections(app: App, call: Call) -> None:
    file = seen(app, "guide.md")["file"]
    index = call("npl_section_index", file="guide.md")["data"]
    assert (file["tokens"], file["total"] - 1) == (index["total_tokens"], index["total_sections"])
    rows = {row["selector"]: row for row in file["outline"]}
    title = index["sections"][0]
    for section in (title, *title["children"]):
        assert rows[section["selector"]]["tokens"] == section["token_count"]
    assert [row["anchor"] for row in file["outline"] if row["name"] == "See Also"] == [
        "see-also",
        "see-also-1",
    ]
    chosen = seen(app, "guide.md", selector="## Compost")["file"]
    assert chosen["items"][0]["row"]["name"] == "Compost"
    assert chosen["items"][0]["text"] == "Mix green and brown material."
    drip = seen(app, "docs:guide.md", selector="guide ### Drip lines", limit=1)["file"]
    assert (len(drip["items"]), drip["next"], drip["address"]) == (1, drip["offset"] + 1, "guide.md")


@pytest.mark.parametrize(
    ("file", "selector", "error"),
    [
        ("absent.md", None, DocumentNotFoundError),
        ("../docs/guide.md", None, OutsideRootError),
        ("guide.md", "## Absent", SectionNotFoundError),
    ],
)
def test_what_is_not_there(app: App, file: str, selector: str | None, error: type[Exception]) -> None:
    with pytest.raises(error):
        seen(app, file, selector)


LINKS = cases("npl_mcp/tools/documents")


def test_links_are_followed(docs: Path) -> None:
    app = App(Settings(cwd=docs, home=docs, roots=(docs,), cache_mode="memory"))

    def broken(file: str) -> list[Defect]:
        return [defect for defect in find_defects(app, DocumentRef(file)).defects if defect.check == "broken"]

    (docs / ".hidden").mkdir()
    (docs / ".hidden" / "secret.md").write_text("# Secret\n", encoding="utf-8")
    (docs.parent / "outside.md").write_text("# Outside\n", encoding="utf-8")
    (docs / "plants" / "README.md").write_text("# Plants\n\n## Pruning\n", encoding="utf-8")
    text = "".join(f"[x]({target})\n" for target, _ in LINKS)
    (docs / "links.md").write_text(f"# Own\n\n{text}", encoding="utf-8")
    rows = broken("links.md")
    assert [row.note for row in rows] == [f"{target}: {why}" for target, why in LINKS if why]
    assert rows[0].selector == "links > # Own"
    assert rows[0].line == 3 + [why is None for _, why in LINKS].index(False)
    assert broken("docs:") == rows
    assert broken("docs:plants") == []
    # What is remembered of a text goes with it.
    (docs / "links.md").write_text("# Own\n", encoding="utf-8")
    assert broken("docs:") == []
    app.close()
