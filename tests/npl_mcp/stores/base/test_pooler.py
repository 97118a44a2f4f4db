"""A pooler runs each transaction on another connection to the server, as PgBouncer does."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.app.app import App
from npl_mcp.stores.base.engine import CallDeadline
from npl_mcp.stores.base.opening import database_of
from npl_mcp.stores.chat.rooms import POSITIONS
from npl_mcp.stores.commits import Topic
from tests import engines
from tests.npl_mcp.stores.test_faults import WRITES, ask, fill
from tests.npl_mcp.stores.writer import settings_in
from tests.pooler import Pooler, pooler
from tests.until import PATIENCE

pytestmark = pytest.mark.engine("postgres")

OFTEN = 12
"""More executions than the driver needs before it prepares a statement."""


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pooler]:
    (tmp_path / "project").mkdir()
    with pooler(engines.empty_address(tmp_path / "data") or "") as made:
        yield made


@pytest.fixture
def address(pool: Pooler, tmp_path: Path) -> str:
    """The address of a database without tables, behind the pooler."""
    return pool.address(engines.name_of(tmp_path / "data"))


def test_what_works_without_a_pooler_works_with_one(address: str, tmp_path: Path) -> None:
    """Tables are made and calls repeated, since no transaction relies on its connection's past."""
    app = App(replace(settings_in(tmp_path), database_url=address))
    fill(app)
    repeated = [(tool, given) for tool, given in WRITES if tool not in ("session_create", "artifact_create")]
    for _ in range(OFTEN):
        for tool, given in (*repeated, ("chat_get_feed", {"room_id": 1}), ("review_get", {"review_id": 1})):
            answer = ask(app, tool, **given)
            assert answer["success"], answer
    assert ask(app, "artifact_get", artifact_id=1)["data"]["revision_num"] == OFTEN
    assert app.stores.database.check() == []
    app.close()


def test_a_waiting_call_is_woken_by_others(address: str, tmp_path: Path) -> None:
    """The wake-up works again when all connections are open."""
    settings = replace(settings_in(tmp_path), database_url=address)
    first, other = App(settings), App(replace(settings, data_dir=tmp_path / "other"))
    fill(first)
    topic = Topic(POSITIONS, 1)
    for number in range(3):
        woken = first.news.expect(topic, first.news.position(topic))
        said = ask(other, "chat_send_message", room_id=1, persona="bob", message=f"m{number}")
        assert said["success"], said
        woken.result(PATIENCE)
    first.close()
    other.close()


@pytest.mark.parametrize("read_only", [True, False])
def test_what_a_transaction_sets_ends_with_it(address: str, tmp_path: Path, *, read_only: bool) -> None:
    """Each transaction has its settings on any connection; others of the pool do not see them."""
    engine = database_of(tmp_path, address).engine
    with closing(engine.connect(CallDeadline(), read_only=read_only)) as raw:
        for _ in range(OFTEN):
            engine.begin(raw, CallDeadline(), read_only=read_only, schema=None)
            assert "0" not in limits(raw)
            engine.commit(raw, read_only=read_only)
            assert limits(raw) == ["0", "0"]


def limits(raw: Any) -> list[str]:
    names = ("lock_timeout", "idle_in_transaction_session_timeout")
    return [raw.execute(f"SHOW {name}").fetchone()[0] for name in names]
