"""MCP clients: their entries for this server, written and read.

``data/clients.json`` alone has the forms of their files. ``tests/cases/clients`` has the forms that their
publishers document, each with its source.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
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


class Client(NamedTuple):
    """A program that starts MCP servers or connects to them.

    An entry has the values of a server in place of ``PROGRAM``, its ``ARGUMENTS`` or all ``WORDS``, and of
    ``URL`` and ``HEADERS``.

    :param name: name in its publisher's spelling.
    :param paths: paths of its files with entries; new entries go to the last one. ``~/`` is the home
        directory, ``+/`` the system's folder for settings; other paths are relative to the project.
    :param started: entry of a server that the client starts.
    :param of_few_tools: addition to it if the server lists few tools; it makes a client show them at once,
        instead of after a search by the model.
    :param listening: entry of a listening server; ``None`` if its file has no such entries.
    :param add: command that adds a server to start, with ``{program}`` and its ``{arguments}``.
    :param connect: command that adds a listening server without a token.
    :param header: option of that command for a header.
    :param key: key of the servers by name in its files.
    :param by_project: whether the user's files have the same key for single projects, by the project's path
        below ``projects``.
    """

    name: str
    paths: Sequence[str]
    started: Entry = {"command": "PROGRAM", "args": "ARGUMENTS"}  # noqa: RUF012 - nothing changes it
    of_few_tools: Entry = {}  # noqa: RUF012
    listening: Entry | None = {"url": "URL", "headers": "HEADERS"}  # noqa: RUF012
    add: str | None = None
    connect: str | None = None
    header: str | None = None
    key: str = "mcpServers"
    by_project: bool = False

    def program(self, command: Sequence[str]) -> Entry:
        """Return the entry of a server that the client starts."""
        values = {"PROGRAM": command[0], "ARGUMENTS": [*command[1:]], "WORDS": [*command]}
        entry = {key: values.get(value, value) for key, value in self.started.items()}
        return entry | (self.of_few_tools if _READING_WORDS.intersection(command) else {})

    def address(self, url: str, headers: Mapping[str, str]) -> Entry | None:
        """Return the entry of a listening server; ``None`` if its file has no such entries."""
        values = {"URL": url, "HEADERS": dict(headers)}
        entry = {key: values.get(value, value) for key, value in (self.listening or {}).items()}
        return {key: value for key, value in entry.items() if value} or None

    def file(self, entry: Entry) -> str:
        """Return the text of its file with one server, in one line if it is JSON."""
        if self.paths[-1].endswith(".toml"):
            lines = [f"[{self.key}.{NAME}]", *(f"{key} = {_toml_value(entry[key])}" for key in entry)]
            return "\n".join(lines)
        return json.dumps({self.key: {NAME: entry}}, ensure_ascii=False)

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


_TABLE = Path(__file__).parents[1] / "data" / "clients.json"
CLIENTS = tuple(Client(**row) for row in json.loads(_TABLE.read_text("utf-8")))
"""Clients with known forms; the others accept the form of most of these."""


def http_snippets(url: str, token: str | None) -> str:
    """Return instructions for all clients to connect to a listening server.

    :param url: address of the MCP endpoint.
    :param token: bearer token; ``None`` if the server needs none.
    """
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    entries = ((client, client.address(url, headers)) for client in CLIENTS)
    return _by_text((client, client.connecting(url, headers), entry) for client, entry in entries if entry)


def stdio_snippets(command: Sequence[str]) -> str:
    """Return instructions for all clients that start servers themselves.

    :param command: command that starts the server.
    """
    return _by_text((client, client.adding(command), client.program(command)) for client in CLIENTS)


def _by_text(instructions: Iterable[tuple[Client, str | None, Entry]]) -> str:
    """Return the instructions for all clients: a command, or the text of its file. Equal ones are joined."""
    clients: dict[str, list[str]] = {}
    for client, command, entry in instructions:
        name = client.name if command else f"{client.name} ({client.paths[-1].removeprefix('+/')})"
        clients.setdefault(command or client.file(entry), []).append(name)
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
    words = f"{server.get('command')} {server.get('args')}"
    return "npl-mcp" in words or "npl_mcp" in words


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
