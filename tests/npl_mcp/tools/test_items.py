"""The tools of the command line: whole items, agents, versions, notation."""

import pytest

from npl_index.errors import DocumentNotFoundError, InvalidRequestError
from npl_mcp.app.app import App
from npl_mcp.app.file_view import Files
from npl_mcp.config.settings import Settings
from npl_mcp.tools import items, survey
from npl_mcp.tools.items import items_agent, items_load, items_raw
from npl_mcp.tools.npl import npl_load_components
from npl_mcp.tools.survey import survey_agents, survey_notation, survey_versions
from tests.conftest import cases
from tests.folders import fill


@pytest.fixture
def files(settings: Settings) -> Files:
    """The files of a user without own prompts."""
    return Files(settings)


def test_no_tool_of_the_command_line_is_listed() -> None:
    """They would cost every agent tokens; each still describes its parameters."""
    for spec in (*items.TOOLS, *survey.TOOLS):
        assert not spec.listed
        assert spec.read_only
        assert spec.description.endswith(".")


def test_several_kinds_in_one_answer(files: Files) -> None:
    """There is one header; missing and skipped items are named with their kind."""
    groups = [
        {"kind": "c", "items": "syntax,fences,nosuch", "skip": "fen*"},
        {"kind": "meta", "items": "term-dictionary"},
    ]
    reply = items_load(files, groups)
    assert reply.flags == {"npl.def.loaded": "syntax", "npl.meta.loaded": "term-dictionary"}
    assert reply.header.count("@npl.") == 2
    assert reply.content.startswith("# syntax:\n")
    assert [(item.kind, item.name) for item in reply.missing or ()] == [("component", "nosuch")]
    assert reply.skipped == ("fences",)
    assert reply.problems is None


def test_one_bad_file_does_not_keep_the_others_back(settings: Settings) -> None:
    fill(settings.cwd, {".npl/npl/good.md": b"# Good\n"})
    fill(settings.cwd, {".npl/npl/bad.md": b"\xff\xfe"})
    reply = items_load(Files(settings), [{"kind": "c", "items": "bad,good,../x"}])
    assert reply.content == "# good:\n# Good\n\n"
    assert len(reply.problems or ()) == 2
    assert "bad.md' is not UTF-8" in " ".join(reply.problems or ())


@pytest.mark.parametrize(
    "groups",
    [
        [{"kind": "c"}],
        [{"kind": "c", "items": "a", "more": "x"}],
        [{"kind": "zz", "items": "a"}],
        [{"kind": "c", "items": "a"}] * 65,
    ],
)
def test_groups_that_cannot_be_read(groups: list[dict[str, str]], files: Files) -> None:
    with pytest.raises(InvalidRequestError):
        items_load(files, groups)


def test_one_item_as_it_is(files: Files) -> None:
    """The core reference needs no name; a missing item is an error."""
    assert items_raw(files, "init").content.startswith("# ")
    with pytest.raises(DocumentNotFoundError):
        items_raw(files, "schema", "nosuch")
    assert items_agent(files, "code-reviewer").content.startswith("# agent:code-reviewer:\n---\n")


def test_agents_and_where_they_lie(settings: Settings) -> None:
    """Paths below the working directory are relative to it; texts come only on request."""
    fill(settings.cwd, {".npl/core/agents/mole.md": b"---\nmodel: opus\n---\n# Mole\n"})
    reply = survey_agents(Files(settings), field="model:opus")
    assert [(agent.name, agent.location, agent.text) for agent in reply.agents] == [
        ("mole", ".npl/core/agents/mole.md", None)
    ]
    (mole,) = survey_agents(Files(settings), texts=True).agents
    assert mole.text == "---\nmodel: opus\n---\n# Mole\n"
    assert survey_agents(Files(settings), category="x").total == 1


def test_versions_of_a_file(files: Files) -> None:
    """They are compared, appended and renewed without touching a file."""
    assert {row.status for row in survey_versions(files, "").sections} == {"missing"}
    first = survey_versions(files, "", prompts=[])
    again = survey_versions(files, first.text or "", prompts=[])
    assert first.changes
    assert not again.changes
    assert (again.text or first.text) == first.text
    old = (first.text or "").replace("version: 2", "version: 1")
    assert survey_versions(files, old, renewed=["npl-conventions"]).text != old
    near = survey_versions(files, old, renewed=["npl-convention"]).near
    assert near is not None
    assert near[0] == "npl-conventions"


def test_texts_have_a_limit(files: Files) -> None:
    with pytest.raises(InvalidRequestError, match="characters"):
        survey_notation(files, "x" * ((4 << 20) + 1))
    assert survey_notation(files, "{a}", matches=1).used[0].matches == ("a",)


OWN: dict[str, tuple[str, ...]] = cases("npl_mcp/tools/items")["own"]
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
    line = items_load(app, [{"kind": "component", "items": wanted, "skip": "syntax.p*"}])
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
    group = {"kind": "component", "items": "*"}
    assert len(items_load(files, [group]).items) > 5
    fill(settings.cwd, {".npl/npl/own.md": b"# Own\n"})
    assert [item.name for item in items_load(files, [group]).items] == ["own"]
