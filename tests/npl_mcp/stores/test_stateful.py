"""Random calls of all domains: a later call reads what an answer said, and a refusal changes nothing."""

import base64
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from npl_index.errors import NPLError
from npl_mcp.app.app import App
from npl_mcp.stores.base.errors import DatabaseError
from npl_mcp.stores.checking import check_rows
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.tools.domains import listed_tools
from tests import engines
from tests.npl_mcp.stores.writer import settings_in
from tests.npl_mcp.tools.strategies import Onlooker

PROFILE = profile(
    stateful_step_count=50,
    derandomize=True,
    print_blob=False,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
TOOLS = {spec.name: spec for spec in listed_tools()}
Values = dict[str, Any]

TEAM = ["ann", "bo", "bo-2", "Cy D"]
NAMES = st.sampled_from(["n1", "n2", "n3", "n4", "n5"])
SESSIONS = st.sampled_from(["s1", "s2", "s3"])
LOGS = st.sampled_from(["w1", "w2", "W1", "w1-2"])
PEOPLE = st.sampled_from([*TEAM, *TEAM, "eve"])
TEXTS = st.sampled_from(["one", "two\r\nlines", "drei äöü 😀", "'; --"])
SMALL = st.sampled_from([1, 1, 1, 1, 2, 2, 3, 4, 0])
FILES = st.sampled_from(["a.md", "b.txt", "ä 1.md"])
CONTENTS = st.sampled_from([b"# one\ntwo\n", b"one\r\ntwo\rthree", "drei äöü\n\n".encode(), b"\xff\0"]).map(
    lambda raw: base64.b64encode(raw).decode()
)
maybe = partial(st.one_of, st.none())
LIMITS = st.sampled_from([None, 1, 2, 3, 5, 1_000, 5_000, 0, -1])
OFFSETS = st.sampled_from([None, 0, 1, 2, 7, 10**9, -1])
EVENTS = st.integers(0, 12)
STATUSES = st.sampled_from([None, "active", "completed", "archived", "active", "closed"])
ACTIONS = st.sampled_from(["join", "join", "leave", "archive", "reopen", "reopen", "close"])
MESSAGES = st.sampled_from(["fine", "@all", "@bo-2: and @eve"])
REVISIONS = st.sampled_from([None, None, 0, 0, 1, 2])
PLACES = st.sampled_from(["line:1", "line:1-2", "line:3", "line:2-1", "line:0", "@x:1,y:2"])
TODOS = st.sampled_from(["pending", "in_progress", "done", "cancelled", "open"])
DATA = maybe(st.just({"k": [1, None, "x"]}))


def call(tool: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, Values]]:
    return st.tuples(st.just(tool), st.fixed_dictionaries(arguments))


def listing(tool: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, Values]]:
    return call(tool, **arguments, limit=LIMITS, offset=OFFSETS)


FILE = {"file_content_base64": CONTENTS, "filename": FILES, "created_by": maybe(PEOPLE)}
IN_ROOM = {"room_id": SMALL, "persona": PEOPLE}
CALLS = st.one_of(
    call("session_create", session_id=SESSIONS, title=maybe(NAMES)),
    call("session_update", session_id=SESSIONS, title=maybe(NAMES), status=STATUSES),
    call("artifact_create", name=NAMES, artifact_type=TEXTS, session_id=maybe(SESSIONS), **FILE),
    call("artifact_add_revision", artifact_id=SMALL, notes=maybe(TEXTS), **FILE),
    call("artifact_archive", artifact_id=SMALL, archived=st.sampled_from([True, False, False])),
    call("chat_create_room", name=NAMES, members=st.lists(PEOPLE, max_size=4), session_id=maybe(SESSIONS)),
    call("chat_update_room", action=ACTIONS, **IN_ROOM),
    call("chat_send_message", message=MESSAGES, reply_to_id=maybe(EVENTS), **IN_ROOM),
    call("chat_react", event_id=EVENTS, persona=PEOPLE, emoji=st.sampled_from(["👍", "ok"])),
    call("chat_share_artifact", artifact_id=SMALL, revision=REVISIONS, **IN_ROOM),
    call("chat_create_todo", description=TEXTS, assigned_to=maybe(PEOPLE), **IN_ROOM),
    call("chat_claim_todo", **IN_ROOM),
    call("chat_update_todo", event_id=EVENTS, persona=PEOPLE, status=TODOS, assigned_to=maybe(PEOPLE)),
    call("chat_mark_read", notification_id=st.integers(1, 12)),
    call("review_create", artifact_id=SMALL, revision_id=SMALL, reviewer_persona=PEOPLE),
    call("review_add_comment", review_id=SMALL, location=PLACES, comment=TEXTS, persona=PEOPLE),
    call("review_add_annotation", review_id=SMALL, x=EVENTS, y=EVENTS, comment=TEXTS, persona=PEOPLE),
    call("review_complete", review_id=SMALL, overall_comment=maybe(TEXTS)),
    call("worklog_init", session_id=LOGS, task=maybe(TEXTS)),
    call("worklog_log", agent_id=PEOPLE, action=NAMES, summary=TEXTS, session_id=maybe(LOGS), data=DATA),
    call("worklog_read", agent_id=PEOPLE, since=maybe(EVENTS), session_id=maybe(LOGS), limit=LIMITS),
    call("worklog_close", archive=st.booleans(), session_id=maybe(LOGS)),
    call("worklog_status", session_id=maybe(LOGS)),
    call("session_get", session_id=SESSIONS),
    call("review_generate_annotated", artifact_id=SMALL, revision_id=SMALL),
    listing("session_list", status=STATUSES),
    listing("artifact_list", archived=st.booleans()),
    listing("artifact_history", artifact_id=SMALL),
    listing("chat_list_rooms", persona=maybe(PEOPLE), archived=st.booleans()),
    listing("chat_list_todos", room_id=SMALL, filter=st.sampled_from([None, "ready", "done"])),
    listing("chat_get_feed", room_id=SMALL, since=maybe(EVENTS)),
    listing("chat_get_notifications", persona=PEOPLE, since=maybe(EVENTS)),
    listing("review_list", artifact_id=maybe(SMALL), reviewer_persona=maybe(PEOPLE)),
)


REPEATABLE = (
    *("artifact_archive", "chat_update_room", "chat_react", "chat_mark_read", "review_complete"),
    "worklog_status",
)
"""Tools whose second equal call has the answer of the first."""

FILTERS = (
    *(("session_list", "status", status) for status in ("active", "archived")),
    *(("review_list", "reviewer_persona", persona) for persona in ("ann", "bo")),
    *(("review_list", "status", "completed"), ("review_list", "artifact_id", 1)),
)

Fact = tuple[tuple[object, ...], str, Values, Values]
"""What an answer said: its subject, a call that reads it, and fields of that call's answer."""


def part(values: Values, *names: str, **more: object) -> Values:
    return {name: values[name] for name in names if name in values} | more


def facts_of(tool: str, sent: Values, made: Values) -> Iterator[Fact]:
    """Yield the facts of an answer; a later answer about the same subject replaces them."""
    if "revision_num" in made and tool.startswith("artifact_"):
        where = {"artifact_id": made["artifact_id"], "revision": made["revision_num"], "text": False}
        said = part(made, "revision_id", "artifact_name", file_content=sent["file_content_base64"])
        yield (
            ("file", made["revision_id"]),
            "artifact_get",
            where,
            said | part(sent, "filename", "created_by"),
        )
        said = part(sent, "notes", revision_num=made["revision_num"])
        yield ("notes", made["revision_id"]), "artifact_history", part(made, "artifact_id", limit=1_000), said
    elif tool in ("chat_create_room", "chat_update_room"):
        said = part(made, "name", "members", "archived_at", "session_id", id=made["room_id"])
        where = {"archived": "archived_at" in made, "limit": 100}
        yield ("room", made["room_id"]), "chat_list_rooms", where, said
    elif tool.startswith("chat_") and "event_id" in (event := made.get("todo") or made):
        number, names = event["event_id"], ("message", "mentions", "artifact_id", "revision", "emoji")
        where = {"room_id": event["room_id"], "since": number - 1, "limit": 1}
        said = part(event, *names, "description", "status", "assigned_to", "target_event_id")
        yield ("event", number), "chat_get_feed", where, {"id": number, "data": said}
        if tool == "chat_update_todo":
            where = where | {"since": sent["event_id"] - 1}
            said = {"id": sent["event_id"], "data": part(made, "status", "assigned_to")}
            yield ("event", sent["event_id"]), "chat_get_feed", where, said
        for note in made.get("notifications", ()):
            read = part(note, "persona", unread_only=False, since=note["notification_id"] - 1)
            yield ("note", note["notification_id"]), "chat_get_notifications", read, {"event_id": number}
    elif "comment_id" in made:
        said = part(made, "comment", "location", "persona", id=made["comment_id"])
        yield ("comment", made["comment_id"]), "review_get", part(made, "review_id", limit=1_000), said
    elif tool in ("review_create", "review_complete"):
        said = part(made, "revision_id", "status", "overall_comment", id=made["review_id"])
        yield ("review", made["review_id"]), "review_get", part(made, "review_id"), said
    elif tool in ("session_create", "session_update"):
        session = made.get("session_id") or made["id"]
        said = part(made, "title", "status", id=session)
        yield ("session", session), "session_get", {"session_id": session}, said
    elif tool in ("worklog_init", "worklog_close"):
        name = f"archive/{made['archived_as']}" if "archived_as" in made else made["session_id"]
        said = part(made, "session_id", "status", "created", "task", "archived_as")
        yield ("worklog", made["created"]), "worklog_status", {"session_id": name}, said
    elif tool == "worklog_log":
        where = part(made, "session_id", agent_id="reader", peek=True, since=made["seq"] - 1)
        said = part(sent, "agent_id", "action", "summary", "data", seq=made["seq"], ts=made["ts"])
        yield ("entry", made["session_id"], made["seq"]), "worklog_read", where, said


def contains(value: Any, said: Values) -> bool:
    """Return whether an object within a value has some fields."""
    if isinstance(value, dict):
        return all(
            contains(value.get(name), part) if isinstance(part, dict) else value.get(name) == part
            for name, part in said.items()
        ) or any(contains(inner, said) for inner in value.values())
    return isinstance(value, list) and any(contains(inner, said) for inner in value)


class Everything(RuleBasedStateMachine):
    """The tools on their own database.

    :param template: a data folder with an empty database.
    """

    def __init__(self, template: Path) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self.root = Path(self._folder.name)
        (self.root / "project").mkdir()
        shutil.copytree(template, self.root / "data")
        self.facts: dict[tuple[object, ...], Fact] = {}
        self.calls: list[tuple[str, Values]] = []
        self._open()

    def _open(self) -> None:
        self.app = App(settings_in(self.root))
        self.onlooker = Onlooker(self.root / "data", self.root / "project")

    def _close(self) -> None:
        self.onlooker.close()
        self.app.close()

    def do(self, tool: str, **arguments: Any) -> Any:
        return as_dict(TOOLS[tool](self.app, **arguments))

    @initialize()
    def begin(self) -> None:
        self.call(("session_create", {"title": "first", "session_id": "s1"}))
        for name, members in (("n1", TEAM), ("n2", TEAM[:2])):
            self.call(("chat_create_room", {"name": name, "members": members, "session_id": "s1"}))
        self.call(("chat_send_message", {"room_id": 1, "persona": "ann", "message": "@all"}))
        self.call(("chat_react", {"event_id": 1, "persona": "ann", "emoji": "ok"}))
        self.call(("chat_mark_read", {"notification_id": 1}))
        file = {"artifact_type": "code", "file_content_base64": "YQ==", "filename": "a"}
        self.call(("artifact_create", {"name": "n1", **file}))
        self.call(("review_create", {"artifact_id": 1, "revision_id": 1, "reviewer_persona": "ann"}))
        self.call(("worklog_init", {"session_id": "w1", "task": "task"}))

    @rule(call=CALLS)
    def call(self, call: tuple[str, Values]) -> None:
        self.calls.append(call)
        tool, arguments = call
        sent = {name: value for name, value in arguments.items() if value is not None}
        before = self.onlooker.state()
        try:
            made = self.do(tool, **sent)
        except DatabaseError:
            raise
        except NPLError:
            assert self.onlooker.state() == before, call
            engines.close_gaps(self.root / "data")
            return
        assert not TOOLS[tool].read_only or self.onlooker.state() == before, call
        assert tool not in REPEATABLE or self.do(tool, **sent) == made, call
        if "archived_as" in made:
            self.move_entries(made["session_id"], f"archive/{made['archived_as']}")
        for fact in facts_of(tool, sent, made):
            self.facts[fact[0]] = fact
            self.check(fact)

    def move_entries(self, session: str, name: str) -> None:
        """Read the entries of a worklog under its name in the archive from now on."""
        entries = [key for key in self.facts if key[:2] == ("entry", session)]
        if not any(key[1] == name for key in self.facts):
            for _, tool, where, said in [self.facts.pop(key) for key in entries]:
                key = ("entry", name, said["seq"])
                self.facts[key] = (key, tool, where | {"session_id": name}, said)

    @rule(spot=st.integers(1, 20))
    def do_it_again(self, spot: int) -> None:
        """Repeat an earlier call, whose name is taken or whose reaction or read mark exists."""
        self.call(self.calls[-min(spot, len(self.calls))])

    @rule()
    def reopen(self) -> None:
        self._close()
        self._open()

    def check(self, fact: Fact) -> None:
        _, tool, where, said = fact
        assert contains(self.do(tool, **where), said), fact

    def teardown(self) -> None:
        """Read everything again, whole and page by page, then check the database and the files."""
        for fact in self.facts.values():
            self.check(fact)
        for tool, name, value in FILTERS:
            self.check_pages(tool)
            entries = self.do(tool, limit=1_000)["items"]
            only = self.do(tool, limit=1_000, **{name: value})["items"]
            assert only == [entry for entry in entries if entry[name] == value]
        for archived in (False, True):
            self.check_pages("artifact_list", archived=archived)
            self.check_pages("chat_list_rooms", archived=archived)
        for persona in TEAM:
            self.check_pages("chat_get_notifications", persona=persona, unread_only=False)
        for room in {key[1] for key in self.facts if key[0] == "room"}:
            self.check_pages("chat_get_feed", room_id=room)
            self.check_pages("chat_get_feed", room_id=room, since=0)
        assert self.app.stores.database.check() == []
        assert list(check_rows(self.app.stores.database)) == []
        files = [path for path in engines.files(self.root / "data").rglob("*") if path.is_file()]
        revisions = sum(key[0] == "file" for key in self.facts)
        assert len(files) == (2 * revisions if engines.ENGINE == "sqlite" else 0)
        assert list((self.root / "project").iterdir()) == []
        self._close()
        self._folder.cleanup()

    def check_pages(self, tool: str, **arguments: Any) -> None:
        """Check that the pages of a list have all of its entries once, the newest first or last."""
        whole = self.do(tool, limit=1_000, **arguments)
        items, total = whole["items"], whole["total"]
        parts = [self.do(tool, limit=2, offset=at, **arguments) for at in range(0, total + 1, 2)]
        if tool == "chat_get_feed" and "since" not in arguments:  # the last page is the oldest
            parts.reverse()
        assert [entry for page in parts for entry in page["items"]] == items
        assert {page["total"] for page in parts} == {total} == {len(items)}
        times = [entry.get("timestamp") or entry["created_at"] for entry in items]
        assert times == sorted(times, reverse=tool != "chat_get_feed")


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """A data folder with an empty database: making the tables takes longer than an example."""
    (tmp_path / "data").mkdir()
    app = App(settings_in(tmp_path))
    app.stores.database.open()
    app.close()
    return tmp_path / "data"


def test_what_an_answer_says_can_be_read_later(template: Path) -> None:
    run_state_machine_as_test(partial(Everything, template), settings=PROFILE)
