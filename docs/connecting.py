"""Writes CLIENTS.md: how each client is connected, from the table of their forms."""

from __future__ import annotations

import json
import shlex
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from urllib.parse import quote, urlencode

from npl_mcp.config.clients import CLIENTS, NAME, READING, Client, Entry

OPTIONS = (*READING, "--format", "markdown")
IN_A_SHELL = "$PWD"
PROGRAM = "~/.npl-mcp/bin/npl-mcp"
"""The program, where README installs it; a shell knows what ``~`` means."""
HERE = "."
SOME_FOLDER = "/path/to/your/notes"
FOLDERS = {
    "Claude Code": "${CLAUDE_PROJECT_DIR:-.}",
    "VS Code": "${workspaceFolder}",
    "Cursor": "${workspaceFolder}",
    "Claude Desktop": SOME_FOLDER,
    "Windsurf": SOME_FOLDER,
    "LM Studio": SOME_FOLDER,
}
"""The folder to serve, by client: its variable, or a path to replace. Others start servers in the folder."""

INTRODUCTION = """\
# Connecting clients

[Install](README.md#install) npl first. The entries say `npl-mcp`, which a client
finds only if `~/.npl-mcp/bin` is on its `PATH`. `~/.npl-mcp/bin/npl-mcp --root .`, run in a terminal, prints
them with the full path; Ctrl-C ends it. `npl-mcp doctor` checks if your clients list npl.

`--root .` serves the project in which the client runs. `--domains reading` lists the tools for documents;
leave it out for all tools, of which some clients take 40 at most.

Claude Code loads most tools only after a search for them. `"alwaysLoad": true` loads all tools of the entry
at the start; leave it out if you list all. The reading tools are marked to load then anyway.

The folder `plugin` is a plugin for Claude Code, with such an entry and a skill.

With many sessions, add `--shared`: they then have [one process](GUIDE.md#many-sessions).

Other clients take Cursor's form. For a server over HTTP, write what `npl-mcp-server config` prints.
`make docs` writes this page.
"""


def _install_link(site: str, entry: Entry) -> str:
    config = b64encode(json.dumps(entry, separators=(",", ":")).encode()).decode()
    return f"https://{site}/install-mcp?{urlencode({'name': NAME, 'config': config})}"


def _vscode_link(entry: Entry) -> str:
    own = "vscode:mcp/install?" + quote(json.dumps({"name": NAME, **entry}, separators=(",", ":")), safe="")
    # Many pages allow only links with the scheme https.
    return "https://insiders.vscode.dev/redirect?" + urlencode({"url": own})


LINKS: Mapping[str, Callable[[Entry], str]] = {
    "VS Code": _vscode_link,
    "Cursor": partial(_install_link, "cursor.com"),
    "LM Studio": partial(_install_link, "lmstudio.ai"),
}
"""Functions from an entry to a link that adds it, by client."""


def page() -> str:
    """Return the text of CLIENTS.md."""
    return INTRODUCTION + "".join(f"\n## {one.name}\n\n{''.join(_described(one))}" for one in CLIENTS)


def link(client: Client) -> str | None:
    """Return the link that adds npl to a client, if there can be one."""
    make = LINKS.get(client.name)
    return make and make(client.program(_command(FOLDERS.get(client.name, HERE))))


def _described(client: Client) -> Iterator[str]:
    added = client.adding(_command(IN_A_SHELL if client.name in FOLDERS else HERE, PROGRAM))
    if added:
        expanded = added.replace(shlex.quote(IN_A_SHELL), f'"{IN_A_SHELL}"')
        yield f"```\n{expanded.replace(shlex.quote(PROGRAM), PROGRAM)}\n```\n\n"
    elif client.name in LINKS:
        yield f"[Add npl to {client.name}]({link(client)})\n\n"
    path = client.paths[-1].removeprefix("+/")
    entry = client.program(_command(FOLDERS.get(client.name, HERE)))
    yield f"`{path}`:\n\n```{path.rpartition('.')[2]}\n{client.file(entry)}\n```\n"


def _command(folder: str, program: str = "npl-mcp") -> list[str]:
    return [program, "--root", folder, *OPTIONS]
