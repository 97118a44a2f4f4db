"""Start: a new visitor learns what npl is for, tries it and gets the entry for a client."""

from pathlib import Path

from tests.npl_mcp.http.http_server import serving
from tests.npl_mcp.web.browsing import Visitor


def test_a_new_visitor_is_told_what_to_do(tmp_path: Path) -> None:
    """Once a name is chosen the page is an inbox, and still says how to connect."""
    files = {"docs/plums.md": "# Plums\n\n## Size\n\n## Pruning plums in July\n\nCut.\n"}
    with serving(tmp_path, files=files) as running:
        visitor = Visitor(running)
        shown = visitor.open("/")
        assert "exactly these passages" in shown.text
        assert f"claude mcp add --transport http npl http://127.0.0.1:{running.port}/mcp" in shown.text
        assert visitor.json("/index")["new"]
        assert visitor.open("/ask?context=Pruning+plums+in+July").status == 200
        fields = shown.fields("/name")
        assert visitor.post("/name", {**fields, "name": "ann"}).status == 303
        text = visitor.open("/").text
        assert "Inbox of ann" in text
        assert "claude mcp add" in text
        assert not visitor.json("/index")["new"]
