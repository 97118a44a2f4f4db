"""MCP clients: their entries for this server, written and read.

:data:`CLIENTS` alone has the forms of their files. ``tests/cases/clients`` has the forms that their
publishers document, each with its source.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from npl_index.library.files import read_path
from npl_mcp.config.toml import read_toml

NAME = "npl"
"""Name of the server in a client's file."""

READING = ("--domains", "reading")
"""Flags that list only the tools for reading: some clients take 40 tools at most, and all tools are more."""

_READING_WORDS = {READING[1], "=".join(READING)}

Entry = dict[str, Any]


def _program(command: Sequence[str]) -> Entry:
    return {"command": command[0], "args": list(command[1:])}


def _loaded_program(command: Sequence[str]) -> Entry:
    """Return an entry that makes a client show the tools at once, instead of after a search by the model."""
    return {**_program(command), **({"alwaysLoad": True} if _READING_WORDS.intersection(command) else {})}


def _address(url: str, headers: Mapping[str, str], at: str = "url", named: str = "headers") -> Entry:
    return {at: url, **({named: dict(headers)} if headers else {})}


def _typed_address(url: str, headers: Mapping[str, str]) -> Entry:
    return {"type": "http", **_address(url, headers)}


class Client(NamedTuple):
    """A program that starts MCP servers or connects to them.

    :param name: name in its publisher's spelling.
    :param paths: paths of its files with entries; new entries go to the last one. ``~/`` is the home
        directory, ``+/`` the system's folder for settings; other paths are relative to the project.
    :param program: function from a command to the entry of a server that the client starts.
    :param address: function from an address and headers to the entry of a listening server; ``None`` if its
        file has no such entries.
    :param add: command that adds a server to start, with ``{program}`` and its ``{arguments}``.
    :param connect: command that adds a listening server without a token.
    :param header: option of that command for a header.
    :param key: key of the servers by name in its files.
    :param by_project: whether the user's files have the same key for single projects, by the project's path
        below ``projects``.
    """

    name: str
    paths: tuple[str, ...]
    program: Callable[[Sequence[str]], Entry] = _program
    address: Callable[[str, Mapping[str, str]], Entry] | None = _address
    add: str | None = None
    connect: str | None = None
    header: str | None = None
    key: str = "mcpServers"
    by_project: bool = False

    def file(self, entry: Entry) -> str:
        """Return the text of its file with one server, in one line if it is JSON."""
        if self.paths[-1].endswith(".toml"):
            lines = [f"[{self.key}.{NAME}]", *(f"{key} = {_toml_value(entry[key])}" for key in entry)]
            return "\n".join(lines)
        return json.dumps({self.key: {NAME: entry}}, ensure_ascii=False)

    def instruction(self, command: str | None, entry: Entry) -> tuple[str, str]:
        """Return the client with its file, and the text to write there, or the command to run instead."""
        path = self.paths[-1].removeprefix("+/")
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
        ("~/.claude.json", ".mcp.json"),
        program=_loaded_program,
        address=_typed_address,
        add="claude mcp add npl -- {program} {arguments}",
        connect="claude mcp add --transport http npl {}",
        header='--header "{}"',
        by_project=True,
    ),
    Client(
        "Codex",
        ("~/.codex/config.toml",),
        address=partial(_address, named="http_headers"),
        add="codex mcp add npl -- {program} {arguments}",
        connect="codex mcp add npl --url {}",
        key="mcp_servers",
    ),
    Client(
        "Gemini CLI",
        ("~/.gemini/settings.json", ".gemini/settings.json"),
        address=_typed_address,
        add="gemini mcp add npl {program} -- {arguments}",
        connect="gemini mcp add --transport http npl {}",
        header='--header "{}"',
    ),
    Client(
        "VS Code",
        ("+/Code/User/mcp.json", ".vscode/mcp.json"),
        program=lambda command: {"type": "stdio", **_program(command)},
        address=_typed_address,
        key="servers",
    ),
    Client("Cursor", ("~/.cursor/mcp.json", ".cursor/mcp.json")),
    Client("Claude Desktop", ("+/Claude/claude_desktop_config.json",), address=None),
    Client("Windsurf", ("~/.codeium/windsurf/mcp_config.json",), address=partial(_address, at="serverUrl")),
    Client("LM Studio", ("~/.lmstudio/mcp.json",)),
    Client("Zed", ("~/.config/zed/settings.json", ".zed/settings.json"), key="context_servers"),
    Client(
        "opencode",
        ("~/.config/opencode/opencode.json", "opencode.json"),
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


_MAX_BYTES = 16 * 1024 * 1024  # Claude Code keeps its history in the same file
_MAX_CLONED_BYTES = 1024 * 1024  # parsing takes up to 24 times as much memory


def npl_entries(home: Path, project: Path) -> Iterator[tuple[str, Path, list[Entry] | str]]:
    """Yield the existing files of clients with their entries for npl, or the reason why one cannot be read.

    :param home: home directory of the user.
    :param project: working directory; some clients also have a file there.
    """
    folder = {"darwin": "Library/Application Support", "win32": "AppData/Roaming"}.get(sys.platform)
    bases = {"~/": home, "+/": home / (folder or ".config")}
    for client, text in ((known, text) for known in CLIENTS for text in known.paths):
        base = bases.get(text[:2])
        path = base / text[2:] if base else project / text
        try:
            read = read_path(path, _MAX_BYTES if base else _MAX_CLONED_BYTES)[0].decode("utf-8-sig")
            value: Any = read_toml(read) if path.suffix == ".toml" else _lenient_json(read or "{}")
            servers = dict(_object(value, client.key))
            if base and client.by_project:
                servers |= _object(value, "projects", str(project), client.key)
            found: list[Entry] | str = [
                server
                for name, server in servers.items()
                if isinstance(server, dict) and (name == NAME or _starts_npl(server))
            ]
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            found = str(error.strerror or error)
        except (ValueError, RecursionError) as error:
            found = f"it is not {path.suffix[1:].upper()} of this client: {error}"[:200]
        yield client.name, path, found


def _starts_npl(server: Mapping[str, Any]) -> bool:
    words: list[Any] = []
    for value in (server.get("command"), server.get("args")):
        words += value if isinstance(value, list) else [value]
    return any(part in str(word) for word in words for part in ("npl-mcp", "npl_mcp"))


def _object(value: Any, *keys: str) -> Mapping[str, Any]:
    """Return the object below keys; empty if it is absent.

    :raises ValueError: a value on the way is not an object.
    """
    for key in keys:
        value = value.get(key, {}) if isinstance(value, dict) else None
        if not isinstance(value, dict):
            raise ValueError(f"{key} is not an object")
    return value  # type: ignore[no-any-return]


# An unclosed string or comment extends to the end of the file, so that no text is matched twice.
_TEXT = r'("(?:[^"\\]|\\.)*(?:"|\Z))'
_COMMENT = re.compile(rf"{_TEXT}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_TEXT}|,(?=\s*[\]}}])", re.DOTALL)


def _lenient_json(text: str) -> Any:
    """Read JSON with comments and trailing commas, which half of the clients allow."""
    try:
        return json.loads(text)
    except ValueError:
        for extra in (_COMMENT, _LAST_COMMA):
            text = extra.sub(lambda match: match[1] or " ", text)
        return json.loads(text)
