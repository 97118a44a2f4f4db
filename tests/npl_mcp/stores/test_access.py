"""Tokens of callers in the database, and the command that makes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from npl_index.errors import InvalidRequestError
from npl_mcp.__main__ import main
from npl_mcp.stores.access import AccessStore, Sight, digest_of
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.errors import AlreadyExistsError, RecordNotFoundError
from tests import engines


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    found = engines.database(tmp_path / "data")
    yield found
    found.close()


@pytest.fixture
def access(database: Database) -> AccessStore:
    return AccessStore(database)


@pytest.mark.engine("sqlite")
def test_a_token_is_kept_as_its_digest_alone(access: AccessStore, database: Database, tmp_path: Path) -> None:
    """Nothing in the data folder holds what a caller sends."""
    token = access.add("alice")
    assert re.fullmatch(r"npl_[\w-]{43}", token)
    known = access.known()
    assert known is not None
    assert known[digest_of(token)].name == "alice"
    database.close()
    for file in (tmp_path / "data").rglob("*"):
        assert not file.is_file() or token.encode() not in file.read_bytes()


def test_no_token_was_ever_made(access: AccessStore, database: Database, tmp_path: Path) -> None:
    """To ask makes no data folder."""
    engines.unused(tmp_path / "data")
    assert access.known() is None
    assert not (tmp_path / "data").exists()
    database.open()
    assert access.known() is None


def test_a_token_says_what_it_was_made_with(access: AccessStore) -> None:
    """All of it is read back."""
    sight = Sight(frozenset({"npl", "chat"}), ("/a", "/b"))
    access.add("alice", sight, read_only=True, lifetime=timedelta(days=1))
    entry = access.list()[0]
    assert (entry.identity.name, entry.identity.sight) == ("alice", sight)
    assert (entry.identity.read_only, entry.state) == (True, "valid")
    assert entry.identity.expires_at is not None
    assert entry.identity.expires_at > entry.created_at


def test_names_that_cannot_be_told_apart_have_one_token(access: AccessStore) -> None:
    """A name has one valid token; one of another case might be taken for it in a mention."""
    access.add("alice")
    for name in ("alice", "Alice"):
        with pytest.raises(AlreadyExistsError, match="'alice' already has a token"):
            access.add(name)
    access.revoke("alice")
    access.add("ALICE")
    with pytest.raises(AlreadyExistsError, match="'ALICE' already has a token"):
        access.add("alice")
    access.revoke("ALICE")
    second = access.add("alice", Sight(frozenset({"npl"})))
    known = access.known()
    assert known is not None
    assert list(known) == [digest_of(second)]


@pytest.mark.parametrize("name", ["", " ", "a b", "-a", "é", "a/b", "a\nb", "x" * 65])
def test_names_that_do_not_serve_everywhere_are_refused(access: AccessStore, name: str) -> None:
    """A name is a persona, an agent's id and a mention."""
    with pytest.raises(InvalidRequestError):
        access.add(name)


def test_a_server_stays_closed_when_its_last_token_is_revoked(access: AccessStore) -> None:
    """Nobody has one then, which is not the same as that none is needed."""
    access.add("alice")
    access.revoke("alice")
    access.revoke("alice")
    assert access.known() == {}
    assert access.list()[0].state == "revoked"
    with pytest.raises(RecordNotFoundError, match="near: alice"):
        access.revoke("alise")


def test_an_ended_token_makes_room_for_a_new_one(access: AccessStore) -> None:
    """It is known, and not valid."""
    token = access.add("alice", lifetime=timedelta(microseconds=1))
    known = access.known()
    assert known is not None
    assert not known[digest_of(token)].is_valid()
    assert access.list()[0].state == "expired"
    assert access.add("alice") != token


def run(capsys: pytest.CaptureFixture[str], folder: Path, *words: str) -> tuple[int, str]:
    code = main(["--data-dir", str(folder), "token", *words])
    out, err = capsys.readouterr()
    return code, out if code == 0 else err


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints a token once, shows whose there are, and takes them away."""
    folder = tmp_path / "data"
    assert run(capsys, folder, "list") == (0, "there are no tokens\n")
    _, first = run(capsys, folder, "add", "alice", "--domains", "npl,coordination", "--read-only")
    code, second = run(capsys, folder, "add", "bob", "--root", "docs", "--expires", "30d")
    assert code == 0
    _, listed = run(capsys, folder, "list")
    assert first.strip() not in listed
    assert second.strip() not in listed
    head, alice, bob = (re.split(r"  +", line) for line in listed.splitlines())
    assert head == ["name", "state", "expires", "access", "domains", "documents"]
    assert alice == ["alice", "valid", "never", "read", "npl,session,artifact,review,worklog,chat", "all"]
    assert bob[3:] == ["read, write", "all", f"{Path('docs').absolute()}"]
    read = json.loads(run(capsys, folder, "list", "--json")[1])
    assert [(one["name"], one["read_only"], one["roots"], one["libraries"]) for one in read] == [
        ("alice", True, None, None),
        ("bob", False, [str(Path("docs").absolute())], None),
    ]
    assert run(capsys, folder, "revoke", "bob") == (0, "revoked: bob\n")
    assert "revoked" in run(capsys, folder, "list")[1].splitlines()[2]
    assert main(["--data-dir", str(folder), "check"]) == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("add", "a", "--domains", "chatt"), "there is no domain 'chatt'"),
        (
            ("add", "a", "--domains", "review"),
            "answers of the domain review contain data of artifact; add artifact",
        ),
        (("add", "a", "--expires", "soon"), "write 90m, 12h, 30d or 8w"),
        (("add", "a", "--expires", "0d"), "write 90m, 12h, 30d or 8w"),
        (("revoke", "a"), "there is no token of 'a'"),
    ],
)
def test_the_command_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], problem: str
) -> None:
    """Nothing is made then."""
    code, text = run(capsys, tmp_path / "data", *words)
    assert (code, problem in text) == (2, True)
