"""Tokens of callers in the database, and the command that makes them."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from npl_index.errors import InvalidRequestError
from npl_mcp.stores.access import Permissions, add_token, identities, revoke_token, token_digest, tokens
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.errors import AlreadyExistsError, RecordNotFoundError
from npl_mcp.stores.base.paging import now
from npl_mcp.stores.data_folder import Stores
from tests import engines
from tests.conftest import cases
from tests.programs import Ended, Run


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = engines.database(tmp_path / "data")
    yield made
    made.close()


@pytest.mark.engine("sqlite")
def test_a_token_is_kept_as_its_digest_alone(database: Database, tmp_path: Path) -> None:
    token = database.writing(add_token, "alice")
    assert re.fullmatch(r"npl_[\w-]{43}", token)
    known = database.reading(identities)
    assert known is not None
    assert known[token_digest(token)].name == "alice"
    database.close()
    for file in (tmp_path / "data").rglob("*"):
        assert not file.is_file() or token.encode() not in file.read_bytes()


def test_no_token_was_ever_made(tmp_path: Path) -> None:
    with closing(Stores(tmp_path / "data", engines.empty_address(tmp_path / "data"))) as stores:
        assert stores.identities() is None
        assert not (tmp_path / "data").exists()
        stores.database.open()
        assert stores.identities() is None


def test_a_token_says_what_it_was_made_with(database: Database) -> None:
    sight = Permissions(frozenset({"npl", "chat"}), ("/a", "/b"))
    database.writing(add_token, "alice", sight, read_only=True, lifetime=timedelta(days=1))
    entry = database.reading(tokens)[0]
    assert (entry.name, entry.permissions) == ("alice", sight)
    assert (entry.read_only, entry.state) == (True, "valid")
    assert entry.expires_at is not None
    assert entry.expires_at > now()


def test_names_that_cannot_be_told_apart_have_one_token(database: Database) -> None:
    """A name has one valid token; a second name in another case could be confused in a mention."""
    database.writing(add_token, "alice")
    for name in ("alice", "Alice"):
        with pytest.raises(AlreadyExistsError, match="'alice' already has a token"):
            database.writing(add_token, name)
    database.writing(revoke_token, "alice")
    database.writing(add_token, "ALICE")
    with pytest.raises(AlreadyExistsError, match="'ALICE' already has a token"):
        database.writing(add_token, "alice")
    database.writing(revoke_token, "ALICE")
    second = database.writing(add_token, "alice", Permissions(frozenset({"npl"})))
    known = database.reading(identities)
    assert known is not None
    assert list(known) == [token_digest(second)]


@pytest.mark.parametrize("name", ["", " ", "a b", "-a", "é", "a/b", "a\nb", "x" * 65])
def test_names_that_do_not_serve_everywhere_are_refused(database: Database, name: str) -> None:
    """A name is a persona, an agent's id and a mention."""
    with pytest.raises(InvalidRequestError):
        database.writing(add_token, name)


def test_a_server_stays_closed_when_its_last_token_is_revoked(database: Database) -> None:
    """Tokens are still required although none is valid."""
    database.writing(add_token, "alice")
    database.writing(revoke_token, "alice")
    database.writing(revoke_token, "alice")
    assert database.reading(identities) == {}
    assert database.reading(tokens)[0].state == "revoked"
    with pytest.raises(RecordNotFoundError, match="near: alice"):
        database.writing(revoke_token, "alise")


def test_an_ended_token_makes_room_for_a_new_one(database: Database) -> None:
    token = database.writing(add_token, "alice", lifetime=timedelta(microseconds=1))
    known = database.reading(identities)
    assert known is not None
    assert not known[token_digest(token)].is_valid()
    assert database.reading(tokens)[0].state == "expired"
    assert database.writing(add_token, "alice") != token


@pytest.fixture
def run(tmp_path: Path, program: Run) -> Run:
    """Run ``npl-mcp token``."""

    def in_folder(*words: str) -> Ended:
        return program("npl-mcp", "--data-dir", str(tmp_path / "data"), "token", *words)

    return in_folder


def test_the_command(tmp_path: Path, run: Run, program: Run) -> None:
    """The command prints a new token once, lists the names, and revokes tokens."""
    assert run("list") == (0, "there are no tokens\n", "")
    first = run("add", "alice", "--domains", "npl,coordination", "--read-only").out
    second = run("add", "bob", "--root", "docs", "--expires", "30d")
    assert second.code == 0
    listed = run("list").out
    assert first.strip() not in listed
    assert second.out.strip() not in listed
    head, alice, bob = (re.split(r"  +", line) for line in listed.splitlines())
    assert head == ["name", "state", "expires", "access", "domains", "documents"]
    assert alice == ["alice", "valid", "never", "read", "artifact,chat,npl,review,session,worklog", "all"]
    assert bob[3:] == ["read, write", "all", f"{Path('docs').absolute()}"]
    assert [
        (row["name"], row["read_only"], row["roots"]) for row in json.loads(run("list", "--json").out)
    ] == [("alice", True, None), ("bob", False, [str(Path("docs").absolute())])]
    assert run("revoke", "bob")[:2] == (0, "revoked: bob\n")
    assert "revoked" in run("list").out.splitlines()[2]
    assert program("npl-mcp", "--data-dir", str(tmp_path / "data"), "check").code == 0


@pytest.mark.parametrize(
    ("words", "problem"), cases("npl_mcp/stores/access")["the_command_says_what_is_wrong"]
)
def test_the_command_says_what_is_wrong(run: Run, words: tuple[str, ...], problem: str) -> None:
    code, _, text = run(*words)
    assert (code, problem in text) == (2, True)
