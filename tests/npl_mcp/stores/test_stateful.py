"""All five domains, driven at random and compared with a model in memory after every step."""

import base64
import re
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
from npl_mcp.config.settings import Settings
from npl_mcp.tools.contract.error_codes import code_of
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.tools.domains import listed_tools
from npl_mcp.tools.worklog import worklog_sessions
from tests import engines
from tests.npl_mcp.stores.models import Model, usable
from tests.npl_mcp.stores.models_base import WHEN, Refused
from tests.npl_mcp.tools.strategies import Onlooker

PROFILE = profile(
    stateful_step_count=50,
    derandomize=True,
    print_blob=False,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)

FUNCTIONS = {spec.name: spec for spec in listed_tools()}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
HIDDEN = {"file_path", "meta_path", "metadata", "annotated_content", "reviewer_files"}

TEAM = ["ann", "bo", "bo-2", "Cy D"]
NAMES = st.sampled_from(["n1", "n2", "n3", "n4", "n5"])
SESSION_IDS = st.sampled_from(["s1", "s2", "s3"])
LOG_IDS = st.sampled_from(["w1", "w2", "W1", "w1-2"])
STATUSES = st.sampled_from(["active", "completed", "archived", "active", "closed"])
PEOPLE = st.sampled_from([*TEAM, *TEAM, "eve"])
AGENTS = st.sampled_from(["a1", "a2", "a3"])
TEXTS = st.sampled_from(["one", "two\r\nlines", "drei äöü 😀", "'; --"])
LIMITS = st.sampled_from([None, 1, 2, 3, 5, 1_000, 5_000, 0, -1])
OFFSETS = st.sampled_from([None, 0, 1, 2, 7, 10**9, -1])
SMALL = st.sampled_from([1, 1, 1, 1, 2, 2, 3, 4, 0])
REVISIONS = st.sampled_from([None, None, 0, 0, 1, 2])
REVISION_IDS = st.sampled_from([1, 1, 1, 2, 3, 4])
ACTIONS = st.sampled_from(["join", "join", "leave", "archive", "reopen", "reopen", "close"])
SPOTS = st.integers(0, 10_000)
MESSAGES = st.sampled_from(["fine", "@all"])
CONTENTS = st.sampled_from([b"# one\ntwo\n", b"one\r\ntwo\rthree", "drei äöü\n\n".encode(), b"\xff\0"]).map(
    lambda raw: base64.b64encode(raw).decode()
)
FILES = st.sampled_from(["a.md", "b.txt", "ä 1.md"])
DATA = st.sampled_from(
    [{}, {"data": {"k": [1, None, "x"]}}, {"tags": ["t", "u"]}, {"refs": {"files": ["a"]}}]
)
maybe = partial(st.one_of, st.none())


def calls(tool: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    return st.tuples(st.just(tool), st.fixed_dictionaries(arguments))


LISTS = st.one_of(
    calls("session_list", status=maybe(STATUSES)),
    calls("artifact_list", archived=maybe(st.booleans())),
    calls("artifact_history", artifact_id=SMALL),
    calls("chat_list_rooms", persona=maybe(PEOPLE), archived=maybe(st.booleans())),
    calls(
        "review_list",
        artifact_id=maybe(SMALL),
        reviewer_persona=maybe(PEOPLE),
        status=maybe(st.sampled_from(["in_progress", "completed", "open"])),
    ),
    calls(
        "chat_get_notifications",
        persona=PEOPLE,
        unread_only=maybe(st.booleans()),
        since=maybe(st.integers(-1, 9)),
    ),
)
LOOKS = st.one_of(
    calls("session_get", session_id=SESSION_IDS),
    calls("artifact_get", artifact_id=SMALL, revision=REVISIONS, text=maybe(st.booleans())),
    calls("review_get", review_id=SMALL),
    calls("review_generate_annotated", artifact_id=SMALL, revision_id=REVISION_IDS),
    calls("worklog_status", session_id=maybe(LOG_IDS)),
)


class Everything(RuleBasedStateMachine):
    """The tools on their own database, compared with the model.

    :param template: a data folder with an empty database.
    """

    def __init__(self, template: Path) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self.root = Path(self._folder.name)
        self.work = self.root / "work"
        self.work.mkdir()
        shutil.copytree(template, self.root / "data")
        self.model = Model()
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._open()

    def _open(self) -> None:
        self.app = application(self.root, self.root / "data")
        self.onlooker = Onlooker(self.root / "data", self.work)

    def _close(self) -> None:
        self.onlooker.close()
        self.app.close()

    def teardown(self) -> None:
        """Compare everything once more, then clean up."""
        self.look_at_everything()
        assert self.app.stores.database.check() == []
        self.check_files()
        self._close()
        self._folder.cleanup()

    def call(self, tool: str, **arguments: Any) -> None:
        self.calls.append((tool, arguments))
        self.check(tool, **arguments)

    def check(self, tool: str, **arguments: Any) -> None:
        """Make a call and compare its answer or refusal with the model's."""
        given = {name: value for name, value in arguments.items() if value is not None}
        expected = self.expected(tool, given)
        if isinstance(expected, Refused):
            before = self.onlooker.state()
            with pytest.raises(NPLError) as caught:
                FUNCTIONS[tool](self.app, **given)
            assert code_of(type(caught.value)).value == expected.code, caught.value
            assert self.onlooker.state() == before
            engines.close_gaps(self.root / "data")
        else:
            answer = masked(as_dict(FUNCTIONS[tool](self.app, **given)))
            assert answer == expected, (tool, given)

    def expected(self, tool: str, arguments: dict[str, Any]) -> Any:
        if not usable(arguments):
            return Refused("INVALID_PARAMETER")
        try:
            return getattr(self.model, tool)(**arguments)
        except Refused as refused:
            return refused

    def event(self, spot: int) -> int:
        """Return the id of an event, or now and then of none."""
        return spot % (len(self.model.event_rooms) + 1) + 1

    @initialize()
    def begin(self) -> None:
        self.call("session_create", title="first", session_id="s1")
        self.call("chat_create_room", name="n1", members=TEAM, session_id="s1")
        self.call("chat_create_room", name="n2", members=TEAM[:2])
        self.call(
            "artifact_create", name="n1", artifact_type="code", file_content_base64="YQ==", filename="a"
        )
        for persona in ("ann", "bo"):
            self.call("review_create", artifact_id=1, revision_id=1, reviewer_persona=persona)
        self.call("worklog_init", session_id="w1", task="task")
        for summary in ("one", "two", "three"):
            self.call("worklog_log", agent_id="a1", action="did", summary=summary)

    @rule()
    def reopen(self) -> None:
        self._close()
        self._open()

    @rule(spot=SPOTS)
    def do_it_again(self, spot: int) -> None:
        """Repeat an earlier call, whose name is taken or whose reaction or read mark exists."""
        tool, arguments = self.calls[-1 - spot % min(len(self.calls), 20)]
        self.check(tool, **arguments)

    @rule(call=LISTS, limit=LIMITS, offset=OFFSETS)
    def read_a_list(self, call: tuple[str, dict[str, Any]], limit: int | None, offset: int | None) -> None:
        self.call(call[0], **call[1], limit=limit, offset=offset)

    @rule(call=LOOKS)
    def look_at_one(self, call: tuple[str, dict[str, Any]]) -> None:
        self.call(call[0], **call[1])

    # Sessions

    @rule(session_id=SESSION_IDS, title=maybe(TEXTS.filter(lambda text: "\n" not in text)))
    def create_session(self, session_id: str, title: str | None) -> None:
        self.call("session_create", session_id=session_id, title=title)

    @rule()
    def create_session_without_id(self) -> None:
        made = as_dict(FUNCTIONS["session_create"](self.app))
        assert re.fullmatch(r"[a-z0-9]{8}", made["session_id"])
        assert masked(made) == self.model.session_create(session_id=made["session_id"])

    @rule(session_id=SESSION_IDS, title=maybe(NAMES), status=maybe(STATUSES))
    def update_session(self, session_id: str, title: str | None, status: str | None) -> None:
        self.call("session_update", session_id=session_id, title=title, status=status)

    # Artifacts

    @rule(name=NAMES, content=CONTENTS, filename=FILES, session_id=maybe(SESSION_IDS), by=maybe(PEOPLE))
    def create_artifact(
        self, name: str, content: str, filename: str, session_id: str | None, by: str | None
    ) -> None:
        self.call(
            "artifact_create",
            name=name,
            artifact_type="document",
            file_content_base64=content,
            filename=filename,
            session_id=session_id,
            created_by=by,
        )

    @rule(number=SMALL, content=CONTENTS, filename=FILES, notes=maybe(TEXTS))
    def add_revision(self, number: int, content: str, filename: str, notes: str | None) -> None:
        self.call(
            "artifact_add_revision",
            artifact_id=number,
            file_content_base64=content,
            filename=filename,
            notes=notes,
        )

    @rule(number=SMALL, name=NAMES, text=TEXTS, archived=st.sampled_from([True, True, False]))
    def write_or_archive_artifact(self, number: int, name: str, text: str, archived: bool) -> None:
        self.call("artifact_create", name=name, artifact_type="text", content=text, filename="c.md")
        self.call("artifact_archive", artifact_id=number, archived=archived)
        self.call("artifact_add_revision", artifact_id=number, content=text, filename="c.md")

    # Chat

    @rule(room=SMALL, persona=PEOPLE, action=ACTIONS)
    def update_room(self, room: int, persona: str, action: str) -> None:
        self.call("chat_update_room", room_id=room, persona=persona, action=action)

    @rule(
        name=NAMES,
        members=st.lists(PEOPLE, max_size=4),
        description=maybe(TEXTS),
        session_id=maybe(SESSION_IDS),
    )
    def create_room(
        self, name: str, members: list[str], description: str | None, session_id: str | None
    ) -> None:
        self.call(
            "chat_create_room", name=name, members=members, description=description, session_id=session_id
        )

    @rule(room=SMALL, persona=PEOPLE, message=MESSAGES, spot=st.one_of(st.none(), st.none(), SPOTS))
    def send_message(self, room: int, persona: str, message: str, spot: int | None) -> None:
        target = None if spot is None else self.event(spot)
        self.call("chat_send_message", room_id=room, persona=persona, message=message, reply_to_id=target)

    @rule(spot=SPOTS, persona=PEOPLE, emoji=st.sampled_from(["👍", "ok"]))
    def react(self, spot: int, persona: str, emoji: str) -> None:
        self.call("chat_react", event_id=self.event(spot), persona=persona, emoji=emoji)

    @rule(room=SMALL, persona=PEOPLE, number=SMALL, revision=REVISIONS)
    def share_artifact(self, room: int, persona: str, number: int, revision: int | None) -> None:
        self.call("chat_share_artifact", room_id=room, persona=persona, artifact_id=number, revision=revision)

    @rule(room=SMALL, spot=maybe(SPOTS), limit=LIMITS, offset=OFFSETS)
    def read_feed(self, room: int, spot: int | None, limit: int | None, offset: int | None) -> None:
        since = None if spot is None else self.event(spot) - 1
        self.call("chat_get_feed", room_id=room, since=since, limit=limit, offset=offset)

    @rule(spot=SPOTS)
    def mark_read(self, spot: int) -> None:
        self.call("chat_mark_read", notification_id=spot % (len(self.model.notifications) + 1) + 1)

    # Reviews

    @rule(number=SMALL, revision_id=REVISION_IDS, persona=PEOPLE)
    def create_review(self, number: int, revision_id: int, persona: str) -> None:
        self.call("review_create", artifact_id=number, revision_id=revision_id, reviewer_persona=persona)

    @rule(
        number=SMALL,
        location=st.sampled_from(["line:1", "line:1-2", "line:3", "line:2-1", "line:0", "@x:1,y:2"]),
        comment=TEXTS,
        persona=PEOPLE,
    )
    def comment(self, number: int, location: str, comment: str, persona: str) -> None:
        self.call("review_add_comment", review_id=number, location=location, comment=comment, persona=persona)

    @rule(number=SMALL, x=st.integers(-1, 3), comment=TEXTS, persona=PEOPLE)
    def annotate(self, number: int, x: int, comment: str, persona: str) -> None:
        self.call("review_add_annotation", review_id=number, x=x, y=2, comment=comment, persona=persona)

    @rule(number=SMALL, overall=maybe(TEXTS))
    def complete_review(self, number: int, overall: str | None) -> None:
        self.call("review_complete", review_id=number, overall_comment=overall)

    # Worklog

    @rule(session_id=LOG_IDS, task=maybe(TEXTS))
    def start_worklog(self, session_id: str, task: str | None) -> None:
        self.call("worklog_init", session_id=session_id, task=task)

    @rule(agent=AGENTS, summary=TEXTS, more=DATA, session_id=maybe(LOG_IDS))
    def log(self, agent: str, summary: str, more: dict[str, Any], session_id: str | None) -> None:
        self.call("worklog_log", agent_id=agent, action="did", summary=summary, session_id=session_id, **more)

    @rule(
        agent=AGENTS,
        peek=st.booleans(),
        since=st.sampled_from([None, None, 0, 1, 2, 9, -1]),
        session_id=maybe(LOG_IDS),
        limit=LIMITS,
    )
    def read_worklog(
        self, agent: str, peek: bool, since: int | None, session_id: str | None, limit: int | None
    ) -> None:
        self.call("worklog_read", agent_id=agent, peek=peek, since=since, session_id=session_id, limit=limit)

    @rule(archive=st.booleans(), session_id=maybe(LOG_IDS))
    def close_worklog(self, archive: bool, session_id: str | None) -> None:
        self.call("worklog_close", archive=archive, session_id=session_id)

    # Everything

    @rule()
    def look_at_everything(self) -> None:
        """Compare every list with the model, page by page, and its total."""
        model = self.model
        self.pages("session_list", len(model.sessions))
        for status in ("active", "completed", "archived"):
            self.check("session_list", status=status)
        for archived in (False, True):
            self.pages("artifact_list", len(model.artifacts), archived=archived)
            self.pages("chat_list_rooms", len(model.rooms), archived=archived)
        self.pages("review_list", len(model.reviews))
        for number in range(1, len(model.artifacts) + 1):
            self.pages("artifact_history", len(model.artifacts[number - 1].revisions), artifact_id=number)
            self.check("artifact_get", artifact_id=number)
        for number in range(1, len(model.rooms) + 1):
            self.pages("chat_get_feed", len(model.rooms[number - 1].events), room_id=number)
        for persona in TEAM:
            self.check("chat_get_notifications", persona=persona, unread_only=False, limit=1_000)
            self.check("chat_get_notifications", persona=persona, limit=1_000)
        for session_id in model.sessions:
            self.check("session_get", session_id=session_id)
        for number in range(1, len(model.reviews) + 1):
            self.check("review_get", review_id=number)
        for archived in (False, True):
            listed = worklog_sessions(self.app, archived)
            shown = [
                worklog for worklog in reversed(model.worklogs) if archived or worklog.archived_as is None
            ]
            assert masked(as_dict(listed)) == [model.described(worklog) for worklog in shown]

    def pages(self, tool: str, total: int, **arguments: Any) -> None:
        for offset in range(0, total + 1, 3):
            self.check(tool, limit=3, offset=offset, **arguments)

    def check_files(self) -> None:
        """Check that each revision with a named path has its two files, and that there are no others."""
        artifacts = engines.files(self.root / "data")
        files = [path for path in artifacts.rglob("*") if path.is_file()]
        assert len(files) == (2 * self.model.revisions if engines.ENGINE == "sqlite" else 0)
        assert list(self.work.iterdir()) == []


def application(root: Path, data: Path) -> App:
    """Open the tools' state on a folder."""
    work = root / "work"
    return App(
        Settings(
            cwd=work,
            home=root,
            system=root / "none",
            data_dir=data,
            database_url=engines.address(data),
            vocabulary_folders=(),
            warm_up=False,
        )
    )


def masked(value: Any) -> Any:
    """Replace times; leave out paths and the texts that the model does not write."""
    if isinstance(value, dict):
        return {name: masked(part) for name, part in value.items() if name not in HIDDEN}
    if isinstance(value, list):
        return [masked(part) for part in value]
    return WHEN if isinstance(value, str) and TIME.fullmatch(value) else value


@pytest.fixture
def template(tmp_path: Path) -> Iterator[Path]:
    """A data folder with an empty database: making the tables takes longer than an example."""
    (tmp_path / "data").mkdir()
    app = application(tmp_path, tmp_path / "data")
    app.stores.database.open()
    app.close()
    return tmp_path / "data"


def test_all_domains_do_what_a_simple_model_does(template: Path) -> None:
    run_state_machine_as_test(partial(Everything, template), settings=PROFILE)
