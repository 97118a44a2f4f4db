"""Pages of folders that are being indexed show what is ready, its share, and later the rest."""

from pathlib import Path

import pytest

from tests.npl_mcp.http.http_server import serving
from tests.npl_mcp.web.browsing import Visitor

FILES = 1_500


@pytest.mark.thorough
def test_a_folder_is_shown_while_it_is_read(tmp_path: Path) -> None:
    words = " ".join(f"word{number % 977}" for number in range(400))
    files = {f"docs/p{at:04}.md": f"# Page {at}\n\n{words} {at}\n" for at in range(FILES)}
    with serving(tmp_path, "--patience", "60", files=files) as running:
        visitor = Visitor(running)
        first = visitor.open("/documents/docs:")
        assert first.status == 200
        folder = visitor.json("/documents/docs:")["folder"]
        while "missing_files" in folder:
            assert folder["files"] + folder["missing_files"] == FILES
            assert folder["sections"] == folder["files"]
            folder = visitor.json("/documents/docs:")["folder"]
        assert (folder["files"], folder["total"]) == (FILES, FILES)
        assert "Indexing" not in visitor.open("/documents/docs:").text
        # The first page came while files were read, and renewed itself.
        assert f"of {FILES:,} files." in first.text
        renewed = {node.get("id") for node in first.tree.iter() if node.get("data-fresh") is not None}
        assert {"size", "here"} <= renewed
