"""Health of a folder: each seeded defect is reported at its line; sections are edited in place."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from npl_index.library.documents import DocumentRef
from npl_mcp.app.app import App
from npl_mcp.browsing import health
from npl_mcp.config.settings import Settings
from tests.npl_mcp.http.http_server import Running, request, serving
from tests.npl_mcp.web.browsing import Visitor

FILES = {
    "README.md": "# Lamp\n\nSee [rules](rules.md), [nothing](gone.md) and [no place](rules.md#none).\n",
    "rules.md": "# Rules\n\nTrim the wick each hour.\n",
    "long.md": "# Long\n\n" + "A ship came by and nobody saw it. " * 400,
    "wiki.md": "# Wiki\n\n[[notes/linked|a note]], [[Deep#Part]], [[unwritten]]\n\n<!-- [x](gone.md) -->\n",
    "notes/linked.md": "# Linked\n\nText.\n",
    "notes/more/deep.md": "# Deep\n\nText.\n",
    "pages.md": (
        "# Pages\n\n[a](#स्थापना) [b](#การติดตั้ง) [c](#field) [d](#own)\n\n## स्थापना\n\nOne.\n\n"
        "## การติดตั้ง {#own}\n\n`x`{#field}\n"
    ),
    "front.md": (
        "---\nname: keeper\ntags: [lamp, sea]\n---\n# Front\n\nText.\n\n## Part\n\nOne.\n\n### Deep\n\nTwo.\n"
    ),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    files = {f"docs/{name}": text for name, text in FILES.items()}
    with serving(tmp_path_factory.mktemp("health"), "--write", files=files) as running:
        yield running


def defects(server: Running, check: str) -> list[tuple[str, int]]:
    health: dict[str, Any] = {"left": 1}
    while health["left"]:  # the first calls may find files that are not indexed yet
        health = Visitor(server).json(f"/documents/health?file=docs:&check={check}")
    return sorted((row["file"], row["line"]) for row in health["items"])


def test_each_defect_is_found_at_its_line(server: Running) -> None:
    assert defects(server, "broken") == [("README.md", 3), ("README.md", 3), ("wiki.md", 3)]
    assert defects(server, "long") == [("long.md", 1)]


def test_a_folder_too_large_for_one_call_is_checked_by_several(
    server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call reads at least a document and counts the rest; the results are equal."""
    monkeypatch.setattr(health, "SECONDS", 0.000_001)
    expected = Visitor(server).json("/documents/health?file=docs:")["counts"]
    app = App(Settings(cwd=tmp_path, home=tmp_path, roots=(server.folder / "docs",), cache_mode="memory"))
    with closing(app):
        left = [len(FILES)]
        while left[-1]:
            look = health.find_defects(app, DocumentRef("docs:"))
            left.append(look.left)
    assert set(range(len(FILES))) <= set(left)
    assert len(look.defects) == sum(expected.values())


def test_a_row_opens_at_its_line(server: Running) -> None:
    visitor = Visitor(server)
    page = visitor.open("/documents/health?file=docs:&check=broken")
    link = next(link.get("href", "") for link in page.all("a") if "line=3" in link.get("href", ""))
    marked = visitor.open(link.partition("#")[0]).all("mark")
    assert [node.get("id") for node in marked] == ["line"]
    assert "gone.md" in "".join(marked[0].itertext())


def test_front_matter_is_a_table(server: Running) -> None:
    page = Visitor(server).open("/documents/front.md")
    assert [node.text for node in page.all("dt")] == ["name", "tags"]
    assert [node.text for node in page.all("dd")] == ["keeper", "lamp, sea"]


EDIT = "/documents/edit?file=front.md&selector=front+%3E+%23%23+Part"
SAVE = "/documents/section"


def test_a_section_is_edited_without_its_subsections(server: Running) -> None:
    """A preview writes nothing; a text changed meanwhile is not overwritten, and the input stays."""
    visitor, file = Visitor(server), Path(server.folder) / "docs" / "front.md"
    before = file.read_text(encoding="utf-8")
    typed = {**visitor.open(EDIT).fields(SAVE), "text": "## Part\n\n*Mine.*"}
    shown = visitor.post(SAVE, {**typed, "action": "preview"})
    assert (shown.status, file.read_text(encoding="utf-8")) == (200, before)
    assert ["".join(node.itertext()) for node in shown.all("em")] == ["Mine."]
    fields = shown.fields(SAVE)
    assert fields["text"].strip() == "## Part\n\n*Mine.*"
    file.write_text(before.replace("One.", "Theirs."), encoding="utf-8")
    refused = visitor.post(SAVE, {**fields, "action": ""})
    assert refused.status == 409
    assert "Theirs." in refused.text
    assert "*Mine.*" in refused.text
    done = visitor.post(SAVE, refused.fields(SAVE))
    assert done.status == 303
    assert file.read_text(encoding="utf-8") == before.replace("One.", "*Mine.*")


def test_bundled_prompts_offer_no_edits(server: Running) -> None:
    assert b"Edit" not in request(server, "GET", "/documents/npl.md").body
    assert b"Edit" in request(server, "GET", "/documents/front.md").body


def test_pages_of_a_server_that_only_reads_offer_no_edits(tmp_path: Path) -> None:
    with serving(tmp_path, files={"docs/a.md": "# A\n\nText.\n"}) as running:
        assert b"Edit" not in request(running, "GET", "/documents/a.md").body
        assert request(running, "GET", "/documents/edit?file=a.md&selector=a").status == 403
