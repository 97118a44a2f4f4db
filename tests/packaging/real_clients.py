"""``make clients``: real clients start the server from what the table of clients tells them to write.

Each has an empty home directory and no account: it is asked whether the servers it knows answer, and no model
is asked anything. Their publishers' programs look at the plugin and the bundle. Needs npm and the network.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from npl_mcp.config.clients import CLIENTS, READING, Client
from tests.packaging.first_answer import NOTES
from tests.packaging.project import ROOT

KEPT = ROOT / ".clients"
PATIENCE = 120
SETTINGS = '{"security": {"folderTrust": {"enabled": false}}}'


class Tried(NamedTuple):
    """A client that npm brings.

    :param package: its npm name.
    :param program: its command.
    :param listing: arguments that list its servers.
    :param connected: its output for a server that answers.
    :param asked: input for it.
    :param by_file: whether it starts servers of a project's file without asking.
    """

    package: str
    program: str
    listing: tuple[str, ...] = ("mcp", "list")
    connected: str = "onnected"
    asked: str = ""
    by_file: bool = True


# Codex tells programs, not people, whether a server answers.
TO_CODEX = (
    {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "npl", "version": "0"}}},
    {"method": "initialized"},
    {"id": 2, "method": "mcpServerStatus/list", "params": {}},
)
TRIED = {
    "Claude Code": Tried("@anthropic-ai/claude-code", "claude", by_file=False),
    "Codex": Tried(
        "@openai/codex",
        "codex",
        ("app-server",),
        '"name":"npl_load_tailored"',
        "".join(json.dumps(message) + "\n" for message in TO_CODEX),
    ),
    "Gemini CLI": Tried("@google/gemini-cli", "gemini"),
    "opencode": Tried("opencode-ai", "opencode"),
}
LOOKS = (
    ("claude", "plugin", "validate", "."),
    ("claude", "plugin", "validate", "plugin"),
    ("mcpb", "validate", "bundle/manifest.json"),
)


def main() -> None:
    """Install the clients in ``.clients``, and let each connect by command and by file."""
    packages = [*(tried.package for tried in TRIED.values()), "@anthropic-ai/mcpb"]
    KEPT.mkdir(exist_ok=True)
    npm = ["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(KEPT), *packages]
    subprocess.run(npm, check=True)
    for words in LOOKS:
        subprocess.run([program(words[0]), *words[1:]], cwd=ROOT, check=True, capture_output=True)
        print(f"{' '.join(words)}: nothing is wrong", flush=True)
    server = [str(Path(sys.executable).with_name("npl-mcp")), *READING, "--format", "markdown"]
    for client in CLIENTS:
        tried = TRIED.get(client.name)
        if tried is None:
            print(f"{client.name}: not tried, npm has none")
            continue
        ways = {"command": by_command} if client.add else {}
        if tried.by_file:
            ways["file"] = by_file
        version = ran(tried, ("--version",), dict(os.environ), ROOT).split("\n")[-1]
        for way, write in ways.items():
            connect(client, tried, server, write)
            print(f"{client.name} {version}: connected by {way}", flush=True)


Write = Callable[[Client, Tried, list[str], Mapping[str, str], Path], None]


def connect(client: Client, tried: Tried, server: list[str], write: Write) -> None:
    """Let a client connect; stop with its output if it does not.

    :param write: tells the client of the server.
    """
    with TemporaryDirectory(dir=KEPT) as folder:
        home, project = Path(folder) / "home", Path(folder) / "project"
        (project / ".git").mkdir(parents=True)
        (project / "notes.md").write_text(NOTES, encoding="utf-8")
        (home / ".gemini").mkdir(parents=True)
        (home / ".gemini" / "settings.json").write_text(SETTINGS, encoding="utf-8")
        variables = {**os.environ, "HOME": str(home), "NPL_MCP_DATA_DIR": str(home / "data")}
        write(client, tried, server, variables, project)
        said = ran(tried, tried.listing, variables, project, tried.asked)
        if "npl" not in said or tried.connected not in said:
            raise SystemExit(f"{client.name} does not connect: {said}")


def by_command(
    client: Client, tried: Tried, server: list[str], variables: Mapping[str, str], project: Path
) -> None:
    """Tell a client by the command that is printed for it."""
    command = str(client.adding(server)).replace(tried.program, program(tried.program), 1)
    subprocess.run(command, shell=True, cwd=project, env=variables, check=True, capture_output=True)


def by_file(
    client: Client, _tried: Tried, server: list[str], variables: Mapping[str, str], project: Path
) -> None:
    """Tell a client by the file that is printed for it."""
    place = client.paths[-1]
    path = Path(variables["HOME"]) / place[2:] if place.startswith("~/") else project / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(client.file(client.program(server)), encoding="utf-8")


def program(name: str) -> str:
    """Return the path of a program that was installed."""
    path = shutil.which(name, path=str(KEPT / "node_modules" / ".bin"))
    assert path is not None, name
    return path


def ran(
    tried: Tried, arguments: tuple[str, ...], variables: Mapping[str, str], folder: Path, asked: str = ""
) -> str:
    """Return a client's output; a client that gets input is ended once it reports the connection."""
    with subprocess.Popen(
        [program(tried.program), *arguments],
        cwd=folder,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        if not asked:
            return process.communicate(timeout=PATIENCE)[0].strip()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(asked)
        process.stdin.flush()
        said = next((line for line in process.stdout if tried.connected in line), "")
        process.kill()
        return said


if __name__ == "__main__":
    main()
