"""Change requests: a table, a page for each, and edits that overwrite only known text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from urllib.parse import parse_qsl

from npl_mcp.documents.change_requests import ATTRIBUTES
from npl_mcp.documents.format import KEY_LISTS, PRIORITIES, STATUSES, TYPES, without_title
from npl_mcp.documents.tickets import DEFINED, FACETS
from npl_mcp.tools.contract.error_codes import ErrorCode
from npl_mcp.web.editing import TEMPLATE, Editor
from npl_mcp.web.routing import TEAM, Action, Data, FormPage, WebPage
from npl_mcp.web.tables import columns, paged
from npl_mcp.web.visits import CallError, Visit, address

SHOWN = 50
"""Rows of a page in the table."""

COLUMNS = columns("key", "title", "status", "priority", "type", "assignee", phaseEpic="Phase")


async def changes(visit: Visit) -> Data:
    """Return a table of the change requests of a project that pass the filters."""
    chosen = {name: values for name in FACETS if (values := visit.texts(name))}
    projects = (await visit.call("list_projects"))["items"]
    shown: Data = {"projects": projects, "filters": chosen, "_types": TYPES, "_priorities": PRIORITIES}
    if not projects:
        return shown
    project = visit.text("project") or projects[0]["code"]
    every = rows = await visit.every("list_crs", project=project)
    if chosen:
        rows = await visit.every("list_crs", project=project, filters=chosen)
    return {**shown, **paged(visit, rows, COLUMNS, SHOWN), "project": project, "values": _values(every)}


def _values(rows: Sequence[Data]) -> dict[str, list[str]]:
    """Return the values in use of each filter; defined values come first, in their order."""
    used = {name: {row[name] for row in rows if row["type"] and row.get(name)} for name in FACETS}
    return {name: sorted(values, key=partial(_place, name)) for name, values in used.items()}


def _place(name: str, value: str) -> tuple[int, str]:
    defined = DEFINED.get(name, ())
    return defined.index(value) if value in defined else len(defined), value.casefold()


async def create(visit: Visit) -> str:
    """Create a change request."""
    form = visit.form
    data = {name: form[name] for name in ("title", "priority", "assignee", "phaseEpic") if form.get(name)}
    project = form.get("project") or None
    created = await visit.call("create_cr", type=form.get("type", ""), data=data, project=project)
    return address(f"/changes/{created['key']}")


async def change(visit: Visit) -> Data:
    """Return a change request: attributes, text, sections, and gaps."""
    key = visit.path("key")
    attributes = await visit.call("get_cr", key=key, mode="attributes")
    whole = await visit.call("get_cr", key=key)
    sections = await visit.call("manage_cr_sections", key=key, operation="list")
    lacks = await visit.call("suggest_cr_improvements", key=key)
    return {
        "key": attributes["code"],
        "attributes": attributes,
        "path": whole["path"],
        "content": whole["content"],
        "suggestions": lacks["suggestions"],
        "_text": without_title(whole["content"]),
        "_edits": [
            (_heading(path), address(f"/changes/{key}/edit", section=path))
            for path in (row["section"] for row in sections["sections"])
        ],
        "_back": address("/changes", **dict(parse_qsl(visit.text("back")))),
        "_names": ATTRIBUTES,
        "_keys": KEY_LISTS,
        "_statuses": STATUSES,
        "_priorities": PRIORITIES,
    }


def _heading(path: str) -> str:
    """Return the words of the last heading of a section's path."""
    return path.rpartition(" / ")[2].lstrip("# ")


async def _read(visit: Visit, key: str, section: str) -> Data:
    given = {"key": key, "section": section, "operation": "get"}
    return await visit.call("manage_cr_sections", **given)  # type: ignore[no-any-return]


async def _write(visit: Visit, key: str, section: str, text: str, digest: str) -> str:
    given = {"key": key, "section": section, "content": text, "expect": digest}
    written = await visit.call("manage_cr_sections", **given, operation="replace")
    return address(f"/changes/{written['key']}") + "#text"


EDITOR = Editor("key", "/changes", _read, _write)


async def save_attributes(visit: Visit) -> str | FormPage:
    """Set the changed attributes, or the status, unless others have changed the same ones meanwhile."""
    key = visit.path("key")
    names = ("status",) if "status" in visit.form else ATTRIBUTES
    seen = {name: visit.form.get(f"seen.{name}", "").strip() for name in names}
    yours = {name: visit.form.get(name, "").strip() for name in names}
    wanted = {name: value for name, value in yours.items() if value != seen[name]}
    now = await visit.call("get_cr", key=key, mode="attributes")
    theirs = {name: str(now.get(name) or "") for name in wanted}
    try:
        for name, value in theirs.items():
            if value not in (seen[name], yours[name]):
                message = f"{name} is now {value!r}; you saw {seen[name]!r} and wrote {yours[name]!r}"
                raise CallError(message, ErrorCode.ALREADY_EXISTS)
        if "status" in wanted:
            await visit.call("update_cr_status", key=key, status=wanted["status"], expect=now["digest"])
        elif wanted:
            await visit.call("update_cr_attrs", key=key, attributes=wanted, expect=now["digest"])
    except CallError as error:
        data = {**await change(visit), "_problem": error.message, "_typed": wanted}
        return FormPage("change.html", data, error.code.status)
    return address(f"/changes/{key}")


DECLARED = (
    WebPage("/changes", changes, "changes.html", "cr", "Changes", entry=TEAM),
    WebPage("/changes/{key}", change, "change.html", "cr"),
    WebPage("/changes/{key}/edit", EDITOR.page, TEMPLATE, "cr"),
    Action("/board/new", create, "cr"),
    Action("/changes/{key}/section", EDITOR.save, "cr"),
    Action("/changes/{key}/attributes", save_attributes, "cr"),
)
