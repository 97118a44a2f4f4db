"""The commands that care for a data folder, run as a person runs them."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from npl_mcp.config.settings import Settings
from tests.conftest import Call, calls

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(settings: Settings) -> Run:
    """Run ``npl-mcp`` in the test's working folder."""

    def work(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "npl_mcp", "--data-dir", str(settings.data_dir), *arguments],
            cwd=settings.cwd,
            env={**os.environ, "HOME": str(settings.home)},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return work


@pytest.fixture
def plan(call: Call) -> int:
    """An artifact with two revisions, in a room."""
    content = base64.b64encode(b"# Plan\n\n## Steps\n\nOne.\n").decode()
    made = call(
        "artifact_create",
        name="plan",
        artifact_type="document",
        file_content_base64=content,
        filename="plan.md",
    )["data"]["artifact_id"]
    call("artifact_add_revision", artifact_id=made, file_content_base64=content, filename="plan.md")
    call("chat_create_room", name="room", members=["a"])
    return int(made)


def test_a_backup_is_a_data_folder(run: Run, settings: Settings, plan: int, tmp_path: Path) -> None:
    """What was kept is read from the copy as from the original."""
    done = run("backup", str(tmp_path / "copy"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"database and 2 revisions copied to {tmp_path / 'copy'}\n"
    requests = [("artifact_get", {"artifact_id": plan}), ("chat_get_feed", {"room_id": 1})]
    copied = calls(replace(settings, data_dir=tmp_path / "copy"), requests)
    original = calls(settings, requests)
    for one, other in zip(copied, original, strict=True):
        one["data"].pop("file_path", None)
        other["data"].pop("file_path", None)
        assert one == other
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".copy")] == []


def test_a_backup_overwrites_nothing(run: Run, plan: int, tmp_path: Path) -> None:
    """A folder that holds something is refused and stays as it is."""
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "notes.txt").write_text("mine")
    done = run("backup", str(tmp_path / "copy"))
    assert done.returncode == 2
    assert "not empty" in done.stderr
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["notes.txt"]


def test_a_check_finds_what_was_changed_behind_its_back(run: Run, settings: Settings, plan: int) -> None:
    """A file that is not the one that was stored is named; a backup of the rest is still made."""
    assert run("check").stdout == "database and 2 revisions checked: no problem\n"
    (settings.data_folder / "artifacts" / str(plan) / "revision-1-plan.md").write_text("# Other\n")
    done = run("check")
    assert done.returncode == 1
    assert f"revision 1 of artifact {plan}" in done.stderr
    assert done.stdout == "database and 2 revisions checked: 1 problems\n"
    copied = run("backup", str(settings.cwd / "copy"))
    assert copied.returncode == 1
    assert (settings.cwd / "copy" / "artifacts" / str(plan) / "revision-0-plan.md").is_file()


def test_worklogs_go_out_and_come_in(run: Run, settings: Settings, call: Call) -> None:
    """A session is rewritten, and taken over by another data folder."""
    call("worklog_init", session_id="s1", task="t")
    call("worklog_log", agent_id="a-1", action="found", summary="one")
    log = settings.cwd / ".npl" / "sessions" / "s1" / "worklog.jsonl"
    before = log.read_bytes()
    log.unlink()
    done = run("worklog", "export", "s1")
    assert done.stdout == f"written to {log.parent}\n"
    assert log.read_bytes() == before
    done = run("--data-dir", str(settings.cwd / "other"), "worklog", "import")
    assert done.stdout == "1 sessions with 1 entries taken over\n"
    done = run("worklog", "export", "s2")
    assert (done.returncode, done.stdout) == (2, "")
    assert "s2" in done.stderr
