"""Processes that write until they are killed, and what must hold in their data folder afterwards.

``python -m tests.npl_mcp.stores.writer --kills 200`` does it for long and prints what it found.
"""

from __future__ import annotations

import argparse
import base64
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from npl_mcp.config.settings import Settings
from npl_mcp.core.app import App
from npl_mcp.stores.base.database import Transaction
from npl_mcp.tools.domains import listed_tools
from tests import engines

TOOLS = {spec.name: spec.function for spec in listed_tools()}
MEMBERS = ("alice", "bob", "carol")
SESSION = "shared"

WRITERS = 3
ROUNDS = 5
"""Rounds on one data folder; the next begins in an empty one, so that opening it is interrupted too."""

LONGEST = 0.8
"""Seconds a writer may live."""

Acknowledged = dict[str, Any]
Examination = dict[str, list[str]]


def settings_in(place: Path) -> Settings:
    """Return settings whose data folder and project lie below a folder."""
    data = place / "data"
    return Settings(
        cwd=place / "project",
        home=place,
        data_dir=data,
        database_url=engines.address(data),
        warm_up=False,
    )


def digest(content: str | bytes) -> str:
    return blake2b(content.encode() if isinstance(content, str) else content, digest_size=16).hexdigest()


class Writer:
    """Calls tools, one after the other, in its own room and on its own artifact and on those of the first.

    :param place: see :func:`settings_in`.
    :param name: unlike that of any other writer.
    """

    def __init__(self, place: Path, name: str) -> None:
        self.app = App(settings_in(place))
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
        """Do something and say what."""
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
        content = self._random.randbytes(self._random.choice((1, 2_000, 150_000)))
        encoded = base64.b64encode(content).decode()
        return content, self._call(tool, file_content_base64=encoded, filename="noise.bin", **arguments)

    def _text(self) -> str:
        self._count += 1
        return f"{self.name} {self._count}"

    def _call(self, tool: str, **arguments: Any) -> Any:
        return TOOLS[tool](self.app, **arguments)


def _acknowledged(kind: str, content: str | bytes, **key: int) -> Acknowledged:
    return {"kind": kind, "digest": digest(content), "key": key}


def write(place: Path, name: str) -> None:
    """Write until killed; each line on standard output is a call that had returned."""
    # Else most of a short life would be spent on loading these.
    for module in ("sqlalchemy", "alembic.command", "yaml"):
        importlib.import_module(module)
    writer = Writer(place, name)
    os.write(1, b"{}\n")
    sys.stdin.readline()
    os.write(1, _line(writer.first()))
    while True:
        os.write(1, _line(writer.next()))


def _line(said: Acknowledged) -> bytes:
    return json.dumps(said).encode() + b"\n"


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

# Each gives what is counted, the count that is kept, and what counting the rows gives.
COUNTS = {
    "totals": """
        SELECT coalesce(total.name, counted.name) AS name, coalesce(value, 0) AS kept,
            coalesce(number, 0) AS counted
        FROM (SELECT 'artifact' AS name, count(*) AS number FROM artifact
            UNION ALL SELECT 'session', count(*) FROM session
            UNION ALL SELECT 'session:' || status, count(*) FROM session GROUP BY status
            UNION ALL SELECT 'room', count(*) FROM room
            UNION ALL SELECT 'room:' || persona, count(*) FROM member GROUP BY persona) AS counted
        FULL JOIN total ON total.name = counted.name
        WHERE total.name IS NULL OR total.name != 'recoveries'""",
    "events": """
        SELECT room.id, event_count AS kept, count(position) AS counted FROM room
        LEFT JOIN event ON event.room_id = room.id AND position BETWEEN 1 AND event_count GROUP BY room.id""",
    "all events": """
        SELECT 0 AS id, count(*) AS kept, (SELECT sum(event_count) FROM room) AS counted FROM event""",
    "revisions": """
        SELECT artifact.id, revision_count AS kept, count(revision_num) AS counted FROM artifact
        LEFT JOIN revision ON artifact_id = artifact.id AND revision_num BETWEEN 0 AND revision_count - 1
        GROUP BY artifact.id""",
    "all revisions": """
        SELECT 0 AS id, count(*) AS kept, (SELECT sum(revision_count) FROM artifact) AS counted
        FROM revision""",
    "entries": """
        SELECT number, entry_count AS kept, count(seq) AS counted FROM worklog_session
        LEFT JOIN worklog_entry ON session_number = number AND seq BETWEEN 1 AND entry_count
        GROUP BY number""",
    "all entries": """
        SELECT 0 AS id, count(*) AS kept, (SELECT sum(entry_count) FROM worklog_session) AS counted
        FROM worklog_entry""",
    "entries of agents": """
        SELECT agent_id, entry_count AS kept, (SELECT count(*) FROM worklog_entry
            WHERE session_number = agent.session_number AND agent_id = agent.agent_id) AS counted
        FROM worklog_agent AS agent""",
    "members": """
        SELECT id, member_count AS kept, (SELECT count(*) FROM member WHERE room_id = room.id) AS counted
        FROM room""",
    "mailboxes": """
        SELECT mailbox.persona, total AS kept, count(id) AS counted
        FROM mailbox LEFT JOIN notification ON notification.persona = mailbox.persona
        GROUP BY mailbox.persona""",
    "unread": """
        SELECT mailbox.persona, unread AS kept, count(id) - count(read_at) AS counted
        FROM mailbox LEFT JOIN notification ON notification.persona = mailbox.persona
        GROUP BY mailbox.persona""",
    "rooms of sessions": """
        SELECT id, room_count AS kept,
            (SELECT count(*) FROM room WHERE session_number = number) AS counted
        FROM session""",
    "artifacts of sessions": """
        SELECT id, artifact_count AS kept,
            (SELECT count(*) FROM session_artifact WHERE session_number = number) AS counted
        FROM session""",
}


def examine(place: Path, acknowledged: Iterable[Acknowledged] = ()) -> Examination:
    """Open a data folder as the next server does, and check what must hold there.

    :returns: by promise, how it is broken.
    """
    app = App(settings_in(place))
    try:
        app.stores.artifact.recover()
        found = {"damaged": app.stores.database.check()}
        with app.stores.database.read() as tx:
            found["lost"] = [json.dumps(said) for said in acknowledged if not _is_there(tx, said)]
            found["miscounted"] = _miscounted(tx)
            found["stray or absent files"] = _odd_contents(tx, place / "data" / "artifacts")
        found["log"] = _odd_log(app, place / "project")
    finally:
        app.close()
    return found


def _is_there(tx: Transaction, said: Acknowledged) -> bool:
    sql, name = LOOK_UP[said["kind"]]
    found = tx.value(sql, **said["key"])
    if found is not None and name is not None:
        found = json.loads(found).get(name)
    return found is not None and said["digest"] in (found, digest(str(found)))


def _miscounted(tx: Transaction) -> list[str]:
    return [
        f"{name} of {what}: {kept}, but {counted}"
        for name, sql in COUNTS.items()
        for what, kept, counted in (row.values() for row in tx.all(sql))
        if kept != (counted or 0)
    ]


def _odd_contents(tx: Transaction, folder: Path) -> list[str]:
    if engines.ENGINE == "sqlite":
        return _odd_files(tx, folder)
    found = [
        f"changed: {row['digest']}"
        for row in tx.all("SELECT digest, data FROM content")
        if digest(row["data"]) != row["digest"]
    ]
    stray = (
        "SELECT digest FROM content WHERE NOT EXISTS (SELECT 1 FROM revision WHERE digest = content.digest)"
    )
    return [*found, *(f"no row: {row['digest']}" for row in tx.all(stray))]


def _odd_files(tx: Transaction, folder: Path) -> list[str]:
    wanted = {}
    for row in tx.all("SELECT artifact_id, revision_num, filename, digest FROM revision"):
        start = f"{row['artifact_id']}/revision-{row['revision_num']}"
        wanted[f"{start}-{row['filename']}"] = row["digest"]
        wanted[f"{start}.meta.md"] = None
    paths = [path for path in folder.rglob("*") if path.is_file() or not any(path.iterdir())]
    there = {path.relative_to(folder).as_posix(): path for path in paths if path.name != ".writing"}
    changed = {
        name
        for name, kept in wanted.items()
        if kept is not None and name in there and digest(there[name].read_bytes()) != kept
    }
    stray, absent = there.keys() - wanted.keys(), wanted.keys() - there.keys()
    odd = {"no row": stray, "no file": absent, "changed": changed}
    return [f"{problem}: {name}" for problem, names in odd.items() for name in sorted(names)]


def _odd_log(app: App, project: Path) -> list[str]:
    """Write one entry more: the file was the beginning of what it is now, and now it is complete."""
    path = project / ".npl" / "sessions" / SESSION / "worklog.jsonl"
    before = path.read_bytes() if path.exists() else b""
    TOOLS["worklog_init"](app, session_id=SESSION)
    TOOLS["worklog_log"](app, agent_id="examiner", action="looked", summary="around", session_id=SESSION)
    after = path.read_bytes()
    with app.stores.database.read() as tx:
        rows = tx.all("SELECT seq, summary FROM worklog_entry ORDER BY seq")
    lines = [json.loads(line) for line in after.splitlines()]
    odd = [path.as_posix() for path in project.rglob(".npl-*.tmp")]
    if not after.startswith(before):
        odd.append("the file was not the beginning of the log")
    if [(line["seq"], line["summary"]) for line in lines] != [(row["seq"], row["summary"]) for row in rows]:
        odd.append(f"{len(lines)} lines, but {len(rows)} entries")
    return odd


@dataclass(slots=True)
class Outcome:
    """What came of killing writers.

    :param kills: processes that were killed.
    :param acknowledged: calls that had returned.
    :param interrupted: writes of files that were found half done.
    :param ended: what writers said that ended before they were killed.
    :param broken: by promise, how it was broken.
    """

    kills: int = 0
    acknowledged: int = 0
    interrupted: int = 0
    ended: list[str] = field(default_factory=list)
    broken: Examination = field(default_factory=dict)


class Life:
    """A writer as a process of its own; it waits until it is told to begin."""

    def __init__(self, place: Path, name: str) -> None:
        (place / "project").mkdir(parents=True, exist_ok=True)
        self._said = place / f"{name}.out"
        self._errors = place / f"{name}.err"
        with self._said.open("wb") as said, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.npl_mcp.stores.writer", "--write", str(place), name],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=errors,
            )

    def begin(self) -> None:
        """Wait until it can begin and let it."""
        while not self._said.stat().st_size and self._process.poll() is None:
            time.sleep(0.005)
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def end(self) -> str | None:
        """Kill it.

        :returns: what it said if it had ended by itself.
        """
        self._process.kill()
        with self._process:
            pass
        by_itself = self._process.returncode != -signal.SIGKILL
        return self._errors.read_text() if by_itself else None

    def acknowledged(self) -> list[Acknowledged]:
        """Read what it did; a line without its end was not said."""
        lines = self._said.read_bytes().split(b"\n")[1:-1]
        return [json.loads(line) for line in lines]


def kill_writers(folder: Path, kills: int, seed: int = 0) -> Outcome:
    """Let writers write at once into one data folder, kill each at a random moment, and look what is left.

    :param folder: for the data folders.
    :param kills: processes to kill, at least.
    """
    chance = random.Random(seed)
    outcome = Outcome()
    said: list[Acknowledged] = []
    number = 0
    while outcome.kills < kills:
        place = folder / str(number // ROUNDS)
        if number % ROUNDS == 0:
            said = []
        lives = [Life(place, f"w{number}-{one}") for one in range(WRITERS)]
        _live_and_die(lives, chance, outcome)
        new = [one for life in lives for one in life.acknowledged()]
        said += new
        outcome.acknowledged += len(new)
        notes = place / "data" / "artifacts" / ".writing"
        outcome.interrupted += len(list(notes.iterdir())) if notes.is_dir() else 0
        for promise, problems in examine(place, said).items():
            outcome.broken.setdefault(promise, []).extend(problems)
        number += 1
    return outcome


def _live_and_die(lives: Sequence[Life], chance: random.Random, outcome: Outcome) -> None:
    ends = [chance.uniform(0, LONGEST) for _ in lives]
    if chance.random() < 0.5:  # all in the same moment, so that nobody is left to tidy up
        ends = [max(ends)] * len(lives)
    try:
        for life in lives:
            life.begin()
        began = time.monotonic()
        for end, life in sorted(zip(ends, lives, strict=True), key=lambda pair: pair[0]):
            time.sleep(max(0.0, began + end - time.monotonic()))
            problem = life.end()
            outcome.kills += problem is None
            outcome.ended += [] if problem is None else [problem]
    finally:
        for life in lives:
            life.end()


def main() -> int:
    """Write, or have writers killed."""
    parser = argparse.ArgumentParser(description="Kills writers and looks what is left.")
    parser.add_argument("--kills", type=int, default=200, help="processes to kill")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the moments")
    parser.add_argument("--write", nargs=2, metavar=("FOLDER", "NAME"), help="be a writer")
    given = parser.parse_args()
    if given.write:
        write(Path(given.write[0]), given.write[1])
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        outcome = kill_writers(Path(folder), given.kills, given.seed)
    report = asdict(outcome) | {
        "seed": given.seed,
        "seconds": round(time.monotonic() - began),
        "broken": {promise: len(problems) for promise, problems in outcome.broken.items()},
        "first": [problem for problems in outcome.broken.values() for problem in problems[:3]],
    }
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    return 1 if outcome.ended or any(outcome.broken.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
