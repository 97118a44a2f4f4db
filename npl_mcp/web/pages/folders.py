"""Documents: roots, folders and files by their tokens; a file as outline, text and source."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from urllib.parse import unquote

from npl_index.library.documents import DocumentRef
from npl_mcp.app.section_edits import own_section
from npl_mcp.browsing.health import CHECKS, find_defects
from npl_mcp.browsing.looking import look
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.web.editing import TEMPLATE, Editor
from npl_mcp.web.markdown import Levels, markdown
from npl_mcp.web.routing import Action, Data, WebPage
from npl_mcp.web.tables import columns, paged
from npl_mcp.web.visits import Visit, address

SHOWN = 200
"""Rows of a folder, and sections of a file, on one page."""

COLUMNS = columns("name", "tokens", "title", "files", "sections")

ANCHOR = "s-"
"""Prefix of the anchors of headings, which keeps them apart from the ids of the page."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_MARKDOWN = (".md", ".markdown")


def to_document(name: str, **query: object) -> str:
    """Return the address of a document's page.

    :param name: the path of the document.
    """
    return address(f"/documents/{name}", **query)


async def documents(visit: Visit) -> Data:
    """Return a folder, a file, or all roots."""
    file, selector = visit.request.path_params.get("file"), visit.text("selector") or None
    offset, whole = visit.number("offset") or 0, bool(visit.text("filter"))
    shown = await visit.run(look, file, selector, offset, SHOWN, whole=whole)
    if "folder" in shown:
        # A file is one file; only its size counts.
        rows = [{**row, "files": None} if row["kind"] == "file" else row for row in shown["folder"]["items"]]
        page = paged(visit, rows, COLUMNS, SHOWN)
        return {"_table": page.pop("_table"), "folder": {**shown["folder"], **page}}
    view = "source" if visit.text("view") == "source" else "text"
    sections = partial(_sections, shown["file"], view, visit.number("line"))
    return {**shown, "view": view, "_sections": sections}


def _sections(file: Data, view: str, line: int | None) -> list[Data]:
    """Return the displayed sections, with the elements of their headings, and their texts as HTML or source.

    :param line: the line of the file to mark in the source.
    """
    leads, levels = _leading(file), Levels(2)
    definitions = file.get("definitions", "")
    sections = []
    for item in file["items"]:
        row, text = item["row"], item["text"]
        tag = levels.tag(row["depth"]) if row["level"] else "h1"
        html = markdown(text, leads, min(6, int(tag[1:]) + 1), definitions) if view != "source" else None
        if row["level"] or text:
            source = _marked(text, -1 if line is None else line - item["line"])
            sections.append({"row": row, "text": source, "tag": tag, "html": html})
    return sections


def _marked(text: str, line: int) -> tuple[str, str, str]:
    """Return a text in three parts: before a line, the line, and after it."""
    lines = text.splitlines(keepends=True)
    if not 0 <= line < len(lines):
        return text, "", ""
    return "".join(lines[:line]), lines[line], "".join(lines[line + 1 :])


def _leading(file: Data) -> Callable[[str], str | None]:
    """Return a function from a link of a file to its target: a page of a document, or another site."""
    root, folder = file["crumbs"][0]["address"], file["crumbs"][-1]["address"]
    shown = {item["row"]["anchor"] for item in file["items"]}
    inside = folder[len(root) :].lstrip("/")

    def leads(url: str) -> str | None:
        if _SCHEME.match(url):
            return url
        path, _, anchor = url.partition("#")
        path = unquote(path.partition("?")[0])
        place = f"#{ANCHOR}{anchor}" if anchor else ""
        if not path:
            return place if anchor in shown else to_document(file["address"]) + place
        whole = posixpath.normpath(posixpath.join("" if path.startswith("/") else inside, path.lstrip("/")))
        _, suffix = posixpath.splitext(whole)
        if whole.startswith("..") or suffix.lower() not in ("", *_MARKDOWN):
            return None
        return to_document(root + whole if root.endswith(":") else f"{root}/{whole}") + place

    return leads


async def _read(visit: Visit, file: str, section: str) -> Data:
    return as_dict(await visit.run(own_section, file, section))  # type: ignore[no-any-return]


async def _write(visit: Visit, file: str, section: str, text: str, digest: str) -> str:
    own = {"file": file, "selector": f"{section} [depth=0]"}
    written = await visit.call("npl_update_section", **own, operation="replace", content=text, expect=digest)
    return to_document(written["file"], selector=written["selector"].removesuffix(" [depth=0]"))


EDITOR = Editor("file", "/documents", _read, _write)


FINDINGS = columns("file", note="Problem", line="Line", tokens="Tokens")


async def health(visit: Visit) -> Data:
    """Return the problems of a folder, by default of the first check with problems."""
    folder = visit.text("file")
    result = await visit.run(lambda app: find_defects(app, DocumentRef(folder or None)))
    counts = Counter(defect.check for defect in result.defects)
    check = visit.text("check", next((name for name in CHECKS if counts[name]), next(iter(CHECKS))))
    rows = [as_dict(defect) for defect in result.defects if defect.check == check]
    return {
        **paged(visit, rows, FINDINGS, SHOWN),
        "name": folder,
        "check": check,
        "checks": CHECKS,
        "counts": {name: counts[name] for name in CHECKS},
        "documents": result.documents,
        "left": result.left,
    }


DECLARED = (
    WebPage("/documents", documents, "documents.html", "npl", "Documents"),
    WebPage("/documents/edit", EDITOR.page, TEMPLATE, "npl"),
    Action("/documents/section", EDITOR.save, "npl"),
    WebPage("/documents/health", health, "health.html", "npl"),
    WebPage("/documents/{file:path}", documents, "documents.html", "npl"),
)
