"""A process that writes until its server is killed, and checks of the data folder afterwards."""

import base64
import json
import random
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from npl_mcp.stores import checking
from npl_mcp.stores.base.database import Database, Transaction
from npl_mcp.tools.domains import listed_tools
from tests import engines

TOOLS = {spec.name: spec for spec in listed_tools()}
MEMBERS = ("alice", "bob", "carol")
SESSION = "shared"

Acknowledged = dict[str, Any]
Examination = dict[str, list[str]]


def settings_in(place: Path, *, empty: bool = False) -> Settings:
    """Return settings whose data folder and project lie below a folder.

    :param empty: the database has no tables yet.
    """
    data = place / "data"
    return Settings(
        cwd=place / "project",
        home=place,
        data_dir=data,
        database_url=engines.empty_address(data) if empty else engines.address(data),
        warm_up=False,
    )


def digest(content: str | bytes) -> str:
    return blake2b(content.encode() if isinstance(content, str) else content, digest_size=16).hexdigest()


class Writer:
    """Calls tools, one after the other, in its own room and on its own artifact and on those of the first.

    :param call: calls a tool, and returns the data of its answer.
    :param name: unlike that of any other writer.
    """

    def __init__(self, call: Callable[..., Any], name: str) -> None:
        self._call = call
        self.name = name
        self._random = random.Random(name)
        self._count = 0
        self._room = self._artifact = self._review = 0
        self._unread: list[int] = []

    def first(self) -> Acknowledged:
        """Make what the other calls need."""
        room = self._call("chat_create_room", name=self.name, members=MEMBERS, session_id=SESSION)
        self._room = room.room_id
        self._call("worklog_init", session_id=SESSION)
        content, made = self._stored("artifact_create", name=self.name, artifact_type="noise")
        self._artifact = made.artifact_id
        review = self._call(
            "review_create",
            artifact_id=made.artifact_id,
            revision_id=made.revision_id,
            reviewer_persona="bob",
        )
        self._review = review.review_id
        return _acknowledged("revision", content, artifact_id=made.artifact_id, number=made.revision_num)

    def next(self) -> Acknowledged:
        """Make a call and say which."""
        acts = (self._create, self._revise, self._revise, self._say, self._say, self._share)
        more = (self._log, self._log, self._comment, self._ask, self._mark)
        return self._random.choice((*acts, *more))()

    def _create(self) -> Acknowledged:
        name = f"{self.name} {self._text()}"
        content, made = self._stored("artifact_create", name=name, artifact_type="noise", session_id=SESSION)
        return _acknowledged("revision", content, artifact_id=made.artifact_id, number=0)

    def _revise(self) -> Acknowledged:
        artifact = self._random.choice((1, self._artifact))
        content, made = self._stored("artifact_add_revision", artifact_id=artifact, notes=self._text())
        return _acknowledged("revision", content, artifact_id=artifact, number=made.revision_num)

    def _say(self) -> Acknowledged:
        text = f"@bob and @carol: {self._text()}"
        room = self._random.choice((1, self._room))
        sent = self._call("chat_send_message", room_id=room, persona="alice", message=text)
        self._unread += [note.notification_id for note in sent.notifications]
        return _acknowledged("message", text, event=sent.event_id)

    def _share(self) -> Acknowledged:
        artifact = self._random.choice((1, self._artifact))
        shared = self._call("chat_share_artifact", room_id=1, persona="carol", artifact_id=artifact)
        return _acknowledged("share", str(artifact), event=shared.event_id)

    def _ask(self) -> Acknowledged:
        text = self._text()
        todo = self._call(
            "chat_create_todo", room_id=self._room, persona="bob", description=text, assigned_to="alice"
        )
        return _acknowledged("todo", text, event=todo.event_id)

    def _mark(self) -> Acknowledged:
        if not self._unread:
            return self._say()
        read = self._call("chat_mark_read", notification_id=self._unread.pop())
        return _acknowledged("read", read.read_at, notification=read.notification_id)

    def _log(self) -> Acknowledged:
        text = self._text()
        data = {"noise": "x" * self._random.choice((0, 100, 20_000))}
        logged = self._call("worklog_log", agent_id=self.name, action="did", summary=text, data=data)
        return _acknowledged("entry", text, seq=logged.seq)

    def _comment(self) -> Acknowledged:
        text = self._text()
        made = self._call(
            "review_add_comment", review_id=self._review, location="@x:1,y:1", comment=text, persona="bob"
        )
        return _acknowledged("comment", text, comment=made.comment_id)

    def _stored(self, tool: str, **arguments: Any) -> tuple[bytes, Any]:
        content = b"\0" + self._random.randbytes(self._random.choice((1, 2_000, 150_000)))
        encoded = base64.b64encode(content).decode()
        return content, self._call(tool, file_content_base64=encoded, filename="noise.bin", **arguments)

    def _text(self) -> str:
        self._count += 1
        return f"{self.name} {self._count}"


def caller(app: App) -> Callable[..., Any]:
    """Return what calls tools of an application in this process."""
    return lambda tool, **arguments: TOOLS[tool](app, **arguments)


def _acknowledged(kind: str, content: str | bytes, **key: int) -> Acknowledged:
    return {"kind": kind, "digest": digest(content), "key": key}


# How what was acknowledged is looked up; the digest of what is found must be the acknowledged one. What has a
# name is JSON, and there under that name.
LOOK_UP: dict[str, tuple[str, str | None]] = {
    "message": ("SELECT data FROM event WHERE id = :event", "message"),
    "share": ("SELECT data FROM event WHERE id = :event", "artifact_id"),
    "todo": ("SELECT data FROM event WHERE id = :event", "description"),
    "read": ("SELECT read_at FROM notification WHERE id = :notification", None),
    "entry": ("SELECT summary FROM worklog_entry WHERE seq = :seq", None),
    "comment": ("SELECT comment FROM review_comment WHERE id = :comment", None),
    "revision": (
        "SELECT digest FROM revision WHERE artifact_id = :artifact_id AND revision_num = :number",
        None,
    ),
}

# Each gives what is counted, the count that is kept, and how many numbers up to it are used.
NUMBERED = {
    "events": """
        SELECT room.id, event_count AS kept, count(position) AS counted FROM room
        LEFT JOIN event ON event.room_id = room.id AND position BETWEEN 1 AND event_count GROUP BY room.id""",
    "revisions": """
        SELECT artifact.id, revision_count AS kept, count(revision_num) AS counted FROM artifact
        LEFT JOIN revision ON artifact_id = artifact.id AND revision_num BETWEEN 0 AND revision_count - 1
        GROUP BY artifact.id""",
    "entries": """
        SELECT number, entry_count AS kept, count(seq) AS counted FROM worklog_session
        LEFT JOIN worklog_entry ON session_number = number AND seq BETWEEN 1 AND entry_count
        GROUP BY number""",
}


def examine(place: Path, acknowledged: Iterable[Acknowledged] = ()) -> Examination:
    """Open a data folder as the next server does, and check its promises.

    :returns: by promise, how it is broken.
    """
    app = App(settings_in(place))
    try:
        database = app.stores.database
        problems = {"damaged": database.check(), "miscounted": miscounted(database)}
        with database.read() as tx:
            problems["lost"] = [json.dumps(said) for said in acknowledged if not _is_there(tx, said)]
            problems["stray or changed contents"] = _odd_contents(tx)
    finally:
        app.close()
    return problems


def _is_there(tx: Transaction, said: Acknowledged) -> bool:
    sql, name = LOOK_UP[said["kind"]]
    stored = tx.value(sql, **said["key"])
    if stored is not None and name is not None:
        stored = json.loads(stored).get(name)
    return stored is not None and said["digest"] in (stored, digest(str(stored)))


def miscounted(database: Database) -> list[str]:
    """Return the stored counts that differ from the rows, and the gaps of numbers."""
    with database.read() as tx:
        gaps = [
            f"{name} of {what}: {kept}, but {counted}"
            for name, sql in NUMBERED.items()
            for what, kept, counted in (row.values() for row in tx.all(sql))
            if kept != counted
        ]
    return [*checking.wrong_counts(database), *gaps]


def _odd_contents(tx: Transaction) -> list[str]:
    problems = [
        f"changed: {row['digest']}"
        for row in tx.all("SELECT digest, data FROM content")
        if digest(row["data"]) != row["digest"]
    ]
    stray = (
        "SELECT digest FROM content WHERE NOT EXISTS (SELECT 1 FROM revision WHERE digest = content.digest)"
    )
    return [*problems, *(f"no row: {row['digest']}" for row in tx.all(stray))]
