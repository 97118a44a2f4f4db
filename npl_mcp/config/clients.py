"""MCP clients: their entries for this server.

:data:`CLIENTS` alone has the forms of their files. ``tests/cases/clients`` has the forms that their
publishers document, each with its source.
"""

from __future__ import annotations

import json
import shlex
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

NAME = "npl"
"""Name of the server in a client's file."""

HERE = "."
SOME_FOLDER = "/path/to/your/notes"

READING = ("--domains", "reading")
"""Flags that list only the tools for reading: some clients take 40 tools at most, and all tools are more."""

Entry = dict[str, Any]


def _program(command: Sequence[str]) -> Entry:
    return {"command": command[0], "args": list(command[1:])}


def _loaded_program(command: Sequence[str]) -> Entry:
    """Return an entry that makes a client show the tools at once, instead of after a search by the model."""
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
    # Many pages allow only links with the scheme https.
    return "https://insiders.vscode.dev/redirect?" + urlencode({"url": own})


class Client(NamedTuple):
    """A program that starts MCP servers or connects to them.

    :param name: name in its publisher's spelling.
    :param path: path of its file with entries. ``~/`` is the home directory, ``+/`` the system's folder for
        settings; other paths are relative to the project.
    :param program: function from a command to the entry of a server that the client starts.
    :param address: function from an address and headers to the entry of a listening server; ``None`` if its
        file has no such entries.
    :param folder: folder to serve: a variable of the client, a path to replace, or :data:`HERE` if it starts
        servers in that folder.
    :param add: command that adds a server to start, with ``{program}`` and its ``{arguments}``.
    :param connect: command that adds a listening server without a token.
    :param header: option of that command for a header.
    :param link: function from an entry to a link that adds it.
    :param key: key of the servers by name in its file.
    """

    name: str
    path: str
    program: Callable[[Sequence[str]], Entry] = _program
    address: Callable[[str, Mapping[str, str]], Entry] | None = _address
    folder: str = HERE
    add: str | None = None
    connect: str | None = None
    header: str | None = None
    link: Callable[[Entry], str] | None = None
    key: str = "mcpServers"

    def file(self, entry: Entry) -> str:
        """Return the text of its file with one server, in one line if it is JSON."""
        if self.path.endswith(".toml"):
            lines = [f"[{self.key}.{NAME}]", *(f"{key} = {_toml_value(entry[key])}" for key in entry)]
            return "\n".join(lines)
        return json.dumps({self.key: {NAME: entry}}, ensure_ascii=False)

    def instruction(self, command: str | None, entry: Entry) -> tuple[str, str]:
        """Return the client with its file, and the text to write there, or the command to run instead."""
        path = self.path.removeprefix("+/")
        return (self.name, command) if command else (f"{self.name} ({path})", self.file(entry))

    def adding(self, command: Sequence[str]) -> str | None:
        """Return the command that adds a server to start; ``None`` without one."""
        program, arguments = shlex.quote(command[0]), shlex.join(command[1:])
        return self.add and self.add.format(program=program, arguments=arguments)

    def connecting(self, url: str, headers: Mapping[str, str]) -> str | None:
        """Return the command that adds a listening server; ``None`` without one."""
        if self.connect is None or (headers and self.header is None):
            return None
        more = [str(self.header).format(f"{name}: {value}") for name, value in headers.items()]
        return " ".join([self.connect.format(url), *more])


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml_value(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


CLIENTS = (
    Client(
        "Claude Code",
        ".mcp.json",
        program=_loaded_program,
        address=_typed_address,
        folder="${CLAUDE_PROJECT_DIR:-.}",
        add="claude mcp add npl -- {program} {arguments}",
        connect="claude mcp add --transport http npl {}",
        header='--header "{}"',
    ),
    Client(
        "Codex",
        "~/.codex/config.toml",
        address=partial(_address, named="http_headers"),
        add="codex mcp add npl -- {program} {arguments}",
        connect="codex mcp add npl --url {}",
        key="mcp_servers",
    ),
    Client(
        "Gemini CLI",
        ".gemini/settings.json",
        address=_typed_address,
        add="gemini mcp add npl {program} -- {arguments}",
        connect="gemini mcp add --transport http npl {}",
        header='--header "{}"',
    ),
    Client(
        "VS Code",
        ".vscode/mcp.json",
        program=lambda command: {"type": "stdio", **_program(command)},
        address=_typed_address,
        folder="${workspaceFolder}",
        link=_vscode_link,
        key="servers",
    ),
    Client(
        "Cursor",
        ".cursor/mcp.json",
        folder="${workspaceFolder}",
        link=partial(_install_link, "cursor.com"),
    ),
    Client("Claude Desktop", "+/Claude/claude_desktop_config.json", address=None, folder=SOME_FOLDER),
    Client(
        "Windsurf",
        "~/.codeium/windsurf/mcp_config.json",
        address=partial(_address, at="serverUrl"),
        folder=SOME_FOLDER,
    ),
    Client(
        "LM Studio", "~/.lmstudio/mcp.json", folder=SOME_FOLDER, link=partial(_install_link, "lmstudio.ai")
    ),
    Client("Zed", ".zed/settings.json", key="context_servers"),
    Client(
        "opencode",
        "opencode.json",
        program=lambda command: {"type": "local", "command": list(command)},
        address=lambda url, headers: {"type": "remote", **_address(url, headers)},
        key="mcp",
    ),
)
"""Clients with known forms; the others accept the form of most of these."""


def http_snippets(address: str, token: str | None) -> str:
    """Return instructions for all clients to connect to a listening server.

    :param address: address of the MCP endpoint.
    :param token: bearer token; ``None`` if the server needs none.
    """
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return _by_text(
        client.instruction(client.connecting(address, headers), client.address(address, headers))
        for client in CLIENTS
        if client.address is not None
    )


def stdio_snippets(command: Sequence[str]) -> str:
    """Return instructions for all clients that start servers themselves.

    :param command: command that starts the server.
    """
    return _by_text(client.instruction(client.adding(command), client.program(command)) for client in CLIENTS)


def _by_text(instructions: Iterable[tuple[str, str]]) -> str:
    """Return the instructions for all clients; equal ones are joined."""
    clients: dict[str, list[str]] = {}
    for client, text in instructions:
        clients.setdefault(text, []).append(client)
    return "".join(
        f"{', '.join(names)}{' and others' if len(names) > 1 else ''}:\n"
        + "".join(f"  {line}\n" for line in text.splitlines())
        for text, names in clients.items()
    )
