"""The state file says where a data folder's server listens."""

import json
import os
from pathlib import Path

import pytest

from npl_mcp.config.server_state import STATE_FILE, ServerState, read_state

STATE = {
    "url": "http://127.0.0.1:1",
    "socket": None,
    "pid": 1,
    "started": 2,
    "since": 3.5,
    "version": "0.1.0",
    "token": "t",
}


def write(folder: Path, body: object) -> Path:
    file = folder / STATE_FILE
    file.write_text(body if isinstance(body, str) else json.dumps(body), encoding="utf-8")
    file.chmod(0o600)
    return file


def test_what_a_server_writes_is_read(tmp_path: Path) -> None:
    write(tmp_path, {**STATE, "places": "NPL_HOME=/n", "later": 1})
    wanted = ServerState("http://127.0.0.1:1", None, 1, 2, 3.5, "0.1.0", "t", places="NPL_HOME=/n")
    assert read_state(tmp_path) == read_state(tmp_path, only_own=True) == wanted


@pytest.mark.parametrize(
    "body",
    [
        *("", "[]", "{", "\0", "null", "[" * 50_000),
        *({}, {**STATE, "url": 3}, {**STATE, "url": None}, {**STATE, "pid": "1"}, {**STATE, "token": None}),
    ],
)
def test_a_damaged_file_counts_as_none(body: object, tmp_path: Path) -> None:
    write(tmp_path, body)
    assert read_state(tmp_path) is None


@pytest.mark.skipif(os.name == "nt", reason="modes are of POSIX")
def test_a_file_that_others_can_write_is_not_trusted(tmp_path: Path) -> None:
    """It could send the user's calls to another user's server."""
    file = write(tmp_path, STATE)
    file.chmod(0o666)
    assert read_state(tmp_path, only_own=True) is None
    file.chmod(0o600)
    assert read_state(tmp_path, only_own=True) is not None
