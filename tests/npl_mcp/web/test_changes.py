"""Change requests: a table with filters, and no unseen change is overwritten."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from npl_mcp.stores.artifact.comparing import compare
from npl_mcp.web.rendering import environment
from tests.conftest import cases
from tests.npl_mcp.documents.change_requests import CONFIG, SECOND
from tests.npl_mcp.http.http_server import Running, serving
from tests.npl_mcp.web.browsing import Visitor

STATES = ("Proposed", "Approved", "Waiting for rain")
TEXT = SECOND.replace("Intro text.", "Intro <b>text</b>.")


def make(folder: Path, number: int, **fields: str) -> Path:
    """Make a change request; return its file."""
    key = f"TST-{number:03d}"
    text = TEXT.replace("TST-002", key).replace("# Second", f"# Number {number}")
    for name, value in fields.items():
        text = text.replace(
            next(line for line in text.split("\n") if line.startswith(f"{name}:")), f"{name}: {value}"
        )
    file = folder / "docs" / "crs" / f"{key}-one.md"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("changes")
    (folder / "docs" / "crs").mkdir(parents=True)
    (folder / "docs" / ".mdt-config.toml").write_text(CONFIG.replace("docs/CRs", "crs"), encoding="utf-8")
    for number in range(1, 61):
        make(folder, number, status=STATES[number % 12 == 0], priority="High" if number < 4 else "Low")
    make(folder, 61, status=STATES[2])
    (folder / "docs" / "crs" / "TST-099-bad.md").write_bytes(b"---\ncode: TST-099\n---\n# \xff\n")
    with serving(folder, "--root", str(folder / "docs")) as running:
        yield running


@pytest.fixture
def visitor(server: Running) -> Visitor:
    return Visitor(server)


def file_of(server: Running, number: int) -> Path:
    return server.folder / "docs" / "crs" / f"TST-{number:03d}-one.md"


def test_the_table_has_every_change_request(visitor: Visitor) -> None:
    table = visitor.json("/changes")
    assert (table["total"], table["values"]["priority"]) == (62, ["Low", "Medium", "High"])
    assert set(table["values"]["status"]) == set(STATES)
    assert "51 to 62 of 62" in visitor.open("/changes?offset=50").text
    assert "51 to 62 of 62" not in visitor.open("/changes").text


@pytest.mark.parametrize(
    ("query", "total"),
    cases("npl_mcp/web/changes")["filters_select"],
)
def test_filters_select(visitor: Visitor, query: str, total: int) -> None:
    assert visitor.json(f"/changes?{query}")["total"] == total


def test_a_filter_or_project_that_is_not_there_is_told(visitor: Visitor) -> None:
    shown = visitor.open("/changes?status=Nowhere")
    assert (shown.status, "not a known status" in shown.text) == (400, True)
    assert visitor.open("/changes?project=NONE").status == 404


def test_a_change_request_shows_its_text_and_what_it_is(visitor: Visitor) -> None:
    shown = visitor.open("/changes/TST-001")
    assert "Intro <b>text</b>." in shown.text
    assert not shown.all("b")
    assert "kept: yes" in shown.text
    assert [heading.text for heading in shown.all("h2")][:2] == ["1. Description", "2. Rationale"]
    assert visitor.json("/changes/TST-001")["attributes"]["code"] == "TST-001"


RATIONALE = f"/changes/TST-{{:03d}}/edit?section={quote('## 2. Rationale')}"


def test_a_section_is_written(visitor: Visitor, server: Running) -> None:
    done = visitor.submit(
        RATIONALE.format(5), "/changes/TST-005/section", text="because\r\n\r\n  of rain\r\n"
    )
    assert (done.status, done.answer.headers["location"]) == (303, "/changes/TST-005#text")
    text = file_of(server, 5).read_text(encoding="utf-8")
    assert "## 2. Rationale\n\nbecause\n\n  of rain\n" in text
    assert "\r" not in text


def test_what_changed_meanwhile_is_shown_and_nothing_is_lost(visitor: Visitor, server: Running) -> None:
    file, action = file_of(server, 6), "/changes/TST-006/section"
    fields = visitor.open(RATIONALE.format(6)).fields(action)
    theirs = file.read_text(encoding="utf-8").replace("\nwhy\n", "\ntheir reason\n")
    file.write_text(theirs, encoding="utf-8")
    shown = visitor.post(action, {**fields, "text": "my reason"})
    assert shown.status == 409
    assert file.read_text(encoding="utf-8") == theirs
    gone, new = ([node.text for node in shown.all(tag)] for tag in ("del", "ins"))
    assert {"− why"} <= set(gone)
    assert {"+ their reason", "+ my reason"} <= set(new)
    again = shown.fields(action)
    assert again["text"] == "my reason"
    assert again["seen"].startswith("their reason")
    assert visitor.post(action, {**again, "text": "both reasons"}).status == 303
    assert "both reasons" in file.read_text(encoding="utf-8")


def test_a_change_elsewhere_in_the_file_does_not_matter(visitor: Visitor, server: Running) -> None:
    file, action = file_of(server, 7), "/changes/TST-007/section"
    fields = visitor.open(RATIONALE.format(7)).fields(action)
    file.write_text(file.read_text(encoding="utf-8").replace("first para", "other para"), encoding="utf-8")
    assert visitor.post(action, {**fields, "text": "mine"}).status == 303
    text = file.read_text(encoding="utf-8")
    assert "other para" in text
    assert "mine" in text


@pytest.mark.parametrize("gone", ["heading", "file"])
def test_a_text_for_what_is_gone_is_kept(visitor: Visitor, server: Running, gone: str) -> None:
    number = 8 if gone == "heading" else 9
    file, action = file_of(server, number), f"/changes/TST-00{number}/section"
    fields = visitor.open(RATIONALE.format(number)).fields(action)
    if gone == "file":
        file.unlink()
    else:
        file.write_text(file.read_text(encoding="utf-8").replace("2. Rationale", "2. Why"), encoding="utf-8")
    shown = visitor.post(action, {**fields, "text": "not lost"})
    assert shown.status == 409
    assert shown.fields(action)["text"] == "not lost"


def test_a_text_that_cannot_stand_there_is_kept_in_the_form(visitor: Visitor) -> None:
    action = "/changes/TST-010/section"
    shown = visitor.submit(RATIONALE.format(10), action, text="\n# Another title\n")
    assert shown.status in (400, 422)
    assert "Not saved" in shown.text
    assert "# Another title" in shown.fields(action)["text"]


def test_attributes_and_the_status_are_set(visitor: Visitor) -> None:
    action = "/changes/TST-011/attributes"
    page = visitor.open("/changes/TST-011")
    assert len(page.forms(action)) == 2
    data = visitor.json("/changes/TST-011")["attributes"]
    sent = {**page.fields(action), "seen.status": data["status"], "status": "On Hold"}
    assert visitor.post(action, sent).status == 303
    assert visitor.json("/changes/TST-011")["attributes"]["status"] == "On Hold"


def attributes(visitor: Visitor, key: str, **given: str) -> dict[str, str]:
    """Return the form of a change request's attributes with some changes."""
    return {**visitor.open(f"/changes/{key}").fields(f"/changes/{key}/attributes", 1), **given}


def test_only_what_changed_is_set(visitor: Visitor, server: Running) -> None:
    action = "/changes/TST-012/attributes"
    before = file_of(server, 12).read_text(encoding="utf-8")
    assert visitor.post(action, attributes(visitor, "TST-012")).status == 303
    assert file_of(server, 12).read_text(encoding="utf-8") == before
    assert visitor.post(action, attributes(visitor, "TST-012", assignee="ann")).status == 303
    after = file_of(server, 12).read_text(encoding="utf-8")
    assert "assignee: ann" in after
    assert "blocks" not in after


def test_attributes_changed_meanwhile_are_kept(visitor: Visitor, server: Running) -> None:
    """An attribute is overwritten only after the visitor has seen its change."""
    file, action = file_of(server, 13), "/changes/TST-013/attributes"
    sent = attributes(visitor, "TST-013", assignee="ann")
    theirs = file.read_text(encoding="utf-8").replace("priority: Low", "priority: Critical\nassignee: ben")
    file.write_text(theirs, encoding="utf-8")
    shown = visitor.post(action, sent)
    assert shown.status == 409
    assert file.read_text(encoding="utf-8") == theirs
    assert "assignee is now 'ben'" in shown.text
    again = shown.fields(action, 1)
    assert (again["assignee"], again["seen.assignee"]) == ("ann", "ben")
    assert visitor.post(action, {**again, "priority": again["seen.priority"]}).status == 303
    data: dict[str, Any] = visitor.json("/changes/TST-013")["attributes"]
    assert (data["priority"], data["assignee"]) == ("Critical", "ann")
    sent = attributes(visitor, "TST-013", assignee="cleo")
    file.write_text(file.read_text(encoding="utf-8").replace("Critical", "High"), encoding="utf-8")
    assert visitor.post(action, sent).status == 303
    data = visitor.json("/changes/TST-013")["attributes"]
    assert (data["priority"], data["assignee"]) == ("High", "cleo")


def test_a_value_that_cannot_be_is_kept_in_the_form(visitor: Visitor) -> None:
    action = "/changes/TST-014/attributes"
    shown = visitor.post(action, attributes(visitor, "TST-014", implementationDate="soon"))
    assert shown.status == 400
    assert "not a date" in shown.text
    assert "soon" in [field.get("value") for field in shown.all("input")]


def test_a_section_that_no_form_can_keep_is_not_edited(visitor: Visitor, server: Running) -> None:
    file = file_of(server, 15)
    file.write_text(file.read_text(encoding="utf-8").replace("\nwhy\n", "\nw\0hy \u202e\n"), encoding="utf-8")
    page = visitor.open(f"/changes/TST-015/edit?section={quote('## 2. Rationale')}")
    assert page.all("textarea") == []
    file.write_text(file.read_text(encoding="utf-8").replace("\0", ""), encoding="utf-8")
    fields = visitor.open(f"/changes/TST-015/edit?section={quote('## 2. Rationale')}").fields(
        "/changes/TST-015/section"
    )
    assert "why \u202e" in fields["text"]


def test_differences_have_no_empty_lines_between_lines() -> None:
    rows = [{"sign": sign, "text": f"line {sign}"} for sign in ("", "−", "+", "")]
    module = environment().get_template("change_parts.html").module
    html = str(module.difference([rows, rows], "same"))  # type: ignore[attr-defined]
    assert "\n\n" not in html.partition(">")[2].rpartition("</pre>")[0]
    assert "<del>− line −</del>" in html


@pytest.mark.parametrize(
    ("old", "new", "signs"),
    cases("npl_mcp/web/changes")["differences_show_what_is_gone_and_what_is_new"],
)
def test_differences_show_what_is_gone_and_what_is_new(old: str, new: str, signs: str) -> None:
    hunks = compare(old, new).hunks
    assert "…".join("".join(line.sign or "=" for line in lines) for lines in hunks) == signs
