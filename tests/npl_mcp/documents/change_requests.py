"""A project with one change request, as tests of change requests use it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from npl_mcp.config.settings import Settings

CONFIG = """\
[project]
name = "Test Project"
code = "TST"
id = "proj"
ticketsPath = "docs/CRs"
"""

SECOND = """\
---
code: TST-002
title: FM title
status: Proposed
dateCreated: 2025-01-01T00:00:00.000Z
type: Feature Enhancement
priority: Medium
lastModified: 2025-01-02T00:00:00.000Z
custom: "kept: yes"
---

# Second

Intro text.

## 1. Description

first para

### Sub A

aaa

### Sub B

bbb

## 2. Rationale

why

### Sub A

dup

## 3. Acceptance Criteria

- [ ] one
"""

NAME = "TST-002-second.md"


def make_project(folder: Path, text: str = SECOND, end: str = "\n", code: str = "TST") -> Path:
    """Make a project with one change request; return its file."""
    tickets = folder / "docs" / "CRs"
    tickets.mkdir(parents=True)
    (folder / ".mdt-config.toml").write_text(CONFIG.replace("TST", code), encoding="utf-8")
    file = tickets / NAME.replace("TST", code)
    file.write_bytes(text.replace("TST", code).replace("\n", end).encode())
    return file


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
