"""``make conformance``: how the protocol's official suite, and clients written by others, find the server.

Installs what it needs, prints a line for each scenario and client, and ends with 1 if one of them failed.
"""

import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from installing import HERE, Installed, install
from processes import CheckError, Done, end_all, free_port, run, serving

from npl_mcp.tools.domains import listed_tools

REVISION = "2026-07-28"
FORMER = "2025-11-25"
WORKERS = 3
LOAD = 200
BIN = Path(sys.executable).parent
STDIO = BIN / "npl-mcp"
TOOLS = [spec.name for spec in listed_tools()]
GOOD = {"name": "npl_section_index", "arguments": {"depth": 1}}
BAD = {"name": "npl_section_index", "arguments": {"nonsense": 1}}
OUT_OF_TIME = "scenario-timeout"
REFUSED = 5
"""The inspector's exit code for an answer with the mark of an error."""

Outcome = tuple[bool, str]


@dataclass(frozen=True, slots=True)
class Place:
    """Where checks run.

    :param installed: the programs.
    :param env: variables, with a home and a data folder of their own.
    :param folder: the working directory.
    :param url: of the server.
    :param fixture_url: of the server that has the suite's fixture.
    """

    installed: Installed
    env: Mapping[str, str]
    folder: Path
    url: str
    fixture_url: str

    @property
    def inspector(self) -> Path:
        """The inspector's launcher."""
        return self.installed.modules / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"

    def run(self, *command: object) -> Done:
        """Run a program."""
        return run(command, self.env, self.folder)

    def inspect(self, over: str, *options: str) -> Done:
        """Run the inspector's command line.

        :param over: the era to speak over HTTP, or ``stdio``.
        """
        target = [STDIO] if over == "stdio" else ["--server-url", self.url, "--protocol-era", over]
        return self.run(self.installed.node, self.inspector, "--cli", *target, *options, "--format", "json")


@dataclass(frozen=True, slots=True)
class Suite:
    """The official suite's scenarios for servers of one revision.

    :param revision: of the protocol.
    :param required: how many scenarios the revision requires.
    :param not_offered: required ones about what the server has no use for.
    """

    revision: str
    required: int
    not_offered: frozenset[str] = frozenset()

    def run(self, place: Place) -> Iterator[Outcome]:
        """Run all scenarios; those that the revision does not require are only counted.

        :raises CheckError: there are none.
        """
        script = place.installed.modules / "@modelcontextprotocol/conformance/dist/index.js"
        notes = place.folder / self.revision
        server = ("server", "--url", place.fixture_url, "--requirements", self.revision, "-o", notes)
        done = place.run(place.installed.node, script, *server)
        summary = done.out.partition("=== SUMMARY ===")[2]
        optional = set(re.findall(r"^  [✓✗] (\S+) \(", summary, re.MULTILINE))
        ran = re.findall(r"^[✓✗] (\S+): (\d+) passed, (\d+) failed", summary, re.MULTILINE)
        scenarios = [(name, int(passed), int(failed)) for name, passed, failed in ran if name not in optional]
        if not scenarios:
            raise CheckError(done.words)
        for name, passed, failed in scenarios:
            if name in self.not_offered:
                continue
            reason = _reason(notes, name) if failed else ""
            if reason.startswith(OUT_OF_TIME) and self._again(place, name):
                yield True, f"{name}: passed at the second try; the first ran out of time"
            else:
                words = f"{name}: {passed} of {passed + failed} checks"
                yield passed > 0 and not failed, f"{words}; {reason}" if reason else words
        missing = ", ".join(sorted(self.not_offered)) or "none"
        yield (
            len(scenarios) == self.required,
            f"{len(scenarios)} of {self.required} required scenarios ran; not offered: {missing}",
        )

    def _again(self, place: Place, scenario: str) -> bool:
        """Run one scenario alone.

        Now and then one in which the server asks the client something waits in vain until its time is out
        (seen once in several hundred); what is broken does so twice.
        """
        script = place.installed.modules / "@modelcontextprotocol/conformance/dist/index.js"
        which = ("--scenario", scenario, "--spec-version", self.revision)
        done = place.run(place.installed.node, script, "server", "--url", place.fixture_url, *which)
        return done.code == 0


def _reason(notes: Path, scenario: str) -> str:
    """Find in the suite's notes why a scenario failed."""
    for path in notes.glob(f"server-{scenario}-2*/checks.json"):
        for check in json.loads(path.read_text(encoding="utf-8")):
            if check["status"] == "FAILURE":
                return f"{check['id']}: {check.get('errorMessage', check['description'])}"[:300]
    return "no reason given"


def client(script: str, over: str, revision: str | None) -> Callable[[Place], str]:
    """Have a client list the tools and make a good and a bad call.

    :param script: in the folder of clients, for Node.js or Python.
    :param over: ``HTTP``, ``stdio``, or ``shared`` for a session of a shared process.
    :param revision: the one it must come to speak; ``None`` if it does not tell.
    """

    def check(place: Place) -> str:
        path = place.installed.clients / script
        program = place.installed.python if path.suffix == ".py" else place.installed.node
        command = [str(STDIO), *(["--shared"] if over == "shared" else [])]
        target: dict[str, Any] = {"url": place.url} if over == "HTTP" else {"command": command}
        report = _json(place.run(program, path, json.dumps({**target, "calls": [GOOD, BAD]})))
        _agree("revision", report["protocol"], revision)
        _agree("tools", report["tools"], TOOLS)
        _judge(*report["answers"])
        return f"{revision or 'its own revision'}, {len(TOOLS)} tools, a call, a refused call"

    return check


def strict(over: str) -> Callable[[Place], str]:
    """Have the inspector judge the schemas of all tools.

    :param over: the era to speak over HTTP, or ``stdio``.
    """

    def check(place: Place) -> str:
        done = place.inspect(over, "--method", "tools/list", "--strict")
        _agree("tools", [tool["name"] for tool in _json(done)["result"]["tools"]], TOOLS)
        complaints = re.findall(r'^(?:Warning|Error): tool "(\S+)"$|^\d+ errors?.*$', done.err, re.MULTILINE)
        if complaints:
            raise CheckError("schemas that not every client can read: " + ", ".join(filter(None, complaints)))
        return f"{len(TOOLS)} tools, no warning"

    return check


def inspected_calls(over: str) -> Callable[[Place], str]:
    """Have the inspector make a good and a bad call."""

    def check(place: Place) -> str:
        answers = []
        for call, code in ((GOOD, 0), (BAD, REFUSED)):
            given = ("--tool-name", str(call["name"]), "--tool-args-json", json.dumps(call["arguments"]))
            done = place.inspect(over, "--method", "tools/call", *given)
            _agree("exit code", done.code, code)
            answers.append(_last_json(done)["result"])
        _judge(*answers)
        return "a call, a refused call"

    return check


def load(place: Place) -> str:
    """Have the inspector call from eight connections at once."""
    many = ("--load", "--load-concurrency", "8", "--load-requests", str(LOAD))
    done = place.inspect("modern", "--method", "tools/call", "--tool-name", str(GOOD["name"]), *many)
    result = _json(done)["result"]
    _agree("good answers", result["ok"], LOAD)
    return f"{LOAD} calls, eight at a time"


def fastmcp_command(place: Place) -> str:
    """List and call with FastMCP's command line."""
    program = BIN / "fastmcp"
    listed = _json(place.run(program, "list", place.url, "--json"))
    _agree("tools", [tool["name"] for tool in listed["tools"]], TOOLS)
    answers = []
    for call in (GOOD, BAD):
        given = json.dumps(call["arguments"])
        done = place.run(program, "call", place.url, call["name"], "--json", "--input-json", given)
        answers.append(_last_json(done))
    _judge(*answers)
    return f"{len(TOOLS)} tools, a call, a refused call"


SUITES = (
    Suite(REVISION, 37),
    # The newer revision takes all three away; the framework has no part of them for servers.
    Suite(FORMER, 30, frozenset({"tools-call-sampling", "resources-subscribe", "resources-unsubscribe"})),
)
CHECKS: tuple[tuple[str, Callable[[Place], str]], ...] = (
    ("inspector --strict over stdio", strict("stdio")),
    (f"inspector --strict over HTTP, {FORMER}", strict("legacy")),
    (f"inspector --strict over HTTP, {REVISION}", strict("modern")),
    ("inspector over stdio", inspected_calls("stdio")),
    (f"inspector over HTTP, {REVISION}", inspected_calls("modern")),
    ("inspector --load over HTTP", load),
    ("TypeScript SDK 1 over stdio", client("typescript_sdk_1.js", "stdio", FORMER)),
    ("TypeScript SDK 1 over HTTP", client("typescript_sdk_1.js", "HTTP", FORMER)),
    ("TypeScript SDK 2 over stdio", client("typescript_sdk_2.js", "stdio", REVISION)),
    ("TypeScript SDK 2 in a session", client("typescript_sdk_2.js", "shared", REVISION)),
    ("TypeScript SDK 2 over HTTP", client("typescript_sdk_2.js", "HTTP", REVISION)),
    ("AI SDK over stdio", client("ai_sdk.js", "stdio", None)),
    ("AI SDK over HTTP", client("ai_sdk.js", "HTTP", None)),
    ("Python SDK 1 over stdio", client("python_sdk_1.py", "stdio", FORMER)),
    ("Python SDK 1 in a session", client("python_sdk_1.py", "shared", FORMER)),
    ("Python SDK 1 over HTTP", client("python_sdk_1.py", "HTTP", FORMER)),
    ("fastmcp command over HTTP", fastmcp_command),
)


def _json(done: Done) -> Any:
    if done.code:
        raise CheckError(f"exit code {done.code}: {done.words}")
    return _last_json(done)


def _last_json(done: Done) -> Any:
    try:
        return json.loads(done.out)
    except ValueError:
        raise CheckError(f"no JSON: {done.words}") from None


def _agree(what: str, actual: object, wanted: object) -> None:
    if actual != wanted:
        raise CheckError(f"{what}: {str(actual)[:200]} instead of {str(wanted)[:200]}")


def _judge(good: Mapping[str, Any], bad: Mapping[str, Any]) -> None:
    """Check the answers to the good and to the bad call."""
    for answer, wanted in ((good, True), (bad, False)):
        envelope = json.loads(answer["content"][0]["text"])
        marked = answer.get("isError", answer.get("is_error", False))
        _agree("success and error mark", (envelope["success"], marked), (wanted, not wanted))
    _agree("error code", envelope["error_code"], "INVALID_PARAMETER")


def attempt(name: str, check: Callable[[Place], Iterable[Outcome]], place: Place) -> list[Outcome]:
    """Make a check and put a name before what comes of it."""
    try:
        return [(good, f"{name}: {line}") for good, line in check(place)]
    except CheckError as failure:
        return [(False, f"{name}: {failure}")]
    except (LookupError, TypeError, ValueError) as error:
        return [(False, f"{name}: what came back has not the expected form: {error!r}"[:300])]


def outcomes(place: Place) -> Iterator[Outcome]:
    """Make all checks, a few at a time, and give what came of them in the order they are listed."""
    checks = [
        *((f"suite {suite.revision}", suite.run) for suite in SUITES),
        *((name, partial(_single, check)) for name, check in CHECKS),
    ]
    pool = ThreadPoolExecutor(WORKERS)
    try:
        for future in [pool.submit(attempt, name, check, place) for name, check in checks]:
            yield from future.result()
    finally:
        pool.shutdown(cancel_futures=True)
        place.run(BIN / "npl-mcp-server", "stop")


def _single(check: Callable[[Place], str], place: Place) -> list[Outcome]:
    return [(True, check(place))]


def environment(folder: Path) -> dict[str, str]:
    """Return variables under which no program finds the settings of this machine's user, or asks for updates.

    :param folder: a home.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith("NPL_")}
    own = {"HOME": str(folder), "NPL_MCP_DATA_DIR": str(folder / "data")}
    return env | own | {"NO_COLOR": "1", "FASTMCP_CHECK_FOR_UPDATES": "off"}


def tell(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def show(results: Iterable[Outcome], started: float) -> int:
    """Print a line for each outcome and one for all.

    :returns: the exit code.
    """
    counts = {True: 0, False: 0}
    for good, line in results:
        counts[good] += 1
        tell(f"{'ok    ' if good else 'failed'}  {line}")
    seconds = time.monotonic() - started
    tell(f"{counts[True]} passed, {counts[False]} failed, {seconds:.0f} s")
    return 1 if counts[False] else 0


def stop(number: int, _: FrameType | None) -> None:
    """End with all that was started."""
    end_all()
    sys.exit(128 + number)


def main() -> int:
    """Install, serve, check."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    started = time.monotonic()
    try:
        installed = install()
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            env = environment(folder)
            # The suite reads resources that are listed, and these files are.
            written = run([STDIO, "directive", "init"], env, folder)
            if written.code:
                raise CheckError(f"npl-mcp directive init: {written.words}")
            servers = []
            for program in (("-m", "npl_mcp.cli.commands.serving"), (HERE / "serve.py",)):
                port = free_port()
                command = (sys.executable, *program, "run", "--port", port, "--data-dir", folder / str(port))
                # The suite plays a page of the server's own address as well; pages are refused unless named.
                command += ("--no-token", "--allow-origin", f"http://localhost:{port}")
                wait = stack.enter_context(serving(command, env, folder, port))
                servers.append((f"http://localhost:{port}/mcp", wait))
            for _, wait in servers:
                wait()
            urls = [url for url, _ in servers]
            return show(outcomes(Place(installed, env, folder, *urls)), started)
    except CheckError as failure:
        tell(f"failed  {failure}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
