"""Whole items: the tool and the command line load the same."""

import pytest

from npl_index.errors import DocumentNotFoundError
from npl_index.items.loading import Group, load_groups
from npl_mcp.app.app import App
from npl_mcp.app.file_view import Files
from npl_mcp.config.settings import Settings
from npl_mcp.tools.npl import npl_load_components
from tests.folders import fill

OWN: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "a folder without items": (".npl/notes.txt",),
    "a component": (".npl/npl/own.md",),
    "components that replace bundled ones": (".npl/npl/syntax.md", ".npl/npl/syntax/own.md"),
    "another kind": (".npl/prds/own.md",),
    "a core reference": (".npl/npl.md",),
    "an agent of a client": (".claude/agents/own.md",),
}
WANTED = ("syntax.*", "*", "syntax", "own", "nosuch", "syntax,own,syn*")


@pytest.mark.thorough
@pytest.mark.parametrize("work", OWN)
@pytest.mark.parametrize("wanted", WANTED)
def test_tool_and_command_line_load_the_same(settings: Settings, work: str, wanted: str) -> None:
    """A worklog of the predecessor changes nothing, and both take a skip."""
    for path in OWN[work]:
        fill(settings.cwd, {path: b"# Own\n"})
    before = both(settings, wanted)
    fill(settings.cwd, {".npl/sessions/s1/meta.json": b"{}"})
    assert both(settings, wanted) == before
    if work in ("nothing", "a folder without items", "an agent of a client") and wanted == "syntax.*":
        assert len(before) > 5


def both(settings: Settings, wanted: str) -> list[str]:
    """Return the names that both load, after a comparison of their texts."""
    app = App(settings)
    line = load_groups(app.documents.own, [Group("component", wanted, "syntax.p*")])
    try:
        tool = npl_load_components(app, items=wanted, skip="syntax.p*")
    except DocumentNotFoundError:
        assert line.content == ""
        return []
    finally:
        app.close()
    assert tool.content == line.content
    assert tool.flags == line.flags
    return list(tool.loaded_items)


def test_a_folder_made_while_a_server_runs_counts(settings: Settings) -> None:
    files = Files(settings)
    group = Group("component", "*")
    assert len(load_groups(files.own, [group]).items) > 5
    fill(settings.cwd, {".npl/npl/own.md": b"# Own\n"})
    assert [item.name for item in load_groups(files.own, [group]).items] == ["own"]
