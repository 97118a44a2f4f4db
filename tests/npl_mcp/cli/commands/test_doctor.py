"""``npl-mcp doctor``, run as a person runs it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.stores.data_folder import Stores
from tests import engines
from tests.conftest import cases
from tests.folders import fill

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run it in a project with one document, for a user with an empty home directory."""
    (tmp_path / "home").mkdir()
    project = fill(tmp_path / "project", {"guide.md": "# Guide\n\nText.\n"})

    def work(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("NPL_")}
        return subprocess.run(
            [sys.executable, "-m", "npl_mcp", "--data-dir", str(tmp_path / "data"), *words],
            cwd=project,
            env={**kept, "HOME": str(tmp_path / "home"), **variables},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return work


def findings(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """Return the findings by name."""
    return {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}


def test_a_new_user_is_told_what_is_left_to_do(run: Run, tmp_path: Path) -> None:
    """No client is connected yet, nothing is wrong, and the doctor makes no file."""
    done = run("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{tmp_path / 'project'}: 1 Markdown files\n" in done.stdout
    assert "no client on this machine has an entry for npl\n" in done.stdout
    assert "npl-mcp, started at a terminal" in done.stdout
    assert not (tmp_path / "data").exists()


def test_each_problem_has_a_fix(run: Run, tmp_path: Path) -> None:
    """Problems are a missing root, a data folder below a file, and a missing program of a client."""
    cursor = '{"mcpServers": {"docs": {"command": "/gone/npl-mcp"}}}'
    fill(tmp_path, {"data": "", "home/.cursor/mcp.json": cursor, "project/.mcp.json": "{"})
    done = run("--root", "nowhere", "doctor", "--json")
    assert done.returncode == 1
    by_name = findings(done)
    wrong = {name: finding["state"] for name, finding in by_name.items() if finding["state"] != "ok"}
    wrong.pop("SQLite", None)  # as it is on this machine
    assert wrong == {**dict.fromkeys(("root", "data folder", "Cursor"), "problem"), "Claude Code": "warning"}
    assert all(by_name[name]["fix"] for name in (*wrong, "Claude Code"))
    assert "--root" in by_name["root"]["fix"]
    assert "/gone/npl-mcp" in by_name["Cursor"]["text"]


TABLES = cases("npl_mcp/cli/commands/doctor")
CLIENTS: dict[str, tuple[str, str]] = TABLES["clients"]


def test_clients_that_name_npl_are_found(run: Run, tmp_path: Path) -> None:
    """Each client's own form is read, in the user's file or in the project's."""
    project = str(tmp_path / "project")
    fill(tmp_path, {path: text.replace("PROJECT", project) for path, text in CLIENTS.values()})
    by_name = findings(run("--write", "doctor", "--json"))
    assert by_name["write"]["text"] == "there is no root, so tools may not change files"
    assert "--root" in by_name["write"]["fix"]
    assert "clients" not in by_name
    for client, (path, _) in CLIENTS.items():
        assert by_name[client]["state"] == "ok"
        assert by_name[client]["text"].startswith(f"{tmp_path / path} names npl: ")


def test_a_file_with_several_places_is_one_finding(run: Run, tmp_path: Path) -> None:
    """Other servers in the file do not matter; the project's entry outranks the user's."""
    other, own = {"mcpServers": {"x": {"command": "sh"}}}, {"mcpServers": {"npl": {"command": "env"}}}
    path = tmp_path / "home" / ".claude.json"
    for everywhere, here in ((other, own), (own, other), (own, {}), ({}, own)):
        said = {**everywhere, "projects": {str(tmp_path / "project"): here}}
        path.write_text(json.dumps(said), encoding="utf-8")
        texts = [finding["text"] for finding in json.loads(run("doctor", "--json").stdout)["findings"]]
        assert [text for text in texts if str(path) in text] == [f"{path} names npl: env"]


STARTED: dict[str, tuple[dict[str, Any], dict[str, str], bool]] = TABLES["started"]


@pytest.mark.parametrize("case", STARTED)
def test_a_client_that_lists_all_tools_is_told_of_fewer(run: Run, tmp_path: Path, case: str) -> None:
    """The finding is advice, not a problem."""
    entry, variables, told = STARTED[case]
    said = {"mcpServers": {"npl": {"command": "env", **entry}}}
    (tmp_path / "project" / ".mcp.json").write_text(json.dumps(said), encoding="utf-8")
    finding = findings(run("doctor", "--json", **variables))["Claude Code"]
    assert (finding["state"], "--domains reading" in str(finding["fix"])) == ("ok", told)


def test_settings_that_cannot_be_read_are_a_finding(run: Run) -> None:
    """The finding has the reason why a server does not start."""
    done = run("doctor", "--json", NPL_CACHE_BYTES="many")
    assert done.returncode == 1
    assert "NPL_CACHE_BYTES='many'" in findings(done)["settings"]["text"]


def test_the_database_is_looked_at_and_not_changed(run: Run, tmp_path: Path) -> None:
    """The doctor shows its schema; that of a later version is a problem."""
    data = tmp_path / "data"
    stores = Stores(data, engines.address(data))
    stores.database.open()
    assert findings(run("doctor", "--json", **engines.environment(data)))["database"]["state"] == "ok"
    with stores.database.write() as tx:
        tx.run("UPDATE alembic_version SET version_num = '0999x'")
    stores.close()
    done = run("doctor", "--json", **engines.environment(data))
    assert done.returncode == 1
    assert "0999x" in findings(done)["database"]["text"]


def test_a_running_server_answers(run: Run, served: Path) -> None:
    done = run("--data-dir", str(served), "doctor", "--json")
    assert " answers, process " in findings(done)["server"]["text"]


@pytest.mark.parametrize(
    ("words", "places"), [(["--write"], "the roots"), (["--write", "notes/"], "the roots, in notes/")]
)
def test_the_flag_for_edits_takes_no_command_as_its_folder(words: list[str], places: str, run: Run) -> None:
    by_name = findings(run("--root", ".", *words, "doctor", "--json"))
    assert by_name["write"]["text"] == f"tools may change sections of files below {places}"
