"""Any value of any parameter ends in an answer, or in a clear error that changed nothing."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastmcp import Client

from docs.reference import prepare
from npl_index.errors import NPLError
from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from npl_mcp.server.server import create_server
from npl_mcp.tools.contract.error_codes import ErrorCode, code_of
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.tools.domains import listed_tools
from tests import engines
from tests.conftest import envelope, every
from tests.npl_mcp.tools.strategies import (
    BY_TYPE,
    CONTROL,
    MARKUP,
    QUERY,
    SIGNS,
    UNSENDABLE,
    Onlooker,
    hostile,
)

KNOWN = {code.value for code in ErrorCode} - {"INTERNAL_ERROR"}
LONGEST_MESSAGE = 4_000
EXAMPLES: dict[str, Any] = {spec.name: dict(spec.example) for spec in listed_tools()}
NAMES = list(EXAMPLES)

Arguments = dict[str, Any]


@dataclass
class Desk:
    """One server over a filled database, an application of the same data folder, and an onlooker.

    :param schemas: the listed parameters, by tool.
    :param answers: of the examples, by tool.
    :param number: for names that were never used.
    :param ready: rows prepared for a tool's next call.
    :param seen: what the onlooker saw after the last call, if that one changed nothing.
    """

    portal: BlockingPortal
    client: Client[Any]
    app: App
    folder: Path
    schemas: dict[str, Mapping[str, Any]]
    onlooker: Onlooker
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    number: Iterator[int] = field(default_factory=partial(count, 1))
    ready: dict[str, Arguments] = field(default_factory=dict)
    seen: object = None

    def call(self, tool: str, arguments: Arguments) -> dict[str, Any]:
        answer = envelope(
            self.portal.call(partial(self.client.call_tool, tool, arguments, raise_on_error=False))
        )
        if answer["success"]:
            self.ready.pop(tool, None)
            self.seen = None
        return answer

    def do(self, tool: str, **arguments: Any) -> Any:
        answer = self.call(tool, arguments)
        assert answer["success"], (tool, answer)
        return answer["data"]

    def valid(self, tool: str) -> Arguments:
        """Return arguments that the tool takes now; single-use ones are rebuilt after a success."""
        if tool not in self.ready:
            self.ready[tool] = READY.get(tool, lambda _: {})(self)
        return {**EXAMPLES[tool], **self.ready[tool]}

    def variants(
        self, tool: str, values: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[tuple[str, str, Arguments]]:
        """Return calls with one hostile value each, with the names of parameter and value.

        Parameters of a type take turns with its values, unless the run is thorough.
        """
        schema = self.schemas[tool]
        for turn, (parameter, kind) in enumerate(schema["properties"].items(), NAMES.index(tool)):
            for name, value in every(4, hostile(kind, values), turn):
                valid = self.valid(tool)
                if parameter not in valid:
                    # Some parameters exclude each other.
                    valid = {key: valid[key] for key in valid if key in schema.get("required", valid)}
                yield parameter, name, {**valid, parameter: value}

    def try_out(self, tool: str, name: str, arguments: Arguments) -> dict[str, Any]:
        """Make a call and check the rules of all calls; return the envelope."""
        before = self.state()
        answer = self.call(tool, arguments)
        if not answer["success"]:
            assert answer["error_code"] in KNOWN, (name, answer)
            self.check_message(name, answer["error"])
            assert self.onlooker.state() == before, (name, answer)
        return answer

    def state(self) -> object:
        """Return the stored state; comparing every file around every call would take most of the time."""
        if self.seen is None:
            self.seen = self.onlooker.state()
        return self.seen

    def check_message(self, name: str, message: str) -> None:
        assert 0 < len(message) <= LONGEST_MESSAGE, (name, message[:200])
        assert str(self.folder) not in message, (name, message)
        assert str(Path(__file__).parents[3]) not in message, (name, message)


def _fresh(parameter: str) -> Callable[[Desk], Arguments]:
    return lambda desk: {parameter: f"fresh-{next(desk.number)}"}


def _open_review(desk: Desk) -> Arguments:
    return {"review_id": desk.do("review_create", **EXAMPLES["review_create"])["review_id"]}


def _open_todo(desk: Desk) -> Arguments:
    return {"event_id": desk.do("chat_create_todo", **EXAMPLES["chat_create_todo"])["event_id"]}


def _open_worklog(desk: Desk) -> Arguments:
    return {"session_id": desk.do("worklog_init", session_id=f"log-{next(desk.number)}")["session_id"]}


def _same_worklog(desk: Desk) -> Arguments:
    return {"session_id": desk.do("worklog_init", session_id="log")["session_id"]}


def _written_worklog(desk: Desk) -> Arguments:
    """Write an entry, so that no call waits, however long it would."""
    entries = _same_worklog(desk)
    desk.do("worklog_log", **EXAMPLES["worklog_log"], **entries)
    return {**entries, "since": 0}


def _new_change(desk: Desk) -> Arguments:
    return {"key": desk.do("create_cr", **EXAMPLES["create_cr"])["key"]}


READY: Mapping[str, Callable[[Desk], Arguments]] = {
    "session_create": _fresh("session_id"),
    "artifact_create": _fresh("name"),
    "chat_create_room": _fresh("name"),
    "chat_claim_todo": _open_todo,
    "review_add_comment": _open_review,
    "review_add_annotation": _open_review,
    "review_complete": _open_review,
    "worklog_init": _fresh("session_id"),
    "worklog_log": _same_worklog,
    "worklog_read": _written_worklog,
    "worklog_status": _same_worklog,
    "worklog_close": _open_worklog,
    "delete_cr": _new_change,
}
"""Preparations of examples that work only once."""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """One server for the whole module, on which the examples were run in their order."""
    folder = tmp_path_factory.mktemp("hostile")
    work, data = folder / "work", folder / "data"
    prepare(work)
    settings = Settings(
        cwd=work,
        own_cwd=True,
        home=folder,
        system=folder / "none",
        data_dir=data,
        database_url=engines.address(data),
        vocabulary_folders=(),
        warm_up=False,
    )
    app = App(settings)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(create_server(settings))) as client,
    ):
        tools = portal.call(client.list_tools)
        app.stores.database.open()
        onlooker = Onlooker(data, work)
        desk = Desk(portal, client, app, folder, {tool.name: tool.input_schema for tool in tools}, onlooker)
        for name in NAMES:
            desk.answers[name] = desk.call(name, dict(EXAMPLES[name]))
        yield desk
        onlooker.close()
    app.close()


@pytest.fixture(autouse=True)
def no_bug_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Check that no call ends in an error of the server's log."""
    yield
    bugs = [record for record in caplog.get_records("call") if record.levelno >= logging.ERROR]
    assert not bugs, [(bug.getMessage(), bug.exc_info) for bug in bugs]


def test_every_listed_tool_is_tried(desk: Desk) -> None:
    assert list(desk.schemas) == NAMES


@pytest.mark.parametrize("tool", NAMES)
def test_an_example_works(desk: Desk, tool: str) -> None:
    assert desk.answers[tool]["success"], desk.answers[tool]


@pytest.mark.parametrize("tool", NAMES)
def test_no_value_of_any_parameter_breaks_a_tool(desk: Desk, tool: str) -> None:
    """Each hostile value in each parameter alone ends in an answer, or a known error and no change."""
    for parameter, name, arguments in desk.variants(tool, BY_TYPE):
        desk.try_out(tool, f"{parameter}: {name}", arguments)
    assert desk.do("session_get", session_id="importer")
    answer = desk.call(tool, desk.valid(tool))
    assert answer["success"], answer


@pytest.mark.parametrize("tool", NAMES)
def test_a_parameter_that_is_missing_or_unknown_is_named(desk: Desk, tool: str) -> None:
    """The caller learns which to add or to leave out."""
    schema = desk.schemas[tool]
    valid = desk.valid(tool)
    for parameter in schema.get("required", ()):
        for without in ({}, {parameter: None}):
            rest = {name: value for name, value in valid.items() if name != parameter}
            answer = desk.try_out(tool, f"without {parameter}", rest | without)
            assert answer["error_code"] in ("MISSING_REQUIRED", "INVALID_PARAMETER"), answer
            assert parameter in answer["error"]
    for unknown in ("nonsense", "x" * 1_000_000, "", "a\0", "__class__"):
        answer = desk.try_out(tool, f"unknown {unknown[:9]!r}", {**valid, unknown: 1})
        assert answer["error_code"] == "INVALID_PARAMETER", answer


@pytest.mark.parametrize("spec", listed_tools(), ids=NAMES)
def test_what_json_cannot_carry_is_refused_in_process_too(desk: Desk, spec: ToolSpec) -> None:
    """It is lone surrogates, invalid numbers, and deeper nesting than any parser accepts."""
    for parameter, name, arguments in desk.variants(spec.name, UNSENDABLE):
        before = desk.state()
        error = refusal(spec, desk.app, arguments)
        if error is None:
            desk.ready.pop(spec.name, None)
            desk.seen = None
        else:
            assert code_of(type(error)).value in KNOWN
            desk.check_message(name, str(error))
            assert desk.onlooker.state() == before, (parameter, name, error)
    assert desk.do("session_get", session_id="importer")


def refusal(spec: ToolSpec, app: App, arguments: Arguments) -> NPLError | None:
    """Call a tool's function; return the error it raised, if that is one of ours."""
    try:
        spec(app, **arguments)
    except NPLError as error:
        return error
    return None


CHOICES = {
    ("npl_section_index", "resource_type"): "component",
    ("session_list", "status"): "archived",
    ("session_update", "status"): "archived",
    ("chat_update_todo", "status"): "cancelled",
}


@pytest.mark.parametrize(("tool", "parameter"), CHOICES)
@pytest.mark.parametrize("change", [str.upper, "{}s".format, " {}".format, lambda _: "wrong"])
def test_a_word_that_is_no_choice_is_answered_with_the_choices(
    desk: Desk, tool: str, parameter: str, change: Callable[[str], str]
) -> None:
    """A nearly right word is refused too, and the message has the right one."""
    word = CHOICES[tool, parameter]
    answer = desk.try_out(tool, parameter, {**desk.valid(tool), parameter: change(word)})
    assert answer["error_code"] == "INVALID_PARAMETER"
    assert word in answer["error"]


LINES = {"markup": MARKUP[:90], "query": QUERY, "bidirectional marks": SIGNS}
KEPT = {**LINES, "control characters": CONTROL, "line breaks": "one\r\ntwo\rthree\n\n", "blanks": "  a \t"}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_a_text_comes_back_as_it_was_sent(desk: Desk, text: str) -> None:
    """A text of several lines is data: nothing in it is executed, escaped, trimmed or folded."""
    desk.do("chat_send_message", room_id=1, persona="coder", message=text)
    desk.do("chat_create_todo", room_id=1, persona="coder", description=text)
    said, todo = desk.do("chat_get_feed", room_id=1, limit=2)["items"]
    assert (said["data"]["message"], todo["data"]["description"]) == (text, text)
    room = desk.do("chat_create_room", **desk.valid("chat_create_room") | {"description": text})
    assert desk.do("chat_list_rooms", limit=1)["items"][0]["description"] == text
    assert room["description"] == text
    desk.do("artifact_add_revision", **EXAMPLES["artifact_add_revision"], notes=text)
    assert desk.do("artifact_history", artifact_id=1, limit=1)["items"][0]["notes"] == text
    review = _open_review(desk)
    desk.do("review_add_comment", **EXAMPLES["review_add_comment"] | review | {"comment": text})
    desk.do("review_complete", **review, overall_comment=text)
    shown = desk.do("review_get", **review)
    assert [comment["comment"] for comment in shown["items"]] == [text]
    data = {"data": {text: [text, None, 1.5]}, "refs": {"files": [text]}}
    logged = {"agent_id": "a", "action": "b", "summary": text, **data, **_open_worklog(desk)}
    desk.do("worklog_log", **logged)
    (entry,) = desk.do("worklog_read", agent_id="c", session_id=logged["session_id"])["items"]
    assert {name: entry[name] for name in ("summary", "data", "refs")} == {"summary": text, **data}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_name_comes_back_as_it_was_sent(desk: Desk, line: str) -> None:
    """Names may have any signs of one line; those of people are composed."""
    session = desk.do("session_create", title=line)["session_id"]
    assert desk.do("session_get", session_id=session)["session"]["title"] == line
    person = normalize("NFC", line)
    texts = {"name": f"kept {line}", "created_by": person, "purpose": line}
    plan = desk.do("artifact_create", **EXAMPLES["artifact_create"] | texts)
    got = desk.do("artifact_get", artifact_id=plan["artifact_id"])
    assert [got[name] for name in ("artifact_name", "created_by", "purpose")] == list(texts.values())
    assert got["content"] == EXAMPLES["artifact_create"]["content"]
    room = desk.do("chat_create_room", name=f"kept {line}", members=[line, "b"])["room_id"]
    assert desk.do("chat_list_rooms", limit=1)["items"][0]["name"] == f"kept {line}"
    sent = desk.do("chat_send_message", room_id=room, persona="b", message=f"see @{line}")
    assert sent["mentions"] == [person]
    desk.do("chat_react", event_id=sent["event_id"], persona=line, emoji=line[:8].strip())
    event = desk.do("chat_get_feed", room_id=room, limit=2)["items"][0]
    assert event["reactions"] == {line[:8].strip(): [person]}
    told = desk.do("chat_get_notifications", persona=line, limit=1)["items"][0]
    assert told["event_id"] == sent["event_id"]


def test_the_largest_values_that_are_taken_come_back_whole(desk: Desk) -> None:
    """They are a text of 64 Ki characters of any width, and a thousand members."""
    text = "😀" * (64 * 1024)
    sent = desk.do("chat_send_message", room_id=1, persona="coder", message=text)
    (event,) = desk.do("chat_get_feed", room_id=1, since=sent["event_id"] - 1)["items"]
    assert event["data"]["message"] == text
    members = [f"member {number}" for number in range(1_000)]
    desk.do("chat_create_room", name="a thousand", members=members)
    assert desk.do("chat_list_rooms", limit=1)["items"][0]["members"] == members
    told = desk.do("chat_get_notifications", persona=members[-1])
    assert json.dumps(told) == json.dumps({"items": [], "total": 0, "limit": 50, "offset": 0, "cursor": 0})
