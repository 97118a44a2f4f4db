"""Entries for clients have the forms of each client's publisher."""

import json
import re
import shlex
from base64 import b64decode
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import jsonschema
import pytest

from docs import connecting
from npl_mcp.config import clients
from npl_mcp.config.clients import CLIENTS, Client, npl_entries
from npl_mcp.config.toml import read_toml

ROOT = Path(__file__).resolve().parents[3]
CASES = {
    case["client"]: case
    for path in sorted((ROOT / "tests" / "cases" / "clients").glob("*.json"))
    for case in [json.loads(path.read_text(encoding="utf-8"))]
}
COMMAND = ["/opt/my tools/npl-mcp", "--root", 'C:\\no"tes ${x} é', "--format", "markdown"]
URL, HEADERS = "http://127.0.0.1:8765/mcp", {"Authorization": "Bearer secret"}
PAGES = sorted(ROOT.glob("*.md"))


def read(client: Client, text: str) -> Any:
    return read_toml(text) if client.paths[-1].endswith(".toml") else json.loads(text)


def fits(said: Any, client: str) -> bool:
    return bool(jsonschema.Draft202012Validator(CASES[client]["schema"]).is_valid(said))


def entries_of(client: Client) -> list[dict[str, Any]]:
    """Return a client's entries: of a server it starts, and of one that listens, with and without a token."""
    entries = (client.program(COMMAND), client.address(URL, HEADERS), client.address(URL, {}))
    return [entry for entry in entries if entry]


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: str(client.name))
def test_each_form_is_the_one_the_client_asks_for(client: Client) -> None:
    """Names that the form does not know are refused."""
    for entry in (*entries_of(client), client.program([*COMMAND, *clients.READING])):
        said = read(client, client.file(entry))
        assert fits(said, client.name)
        part = said
        for key in (client.key, clients.NAME):
            part = part[key]
        assert part == entry
        assert not fits(read(client, client.file({**entry, "comand": "x"})), client.name)


def test_a_short_list_is_loaded_at_once() -> None:
    """Only a client that would otherwise wait for a search loads it; all tools would cost every session."""
    entries = {client.name: client.program([*COMMAND, *clients.READING]) for client in CLIENTS}
    assert {name for name, entry in entries.items() if "alwaysLoad" in entry} == {"Claude Code"}
    assert entries["Claude Code"]["alwaysLoad"] is True
    assert not any("alwaysLoad" in entry for client in CLIENTS for entry in entries_of(client))


def test_each_client_has_a_form_and_each_form_a_source() -> None:
    assert set(CASES) == {client.name for client in CLIENTS}
    assert all(case["source"] for case in CASES.values())


def test_commands_give_every_word_back() -> None:
    adding = {client.name: client.adding(COMMAND) for client in CLIENTS if client.add}
    program, *arguments = COMMAND
    assert {name: shlex.split(text) for name, text in adding.items() if text} == {
        "Claude Code": ["claude", "mcp", "add", "npl", "--", *COMMAND],
        "Codex": ["codex", "mcp", "add", "npl", "--", *COMMAND],
        "Gemini CLI": ["gemini", "mcp", "add", "npl", program, "--", *arguments],
    }
    listening = {client.name: client.connecting(URL, HEADERS) for client in CLIENTS if client.connect}
    header = ["--header", "Authorization: Bearer secret"]
    assert {name: text and shlex.split(text) for name, text in listening.items()} == {
        "Claude Code": ["claude", "mcp", "add", "--transport", "http", "npl", URL, *header],
        "Codex": None,
        "Gemini CLI": ["gemini", "mcp", "add", "--transport", "http", "npl", URL, *header],
    }


def decoded(link: str) -> dict[str, Any]:
    """Return name and entry of a link, read as the client reads it."""
    given = parse_qs(urlsplit(link).query, strict_parsing=True)
    if "url" in given:
        own = given["url"][0]
        assert own.startswith("vscode:mcp/install?")
        said = json.loads(unquote(own.partition("?")[2]))
        return {"name": said.pop("name"), "entry": said}
    return {"name": given["name"][0], "entry": json.loads(b64decode(given["config"][0], validate=True))}


@pytest.mark.parametrize("client", [client for client in CLIENTS if client.name in connecting.LINKS])
def test_a_link_says_what_the_file_says(client: Client) -> None:
    """A link works for any path, and none of its characters ends it in Markdown."""
    for entry in entries_of(client):
        link = connecting.LINKS[client.name](entry)
        assert decoded(link) == {"name": "npl", "entry": entry}
        assert re.fullmatch(r"https://[^\s()<>\[\]\"]+", link)


def test_what_the_pages_show_are_such_forms() -> None:
    """Every configuration in a document and in the plugin fits a client, and every link is ours."""
    shown = [(ROOT / "plugin" / ".mcp.json").read_text(encoding="utf-8")]
    links: set[str] = set()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        shown += re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        links |= set(re.findall(r"https://[^\s)]+\?[^\s)]+", text))
    keys = {client.key for client in CLIENTS}
    forms = [said for said in map(json.loads, shown) if isinstance(said, dict) and keys & set(said)]
    assert len(forms) >= len(CLIENTS)
    assert [said for said in forms if not any(fits(said, name) for name in CASES)] == []
    ours = {str(connecting.link(client)) for client in CLIENTS if client.name in connecting.LINKS}
    programs = {link.partition("?")[0] for link in ours}
    assert {link for link in links if link.partition("?")[0] in programs} == ours


def test_files_with_comments_are_read(tmp_path: Path) -> None:
    """Half of the clients allow comments, and a comma after the last value."""
    (tmp_path / ".zed").mkdir()
    (tmp_path / ".zed" / "settings.json").write_text(
        '// "x"\n{"theme": "a//b, }", /* {\n */ "context_servers": {"npl": {"command": "npl-mcp",},}, //\n}'
    )
    ((client, _, found),) = npl_entries(tmp_path / "home", tmp_path)
    assert (client, found) == ("Zed", [{"command": "npl-mcp"}])


@pytest.mark.parametrize(
    "text", ['{"mcp": {"a": "', "/*" * 100_000, '{"a": ' + ", " * 100_000, '"' * 100_001]
)
def test_files_that_end_early_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "opencode.json").write_text(text)
    ((_, _, found),) = npl_entries(tmp_path / "home", tmp_path)
    assert "it is not JSON" in found
