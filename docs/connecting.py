"""Writes CLIENTS.md: how each client is connected, from the table of their forms."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from npl_mcp.config.clients import CLIENTS, HERE, READING, Client

OPTIONS = (*READING, "--format", "markdown")
IN_A_SHELL = "$PWD"

INTRODUCTION = """\
# Connecting clients

[Install](README.md) npl first, so that `npl-mcp` is on your path. A desktop program may have another path and
need the full one: `npl-mcp`, run in a terminal, prints these entries with it. `npl-mcp doctor`
checks if your clients list npl.

`--root .` serves the project in which the client runs. `--domains reading` lists the tools for documents;
leave it out for all tools. Some clients take 40 tools at most, npl has more.

Claude Code loads most tools only after a search for them. `"alwaysLoad": true` loads all tools of the entry
at the start; leave it out if you list all. The reading tools are marked to load then anyway.

Other clients take Cursor's form. For a server over HTTP, write what `npl-mcp-server config` prints.
`make docs` writes this page.
"""


def page() -> str:
    """Return the text of CLIENTS.md."""
    return INTRODUCTION + "".join(f"\n## {one.name}\n\n{''.join(_described(one))}" for one in CLIENTS)


def link(client: Client) -> str | None:
    """Return the link that adds npl to a client, if there can be one."""
    return client.link and client.link(client.program(_command(client.folder)))


def _described(client: Client) -> Iterator[str]:
    added = client.adding(_command(HERE if client.folder == HERE else IN_A_SHELL))
    if added:
        expanded = added.replace(shlex.quote(IN_A_SHELL), f'"{IN_A_SHELL}"')
        yield f"```\n{expanded}\n```\n\n"
    elif client.link:
        yield f"[Add npl to {client.name}]({link(client)})\n\n"
    path = client.paths[-1].removeprefix("+/")
    language = path.rpartition(".")[2]
    yield f"`{path}`:\n\n```{language}\n{client.file(client.program(_command(client.folder)))}\n```\n"


def _command(folder: str) -> list[str]:
    return ["npl-mcp", "--root", folder, *OPTIONS]
