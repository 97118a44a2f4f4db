"""A project with one change request, as tests use it."""

from dataclasses import replace
from pathlib import Path

from npl_mcp.config.settings import Settings
from npl_mcp.documents.change_requests import ChangeRequests
from npl_mcp.documents.projects import Projects
from tests.conftest import case_text

CONFIG = """\
[project]
name = "Test Project"
code = "TST"
id = "proj"
ticketsPath = "docs/CRs"
"""

SECOND = case_text("texts/change-request.md")

NAME = "TST-002-second.md"


def make_project(folder: Path, text: str = SECOND, end: str = "\n", code: str = "TST") -> Path:
    """Make a project with one change request; return its file."""
    tickets = folder / "docs" / "CRs"
    tickets.mkdir(parents=True)
    (folder / ".mdt-config.toml").write_text(CONFIG.replace("TST", code), encoding="utf-8")
    file = tickets / NAME.replace("TST", code)
    file.write_bytes(text.replace("TST", code).replace("\n", end).encode())
    return file


def changes_in(folder: Path, *roots: Path) -> ChangeRequests:
    """Return the change requests of an application that was just started."""
    return ChangeRequests(Projects(folder, roots))


def inside(settings: Settings, folder: Path) -> Settings:
    """Return settings of a server that was started in a project."""
    return replace(settings, cwd=folder)


def without_stamp(data: bytes) -> bytes:
    """Return a file's bytes without the value of ``lastModified``."""
    begin = data.find(b"lastModified: ")
    if begin < 0:
        return data
    stop = min(at for end in (b"\r", b"\n") if (at := data.find(end, begin)) >= 0)
    return data[: begin + len(b"lastModified: ")] + data[stop:]
