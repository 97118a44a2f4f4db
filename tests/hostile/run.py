"""The hostile day: every attack at once against servers over HTTP, over standard streams, and of sessions.

Meanwhile a quiet client of each makes ordinary calls. The day is won if none of them gets a wrong answer,
no server needs more than 600 MB, and all end after the signal. Of twenty sessions of five roots, one attacks
and one is quiet; the others compare their answers with those of processes of their own. Times are printed.
Over HTTP the quiet client has a token of its own, and the attackers share one. They have a lower priority
than the servers, as if on other machines.

    python -m tests.hostile.run [--seconds 90] [--only NAME ...] [--tokenless]
"""

import argparse
import http.client
import json
import multiprocessing
import os
import queue
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from npl_mcp.config import sessions
from npl_mcp.http.service import stop_sessions
from tests import engines
from tests.conftest import GUIDE
from tests.hostile.attacks import ATTACKS, Attack, lay_out
from tests.messages import READY, asking, hello
from tests.npl_mcp.http.http_server import environment, serving

MOST_MEGABYTES = 600
LONGEST_END_SECONDS = 30.0
"""A server that runs longer has missed the signal."""
LARGEST_ERROR = 4_096
ANSWER_SECONDS = 60.0
ADDRESS_SPACE = 4 << 30
"""The limit keeps an endlessly growing server from exhausting the machine."""

QUIET: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("npl_load_tailored", {"file": "guide.md", "context": "prune fruit trees", "token_budget": 300}),
    ("npl_section_index", {"file": "guide.md"}),
    ("npl_load_tailored", {"file": "guide.md", "selectors": ["## Watering"]}),
    ("session_get", {"session_id": "quiet"}),
    ("worklog_status", {"session_id": "quiet"}),
)
"""Calls whose answers do not change during the day."""

BOTH = "application/json, text/event-stream"


class Http:
    """A caller over HTTP; see :class:`~tests.hostile.attacks.Line`.

    :param port: of the server.
    :param token: the caller's; ``None`` without tokens.
    """

    def __init__(self, port: int, token: str | None) -> None:
        self._port = port
        self._headers = {
            "Host": f"localhost:{port}",
            **({"Authorization": f"Bearer {token}"} if token else {}),
            "Content-Type": "application/json",
            "Accept": BOTH,
        }
        self.head = "".join(f"{name}: {value}\r\n" for name, value in self._headers.items()).encode()

    def call(self, tool: str, arguments: Any) -> Any:
        body = json.dumps(arguments).encode()
        return json.loads(self._post(f"/mcp/tools/{tool}", body))

    def send(self, message: bytes) -> None:
        self._post("/mcp", message)

    def wait_for_turn(self) -> None:
        """Every connection is its own."""

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), timeout=ANSWER_SECONDS)

    def _post(self, path: str, body: bytes) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_SECONDS)
        try:
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.request("POST", path, body, self._headers)
            return connection.getresponse().read()
        finally:
            connection.close()


class Kept(Http):
    """A caller over HTTP that keeps its connection."""

    def __init__(self, port: int, token: str | None) -> None:
        super().__init__(port, token)
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)

    def _post(self, path: str, body: bytes) -> bytes:
        self._connection.request("POST", path, body, self._headers)
        return self._connection.getresponse().read()


class Pipe:
    """A caller over standard streams, for several threads; see :class:`~tests.hostile.attacks.Line`.

    :param process: the server.
    """

    head = b""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._lock = threading.Lock()
        self._count = 1_000
        self._waiting: dict[int, queue.SimpleQueue[bytes]] = {}
        self._others: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def call(self, tool: str, arguments: Any) -> Any:
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if "error" in answer:
            return {"success": False, "error": answer["error"]["message"], "error_code": "PROTOCOL"}
        return json.loads(answer["result"]["content"][0]["text"])

    def ask(self, method: str, params: Any) -> Any:
        with self._lock:
            self._count += 1
            number = self._count
        answers = self._waiting[number] = queue.SimpleQueue()
        self.write(json.dumps(asking(number, method, **params)).encode())
        try:
            return json.loads(answers.get(timeout=ANSWER_SECONDS))
        finally:
            del self._waiting[number]

    def send(self, message: bytes) -> None:
        self.write(message)
        self._others.get(timeout=ANSWER_SECONDS)

    def connect(self) -> None:
        return None

    def wait_for_turn(self) -> None:
        """Wait until the message of another thread has left: that is not the server's time."""
        with self._lock:
            return

    def write(self, message: bytes) -> None:
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(message + b"\n")
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # Long answers are read by the thread that waits for them.
            number = line[:60].partition(b'"id":')[2].partition(b",")[0]
            waiting = self._waiting.get(int(number)) if number.isdigit() else None
            (waiting or self._others).put(line)


@contextmanager
def speaking(folder: Path, *flags: str) -> Iterator[tuple[Pipe, subprocess.Popen[bytes]]]:
    """Run a server over standard streams."""
    folder.mkdir(exist_ok=True)
    with (folder / "stderr.txt").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "npl_mcp", *flags],
            cwd=folder,
            env=environment(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    try:
        pipe = Pipe(process)
        pipe.ask("initialize", hello()["params"])
        pipe.write(json.dumps(READY).encode())
        yield pipe, process
    finally:
        process.kill()
        process.wait()


class Checked:
    """A caller whose answers are all checked.

    :param line: makes the calls.
    :param wrong: gets what is wrong.
    """

    def __init__(self, line: Any, wrong: list[str]) -> None:
        self._line, self._wrong = line, wrong
        self.send, self.connect, self.head = line.send, line.connect, line.head

    def call(self, tool: str, arguments: Any) -> Any:
        answer = self._line.call(tool, arguments)
        error = "" if answer["success"] else answer["error"]
        if answer.get("error_code") == "INTERNAL_ERROR" or len(error.encode()) > LARGEST_ERROR:
            self._wrong.append(f"{tool[:40]}: {answer.get('error_code')}: {error[:200]}")
        return answer


Over = Callable[[], bool]


def attack(line: Any, attacks: Sequence[Attack], over: Over, counts: Over) -> tuple[Counter[str], list[str]]:
    """Make all attacks at once until it is over; return how often each was made, and what was wrong.

    :param counts: whether the server still runs, so that each answer counts.
    """
    rounds: Counter[str] = Counter()
    wrong: list[str] = []
    checked = Checked(line, wrong)

    def repeat(attack: Attack) -> None:
        while not over():
            try:
                attack.act(checked)
                rounds[attack.name] += 1
            except http.client.IncompleteRead:
                # Its other connections lie unread, and it reads this one slowly: the server ends such a one.
                rounds["answers ended early"] += 1
            except (OSError, http.client.HTTPException, ValueError, queue.Empty) as error:
                if counts():
                    wrong.append(f"{attack.name}: {type(error).__name__}: {str(error)[:200]}")
            time.sleep(attack.pause)

    threads = [threading.Thread(target=repeat, args=(attack,), daemon=True) for attack in attacks]
    for thread in threads:
        thread.start()
    while not over():
        time.sleep(0.05)
    for thread in threads:
        thread.join(1)
    return rounds, wrong


def attack_port(port: int, token: str | None, names: Sequence[str], end: float, results: Any) -> None:
    """Attack a server over HTTP; run in a process of its own."""
    os.nice(10)
    chosen = [attack for attack in ATTACKS if attack.name in names]
    results.put(attack(Http(port, token), chosen, lambda: time.time() > end + 1, lambda: time.time() < end))


class QuietClient:
    """Makes ordinary calls one after the other, and keeps how long each took.

    :param line: makes them.
    """

    def __init__(self, line: Any) -> None:
        self._line = line
        line.call("session_create", {"session_id": "quiet", "title": "A quiet day"})
        line.call("worklog_init", {"session_id": "quiet"})
        self._right = [line.call(tool, arguments) for tool, arguments in QUIET]
        assert all(answer["success"] for answer in self._right), self._right
        self.seconds: list[float] = []
        self.wrong: list[str] = []

    def run(self, over: Over) -> None:
        """Call until the day is over."""
        while not over():
            for (tool, arguments), right in zip(QUIET, self._right, strict=True):
                self._line.wait_for_turn()
                start = time.perf_counter()
                try:
                    answer = self._line.call(tool, arguments)
                except (OSError, http.client.HTTPException, ValueError, queue.Empty) as error:
                    answer = f"{type(error).__name__}: {error}"
                self.seconds.append(time.perf_counter() - start)
                if answer != right and not over():
                    self.wrong.append(f"{tool}: {str(answer)[:200]}")
                time.sleep(0.01)


def peak(pid: int) -> int:
    """Return the maximum memory of a process in megabytes."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(text.partition("VmHWM:")[2].split()[0]) // 1024


def ended(process: subprocess.Popen[bytes]) -> float:
    """Ask a server to end; return the seconds it took, at most 30 (``LONGEST_END_SECONDS``)."""
    start = time.perf_counter()
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(LONGEST_END_SECONDS)
    return time.perf_counter() - start


@dataclass
class Outcome:
    """The result of one server's day.

    :param name: of the server.
    :param quiet: its quiet client.
    :param rounds: how often each attack was made.
    :param wrong: what was wrong with answers to attacks.
    :param megabytes: the most memory it had.
    :param end: seconds from the signal to its end.
    :param log: its standard error.
    """

    name: str
    quiet: QuietClient
    rounds: Counter[str]
    wrong: list[str]
    megabytes: int
    end: float
    log: str


def day_of_port(
    folder: Path, root: Path, seconds: float, names: Sequence[str], *, tokenless: bool
) -> Outcome:
    """Attack a server over HTTP, from a process of its own."""
    folder.mkdir()
    spawning = multiprocessing.get_context("spawn")
    quiet_token = token = None
    if not tokenless:
        quiet_token, token = engines.tokens(folder / "data", ("quiet", "attackers")).values()
    with serving(folder, "--root", str(root), "--write") as server:
        quiet = QuietClient(Kept(server.port, quiet_token))
        first = {
            "name": "first",
            "artifact_type": "x",
            "filename": "x",
            "file_content_base64": "QUFB" * 2_000_000,
        }
        Http(server.port, token).call("artifact_create", first)
        end = time.time() + seconds
        results = spawning.Queue()
        attackers = spawning.Process(
            target=attack_port, args=(server.port, token, names, end, results), daemon=True
        )
        attackers.start()
        quiet.run(lambda: time.time() > end)
        megabytes, ending = peak(server.process.pid), ended(server.process)
        rounds, wrong = results.get(timeout=ANSWER_SECONDS)
        attackers.join()
        return Outcome("http", quiet, rounds, wrong, megabytes, ending, server.log)


def day_of_pipe(folder: Path, root: Path, seconds: float, names: Sequence[str]) -> Outcome:
    """Attack a server over its standard streams, which quiet client and attackers share."""
    with speaking(folder, "--root", str(root), "--write") as (pipe, process):
        quiet = QuietClient(pipe)
        end = time.time() + seconds
        came: list[tuple[Counter[str], list[str]]] = []

        def over() -> bool:
            return time.time() > end

        def attacking() -> None:
            chosen = [attack for attack in ATTACKS if attack.stdio and attack.name in names]
            came.append(attack(pipe, chosen, over, lambda: not over()))

        thread = threading.Thread(target=attacking)
        thread.start()
        quiet.run(over)
        megabytes, ending = peak(process.pid), ended(process)
        thread.join()
        log = (folder / "stderr.txt").read_text(encoding="utf-8")
        return Outcome("stdio", quiet, *came[0], megabytes, ending, log)


class Neighbour:
    """A session that compares its answers with those of a process of its own.

    :param line: of the session.
    :param own: of the process with the same root.
    :param others: files of other roots.
    """

    def __init__(self, line: Pipe, own: Pipe, others: Sequence[Path]) -> None:
        self._line, self._others = line, others
        self._right = [(call, own.call(*call)) for call in QUIET[:3]]
        self.wrong: list[str] = []

    def run(self, over: Over) -> None:
        """Call until the day is over."""
        edit = {"operation": "append", "selector": "## Watering", "content": "Foreign."}
        while not over():
            answers = [(self._line.call(*call), right) for call, right in self._right]
            self.wrong += [str(answer)[:200] for answer, right in answers if answer != right]
            for file in map(str, self._others):
                read = self._line.call("npl_load_tailored", {"file": file, "selectors": ["## Watering"]})
                written = self._line.call("npl_update_section", {**edit, "file": file})
                self.wrong += [str(answer)[:200] for answer in (read, written) if answer["success"]]
            time.sleep(0.5)


def day_of_sessions(folder: Path, seconds: float, names: Sequence[str]) -> Outcome:
    """Attack from one of twenty sessions of five roots, which share a process."""
    roots = [folder / f"root{number}" for number in range(5)]
    for number, root in enumerate(roots):
        root.mkdir(parents=True)
        (root / "guide.md").write_text(f"{GUIDE}\n## Owner {number}\n\nText of {number}.\n", encoding="utf-8")
    lay_out(roots[0])
    with ExitStack() as stack:
        stack.callback(stop_sessions, folder / "shared" / "data")  # which an unanswered call may start again
        lines = [
            stack.enter_context(
                speaking(folder / "shared", "--shared", "--root", str(roots[at % 5]), *["--write"][at % 5 :])
            )[0]
            for at in range(20)
        ]
        server = sessions.ask(str(folder / "shared" / "data"))
        assert server is not None
        assert server["sessions"] == 20
        neighbours = []
        for at, line in enumerate(lines[2:], 2):
            with speaking(folder / f"own{at}", "--root", str(roots[at % 5]), *["--write"][at % 5 :]) as (
                own,
                _,
            ):
                files = [root / "guide.md" for root in roots if root != roots[at % 5]]
                neighbours.append(Neighbour(line, own, files))
        quiet = QuietClient(lines[0])
        end = time.time() + seconds
        chosen = [attack for attack in ATTACKS if attack.stdio and attack.name in names]
        rounds, wrong = Counter[str](), list[str]()

        def over() -> bool:
            return time.time() > end

        def attacking() -> None:
            made = attack(lines[1], chosen, over, lambda: not over())
            rounds.update(made[0])
            wrong.extend(made[1])

        runs = [attacking, *(partial(neighbour.run, over) for neighbour in neighbours)]
        threads = [threading.Thread(target=run) for run in runs]
        for thread in threads:
            thread.start()
        quiet.run(over)
        for thread in threads:
            thread.join()
        megabytes, start = peak(server["process"]), time.perf_counter()
        stop_sessions(folder / "shared" / "data")
        wrong += [text for neighbour in neighbours for text in neighbour.wrong]
        log = (folder / "shared" / "data" / "sessions.log").read_text(encoding="utf-8")
        return Outcome("sessions", quiet, rounds, wrong, megabytes, time.perf_counter() - start, log)


def told(outcome: Outcome, wanted: bool) -> bool:
    """Print the outcome of a server's day; return whether it was won.

    :param wanted: whether any attacks are for this server.
    """
    seconds = sorted(outcome.quiet.seconds)
    failures = {
        "wrong answers of the quiet client": outcome.quiet.wrong,
        "wrong answers of attacks": outcome.wrong,
        "attacks never made": [] if outcome.rounds or not wanted else ["all"],
        "memory": [f"{outcome.megabytes} MB"] if outcome.megabytes > MOST_MEGABYTES else [],
        "end": ["none"] if outcome.end >= LONGEST_END_SECONDS else [],
        "log": [outcome.log[:2_000]] if "Traceback" in outcome.log else [],
    }
    median, p99, longest = (seconds[int(len(seconds) * share) - 1] * 1000 for share in (0.5, 0.99, 1))
    print(
        f"{outcome.name}: {len(seconds)} quiet calls, median {median:.1f} ms, p99 {p99:.0f} ms, "
        f"longest {longest:.0f} ms; {outcome.megabytes} MB; ended in {outcome.end:.2f} s"
    )
    print("  attacks: " + ", ".join(f"{name} {count}" for name, count in outcome.rounds.items()))
    for kind, examples in failures.items():
        if examples:
            print(f"  WRONG, {kind} ({len(examples)}): " + "\n    ".join(dict.fromkeys(examples[:20])))
    return not any(failures.values())


def main() -> int:
    parser = argparse.ArgumentParser(description="Attack the servers while quiet clients measure.")
    parser.add_argument("--seconds", type=float, default=60.0)
    names = [attack.name for attack in ATTACKS]
    parser.add_argument("--only", action="append", choices=names, help="these attacks alone (repeatable)")
    parser.add_argument("--tokenless", action="store_true", help="over HTTP each connection is a caller")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    sys.setswitchinterval(0.001)
    chosen = given.only or names
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "docs"
        root.mkdir()
        (root / "guide.md").write_text(GUIDE, encoding="utf-8")
        lay_out(root)
        # One after the other: together they would measure how many processors the machine has.
        http_day = day_of_port(Path(folder) / "http", root, given.seconds, chosen, tokenless=given.tokenless)
        stdio_day = day_of_pipe(Path(folder) / "stdio", root, given.seconds, chosen)
        day = day_of_sessions(Path(folder) / "sessions", given.seconds, chosen)
    by_stdio = any(attack.stdio for attack in ATTACKS if attack.name in chosen)
    won = told(http_day, True)
    won &= told(stdio_day, by_stdio)
    won &= told(day, by_stdio)
    print("won" if won else "lost")
    return 0 if won else 1


if __name__ == "__main__":
    sys.exit(main())
