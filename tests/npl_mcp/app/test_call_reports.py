"""A caller's folder is refused in all forms that cannot be used."""

from pathlib import Path

import pytest

from npl_mcp.app.app import App
from npl_mcp.app.call_reports import Caller, FolderRefusedError
from npl_mcp.config.settings import Settings

FOLDERS = {
    "a loop of links": "{here}/one",
    "below a loop": "{here}/one/a/b",
    "many folders": "/" + "a/" * 3_000,
    "a long name": "/" + "x" * 300,
    "a file": "{here}/file",
    "below a file": "{here}/file/a",
    "half of a surrogate pair": "/\ud800",
    "a byte that is not UTF-8": "/\udc80",
    "NUL": "/a\0b",
    "not absolute": "a",
}


@pytest.mark.parametrize("case", FOLDERS)
@pytest.mark.parametrize("trusted", [True, False])
def test_a_folder_that_cannot_be_used_is_refused(
    settings: Settings, tmp_path: Path, case: str, trusted: bool
) -> None:
    """Circular links, too long names, files and impossible names are refused."""
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    (tmp_path / "file").touch()
    app = App(settings)
    with pytest.raises(FolderRefusedError):
        Caller(folder=FOLDERS[case].format(here=tmp_path), trusted=trusted).context(app)
    app.close()
