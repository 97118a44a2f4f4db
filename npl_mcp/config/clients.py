"""MCP clients: what to write there to connect them, and what is written there.

:data:`CLIENTS` is the only place that knows their forms. What their publishers ask for is in
``tests/cases/clients``, each with its source.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from npl_index.library.files import read_path
from npl_mcp.config.toml import read_toml

NAME = "npl"
"""What the server is called in a client."""

HERE = "."
SOME_FOLDER = "/path/to/your/notes"

READING = ("--domains", "npl,search")
"""Options with which the tools for reading are listed: all are more than the 40 that some clients take."""

Entry = dict[str, Any]


def _program(command: Sequence[str]) -> Entry:
    return {"command": command[0], "args": list(command[1:])}


def _loaded_program(command: Sequence[str]) -> Entry:
    """Return an entry for a client that else may wait with the tools until a model searches for them."""
    return {**_program(command), **({"alwaysLoad": True} if READING[1] in command else {})}


def _address(url: str, headers: Mapping[str, str], at: str = "url", named: str = "headers") -> Entry:
    return {at: url, **({named: dict(headers)} if headers else {})}


def _typed_address(url: str, headers: Mapping[str, str]) -> Entry:
    return {"type": "http", **_address(url, headers)}


def _install_link(site: str, entry: Entry) -> str:
    config = b64encode(json.dumps(entry, separators=(",", ":")).encode()).decode()
    return f"https://{site}/install-mcp?{urlencode({'name': NAME, 'config': config})}"


def _vscode_link(entry: Entry) -> str:
    own = "vscode:mcp/install?" + quote(json.dumps({"name": NAME, **entry}, separators=(",", ":")), safe="")
    # Many pages let nobody link to another scheme than https.
    return "https://insiders.vscode.dev/redirect?" + urlencode({"url": own})


class Place(NamedTuple):
    """Where a client names its servers.

    :param path: of a file; ``~/`` is the home directory, ``+/`` where programs keep their settings, all else
        is in the project.
    :param keys: what leads to the servers by name; ``.`` is the path of the project.
    """

    path: str
    keys: tuple[str, ...]


class Client(NamedTuple):
    """A program that starts MCP servers, or connects to them.

    :param name: as its publisher writes it.
    :param places: where it names servers; the last is the one to write to.
    :param program: returns the entry of a server it starts.
    :param address: returns the entry of a server that listens; ``None`` where its file has none.
    :param folder: what to write for the folder to be served: a variable of the client, a path to replace, or
        :data:`HERE` if it starts servers there.
    :param add: the command that adds a server it starts, with ``{program}`` and its ``{arguments}``.
    :param connect: the command that adds a server that listens, if no token is needed.
    :param header: what is added to it for a header.
    :param link: returns a link that adds an entry.
    """

    name: str
    places: tuple[Place, ...]
    program: Callable[[Sequence[str]], Entry] = _program
    address: Callable[[str, Mapping[str, str]], Entry] | None = _address
    folder: str = HERE
    add: str | None = None
    connect: str | None = None
    header: str | None = None
    link: Callable[[Entry], str] | None = None

    def file(self, entry: Entry) -> str:
        """Return what its file says to name one server, in one line where that is possible."""
        path, keys = self.places[-1]
        if path.endswith(".toml"):
            lines = [f"[{'.'.join((*keys, NAME))}]", *(f"{key} = {_toml_value(entry[key])}" for key in entry)]
            return "\n".join(lines)
        said: Entry = {NAME: entry}
        for key in reversed(keys):
            said = {key: said}
        return json.dumps(said, ensure_ascii=False)

    def shown(self, command: str | None, entry: Entry) -> tuple[str, str]:
        """Return whom this is for and what to do: run the command if there is one, else write the entry."""
        place = self.places[-1].path.removeprefix("+/")
        return (self.name, command) if command else (f"{self.name} ({place})", self.file(entry))

    def adding(self, command: Sequence[str]) -> str | None:
        """Return the command that adds a server it starts, if there is one."""
        program, arguments = shlex.quote(command[0]), shlex.join(command[1:])
        return self.add and self.add.format(program=program, arguments=arguments)

    def connecting(self, url: str, headers: Mapping[str, str]) -> str | None:
        """Return the command that adds a server that listens, if there is one."""
        if self.connect is None or (headers and self.header is None):
            return None
        more = [str(self.header).format(f"{name}: {value}") for name, value in headers.items()]
        return " ".join([self.connect.format(url), *more])


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml_value(one)}" for key, one in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


CLIENTS = (
    Client(
        "Claude Code",
        (
            Place("~/.claude.json", ("mcpServers",)),
            Place("~/.claude.json", ("projects", ".", "mcpServers")),
            Place(".mcp.json", ("mcpServers",)),
        ),
        program=_loaded_program,
        address=_typed_address,
        folder="${CLAUDE_PROJECT_DIR:-.}",
        add="claude mcp add npl -- {program} {arguments}",
        connect="claude mcp add --transport http npl {}",
        header='--header "{}"',
    ),
    Client(
        "Codex",
        (Place("~/.codex/config.toml", ("mcp_servers",)),),
        address=partial(_address, named="http_headers"),
        add="codex mcp add npl -- {program} {arguments}",
        connect="codex mcp add npl --url {}",
    ),
    Client(
        "Gemini CLI",
        (
            Place("~/.gemini/settings.json", ("mcpServers",)),
            Place(".gemini/settings.json", ("mcpServers",)),
        ),
        address=_typed_address,
        add="gemini mcp add npl {program} -- {arguments}",
        connect="gemini mcp add --transport http npl {}",
        header='--header "{}"',
    ),
    Client(
        "VS Code",
        (Place("+/Code/User/mcp.json", ("servers",)), Place(".vscode/mcp.json", ("servers",))),
        program=lambda command: {"type": "stdio", **_program(command)},
        address=_typed_address,
        folder="${workspaceFolder}",
        link=_vscode_link,
    ),
    Client(
        "Cursor",
        (Place("~/.cursor/mcp.json", ("mcpServers",)), Place(".cursor/mcp.json", ("mcpServers",))),
        folder="${workspaceFolder}",
        link=partial(_install_link, "cursor.com"),
    ),
    Client(
        "Claude Desktop",
        (Place("+/Claude/claude_desktop_config.json", ("mcpServers",)),),
        address=None,
        folder=SOME_FOLDER,
    ),
    Client(
        "Windsurf",
        (Place("~/.codeium/windsurf/mcp_config.json", ("mcpServers",)),),
        address=partial(_address, at="serverUrl"),
        folder=SOME_FOLDER,
    ),
    Client(
        "LM Studio",
        (Place("~/.lmstudio/mcp.json", ("mcpServers",)),),
        folder=SOME_FOLDER,
        link=partial(_install_link, "lmstudio.ai"),
    ),
    Client(
        "Zed",
        (
            Place("~/.config/zed/settings.json", ("context_servers",)),
            Place(".zed/settings.json", ("context_servers",)),
        ),
    ),
    Client(
        "opencode",
        (Place("~/.config/opencode/opencode.json", ("mcp",)), Place("opencode.json", ("mcp",))),
        program=lambda command: {"type": "local", "command": list(command)},
        address=lambda url, headers: {"type": "remote", **_address(url, headers)},
    ),
)
"""The clients whose forms are known; others take what most of them do."""


def http_snippets(address: str, token: str | None) -> str:
    """Return what clients need to connect to a server that listens.

    :param address: of the MCP endpoint.
    :param token: bearer token, where one is needed.
    """
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return _listed(
        one.shown(one.connecting(address, headers), one.address(address, headers))
        for one in CLIENTS
        if one.address is not None
    )


def stdio_snippets(command: Sequence[str]) -> str:
    """Return what clients need to start a server themselves.

    :param command: what they are to run.
    """
    return _listed(one.shown(one.adding(command), one.program(command)) for one in CLIENTS)


def _listed(said: Iterable[tuple[str, str]]) -> str:
    """Write a text for each client; clients with the same share it."""
    whose: dict[str, list[str]] = {}
    for client, text in said:
        whose.setdefault(text, []).append(client)
    return "".join(
        f"{', '.join(names)}{' and others' if len(names) > 1 else ''}:\n"
        + "".join(f"  {line}\n" for line in text.splitlines())
        for text, names in whose.items()
    )


_MAX_BYTES = 16 * 1024 * 1024  # Claude Code keeps its history in the same file
_MAX_CLONED_BYTES = 1024 * 1024  # parsing takes up to 24 times as much memory


class Configuration(NamedTuple):
    """A file in which a client names its servers.

    :param client: whose it is.
    :param path: of the file.
    :param servers: its servers by name, from all places of the file.
    :param problem: why it cannot be read.
    """

    client: str
    path: Path
    servers: Mapping[str, Any] = {}
    problem: str | None = None

    def npl(self) -> list[Mapping[str, Any]]:
        """Return the servers that are npl: by their name, or by what they start."""
        return [
            server
            for name, server in self.servers.items()
            if isinstance(server, dict) and (name == NAME or _starts_npl(server))
        ]


def _starts_npl(server: Mapping[str, Any]) -> bool:
    words: list[Any] = []
    for value in (server.get("command"), server.get("args")):
        words += value if isinstance(value, list) else [value]
    return any(part in str(word) for word in words for part in ("npl-mcp", "npl_mcp"))


def configurations(home: Path, project: Path) -> list[Configuration]:
    """Return the clients' files that exist.

    :param home: the user's home directory.
    :param project: the working directory; some clients have a file in it as well.
    """
    folder = {"darwin": "Library/Application Support", "win32": "AppData/Roaming"}.get(sys.platform)
    bases = {"~/": home, "+/": home / (folder or ".config")}
    every: dict[Path, Configuration] = {}
    for client in CLIENTS:
        for place in client.places:
            base = bases.get(place.path[:2])
            path = base / place.path[2:] if base else project / place.path
            keys = [str(project) if key == "." else key for key in place.keys]
            found = _read(client.name, path, keys, _MAX_BYTES if base else _MAX_CLONED_BYTES)
            if found is not None:
                before = every.get(path, found)
                problem = before.problem or found.problem
                servers = {**before.servers, **found.servers}
                every[path] = Configuration(client.name, path, servers, problem)
    return list(every.values())


def _read(client: str, path: Path, keys: Sequence[str], limit: int) -> Configuration | None:
    """Return what a file says; ``None`` if it is not there, or says nothing of the last key but one."""
    try:
        text = read_path(path, limit)[0].decode("utf-8-sig")
        value: Any = read_toml(text) if path.suffix == ".toml" else _json(text or "{}")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Configuration(client, path, problem=str(error.strerror or error))
    except (ValueError, RecursionError) as error:
        return Configuration(client, path, problem=f"it is no {path.suffix[1:].upper()}: {error}"[:200])
    for key in keys:
        if not isinstance(value, dict):
            return Configuration(client, path, problem=f"{key} stands in no object")
        if len(keys) > 1 and key not in value:
            return None
        value = value.get(key, {})
    if not isinstance(value, dict):
        return Configuration(client, path, problem=f"{keys[-1]} is no object")
    return Configuration(client, path, value)


# What has no end reaches to the end of the file, so that nothing is looked at twice.
_TEXT = r'("(?:[^"\\]|\\.)*(?:"|\Z))'
_COMMENT = re.compile(rf"{_TEXT}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_TEXT}|,(?=\s*[\]}}])", re.DOTALL)


def _json(text: str) -> Any:
    """Read JSON, with comments and a comma after the last one: half of the clients allow that."""
    try:
        return json.loads(text)
    except ValueError:
        for left_out in (_COMMENT, _LAST_COMMA):
            text = left_out.sub(lambda found: found[1] or " ", text)
        return json.loads(text)
