"""Who a caller is, and what it sees: every route with a token that may and one that may not."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.http.identities import SECONDS
from npl_mcp.stores.access import AccessStore, Sight
from npl_mcp.stores.data_folder import Stores
from npl_mcp.tools.domains import LISTED
from tests.npl_mcp.http.http_server import JSON, Answer, Running, call, mcp, request, serving

BOTH = "application/json, text/event-stream"
PLAN = "# Plan\n\n## Siphon\n\nA siphon lifts water over the edge.\n"
CONFIG = '[project]\ncode = "{0}"\nname = "{0}"\nticketsPath = "crs"\n'
CR = "---\ncode: {0}-001\ntitle: Siphon\nstatus: Proposed\ntype: Bug Fix\npriority: High\n---\n# Siphon\n\nIt leaks.\n"


def without(*domains: str) -> frozenset[str]:
    return frozenset(LISTED) - set(domains)


@dataclass
class Site:
    """A running server, and the tokens of some callers by their names."""

    server: Running
    access: AccessStore
    tokens: dict[str, str]

    @property
    def docs(self) -> Path:
        return self.server.folder / "docs"

    @property
    def other(self) -> Path:
        return self.server.folder / "other"

    def headers(self, who: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[who]}"}

    def call(self, who: str, tool: str, /, headers: dict[str, str] | None = None, **arguments: Any) -> Answer:
        return call(self.server, tool, arguments, **{**self.headers(who), **(headers or {})})

    def data(self, who: str, tool: str, /, **arguments: Any) -> Any:
        answer = self.call(who, tool, **arguments)
        assert answer.status == 200, answer.data
        return answer.data["data"]

    def code(self, who: str, tool: str, /, **arguments: Any) -> str:
        return str(self.call(who, tool, **arguments).data.get("error_code", "OK"))

    def ask(self, who: str, method: str, **params: Any) -> dict[str, Any]:
        answer: dict[str, Any] = mcp(self.server, method, params, **self.headers(who)).data
        return answer


def tree(folder: Path) -> None:
    """Make two roots: documents, a project with a change request and templates in each."""
    for name, code in (("docs", "DOC"), ("other", "OTH")):
        root = folder / name
        (root / "crs").mkdir(parents=True)
        (root / f"{name}.md").write_text(f"# {name}\n\n## Water\n\nThe siphon of {name}.\n", encoding="utf-8")
        (root / ".mdt-config.toml").write_text(CONFIG.format(code), encoding="utf-8")
        (root / "crs" / f"{code}-001-siphon.md").write_text(CR.format(code), encoding="utf-8")
    reference = folder / "other" / "directive" / "reference"
    for path in ("templates/spec.template.md", "agent_operating_procedure.md", "agent_context.md"):
        (reference / path).parent.mkdir(parents=True, exist_ok=True)
        (reference / path).write_text("# One\n\nKeep it short.\n", encoding="utf-8")


def who_there_is(folder: Path) -> dict[str, tuple[Sight, bool]]:
    return {
        "alice": (Sight(), False),
        "bob": (Sight(), False),
        "reader": (Sight(), True),
        "docs": (Sight(roots=(str(folder / "docs"),), libraries=()), False),
        "above": (Sight(roots=(str(folder), "/nowhere"), libraries=()), False),
        "nothing": (Sight(roots=(), libraries=("x",)), False),
        **{f"no-{domain}": (Sight(without(domain)), False) for domain in LISTED},
    }


def started(folder: Path, *flags: str) -> Iterator[Site]:
    tree(folder)
    stores = Stores(folder / "data", 1_000_000)
    tokens = {
        name: stores.access.add(name, sight, read_only=read_only)
        for name, (sight, read_only) in who_there_is(folder).items()
    }
    roots = ("--root", str(folder / "docs"), "--root", str(folder / "other"))
    try:
        with serving(folder, *roots, *flags) as running:
            site = Site(running, stores.access, tokens)
            site.data("alice", "session_create", session_id="s")
            plan = base64.b64encode(PLAN.encode()).decode()
            file = {"file_content_base64": plan, "filename": "plan.md", "session_id": "s"}
            site.data("alice", "artifact_create", name="plan", artifact_type="document", **file)
            site.data("alice", "chat_create_room", name="r", members=["alice", "bob"], session_id="s")
            site.data("alice", "chat_share_artifact", room_id=1, artifact_id=1)
            site.data("alice", "chat_send_message", room_id=1, message="hello @bob")
            site.data("alice", "worklog_init", session_id="w")
            yield site
    finally:
        stores.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    yield from started(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    yield from started(tmp_path_factory.mktemp("small"), "--small-list")


# One call of a tool of each domain, and an old name of one, where it has any.
CALLS: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "npl": ("npl_load_components", {"items": "syntax"}, "npl_load"),
    "session": ("session_get", {"session_id": "s"}, "get_session"),
    "artifact": ("artifact_get", {"artifact_id": 1}, "get_artifact"),
    "chat": ("chat_get_feed", {"room_id": 1}, "get_chat_feed"),
    "review": ("review_create", {"artifact_id": 1, "revision_id": 1}, "create_review"),
    "worklog": ("worklog_status", {}, None),
    "cr": ("get_cr", {"key": "DOC-001"}, None),
    "directive": ("directive_files_list", {}, "directive/files.list"),
    "utility": ("git_tree", {"path": "docs.md"}, None),
}


@pytest.mark.parametrize("domain", LISTED)
def test_a_tool_of_a_hidden_domain_is_unknown(site: Site, domain: str) -> None:
    """By its name and its old one, over both faces: as a name that no tool has, and no answer proposes it."""
    tool, arguments, old = CALLS[domain]
    blind = f"no-{domain}"
    for name in filter(None, (tool, old)):
        assert f"there is no tool {name!r}" not in site.call("alice", name, **arguments).body.decode(), name
        plain = site.call(blind, name, **arguments)
        assert (plain.status, plain.data["error_code"]) == (404, "NOT_FOUND")
        assert plain.data["error"].startswith(f"there is no tool {name!r}")
        proposed = plain.data["error"].partition(";")[2]
        hidden = {one for one, (_, mine) in tools_of(site, "alice").items() if mine == domain}
        assert not any(one in proposed.replace(",", " ").split() for one in hidden)
        result = site.ask(blind, "tools/call", name=name, arguments=arguments)["result"]
        assert result["content"][0]["text"] == plain.body.decode()


def tools_of(site: Site, who: str) -> dict[str, tuple[dict[str, Any], str]]:
    """Return the listed tools and the domain of each."""
    from npl_mcp.tools.domains import domain_of, tool_named

    listed = site.ask(who, "tools/list")["result"]["tools"]
    return {tool["name"]: (tool, domain_of(tool_named(tool["name"])) or "") for tool in listed}


@pytest.mark.parametrize("domain", LISTED)
def test_the_list_has_the_tools_of_the_domains_a_caller_sees(site: Site, domain: str) -> None:
    """In the same order as for all."""
    every = tools_of(site, "alice")
    seen = tools_of(site, f"no-{domain}")
    assert list(seen) == [name for name, (_, mine) in every.items() if mine != domain]
    assert domain in {mine for _, mine in every.values()}


def found(site: Site, who: str, **arguments: Any) -> str:
    return site.call(who, "npl_section_index", **arguments).body.decode()


def titles(answer: dict[str, Any], kind: str) -> list[str]:
    return [one.get("uri") or one.get("uriTemplate") or one["name"] for one in answer["result"][kind]]


# Route by route: what is asked, who sees it and who does not, and whether an answer shows it.
ROUTES: dict[str, tuple[str, Callable[[Site, str], bool]]] = {
    "resources": ("no-directive", lambda s, w: bool(titles(s.ask(w, "resources/list"), "resources"))),
    "resources of a root": ("docs", lambda s, w: bool(titles(s.ask(w, "resources/list"), "resources"))),
    "templates": (
        "no-directive",
        lambda s, w: bool(titles(s.ask(w, "resources/templates/list"), "resourceTemplates")),
    ),
    "resource": ("no-directive", lambda s, w: "result" in s.ask(w, "resources/read", uri=CONTEXT)),
    "resource of a root": ("docs", lambda s, w: "result" in s.ask(w, "resources/read", uri=CONTEXT)),
    "template": ("no-directive", lambda s, w: "result" in s.ask(w, "resources/read", uri=TEMPLATE)),
    "template of a root": ("docs", lambda s, w: "result" in s.ask(w, "resources/read", uri=TEMPLATE)),
    "prompts": ("no-directive", lambda s, w: bool(titles(s.ask(w, "prompts/list"), "prompts"))),
    "prompts of a root": ("docs", lambda s, w: bool(titles(s.ask(w, "prompts/list"), "prompts"))),
    "prompt": ("no-directive", lambda s, w: "result" in s.ask(w, "prompts/get", name="directive_spec")),
    "prompt of a root": ("docs", lambda s, w: "result" in s.ask(w, "prompts/get", name="directive_spec")),
    "method": ("no-directive", lambda s, w: "result" in s.ask(w, "directive.files.list")),
    "method of a root": ("docs", lambda s, w: "result" in s.ask(w, "directive.files.list")),
    "instructions": ("no-npl", lambda s, w: bool(s.ask(w, "server/discover")["result"].get("instructions"))),
    "metrics": ("no-chat", lambda s, w: b"chat_create_room" in figures(s, w)),
    "artifact": ("no-artifact", lambda s, w: "siphon" in found(s, w, file="artifact:1").lower()),
    "artifacts": ("no-artifact", lambda s, w: "Siphon" in found(s, w, file="artifact:*")),
    "list with an artifact": ("no-artifact", lambda s, w: "Siphon" in found(s, w, file="docs.md, artifact:1")),
    "artifact by selector": ("no-artifact", lambda s, w: "lifts" in load(s, w, selectors=["plan > ## Siphon"])),
    "artifact by scheme": ("no-artifact", lambda s, w: "lifts" in load(s, w, selectors=["artifact:1 > ## Siphon"])),
    "artifact to load": ("no-artifact", lambda s, w: "lifts" in load(s, w, file="artifact:1", context="siphon")),
    "change request": ("no-cr", lambda s, w: "Siphon" in found(s, w, file="cr:DOC-001")),
    "change request of a root": ("docs", lambda s, w: "Siphon" in found(s, w, file="cr:OTH-001")),
    "change requests of a root": ("docs", lambda s, w: "OTH-001" in found(s, w, file="cr:*")),
    "projects": ("docs", lambda s, w: s.data(w, "list_projects")["total"] == 2),
    "project": ("docs", lambda s, w: s.code(w, "get_cr", key="OTH-001") == "OK"),
    "file": ("docs", lambda s, w: "Water" in found(s, w, file="other.md")),
    "file by its path": ("docs", lambda s, w: "Water" in found(s, w, file=str(s.other / "other.md"))),
    "folder": ("docs", lambda s, w: "Water" in found(s, w, file=str(s.other))),
    "label": ("docs", lambda s, w: "Water" in found(s, w, file="other:other.md")),
    "pattern": ("docs", lambda s, w: "Water" in found(s, w, file="oth*.md")),
    "selector": ("docs", lambda s, w: "siphon of other" in load(s, w, selectors=["other > ## Water"])),
    "all": ("docs", lambda s, w: "siphon of other" in load(s, w, context="siphon water")),
    "near names": ("docs", lambda s, w: "other.md" in found(s, w, file="othe.md")),
    "dump": ("docs", lambda s, w: s.call(w, "dump_files", path=str(s.other)).data["error_code"] != "NOT_FOUND"),
    "rooms of a session": ("no-chat", lambda s, w: "chat_rooms" in s.data(w, "session_get", session_id="s")),
    "count of rooms": ("no-chat", lambda s, w: "room_count" in s.data(w, "session_list")["items"][0]),
    "artifacts of a session": (
        "no-artifact",
        lambda s, w: "plan" in json.dumps(s.data(w, "session_get", session_id="s")),
    ),
    "session of a room": ("no-session", lambda s, w: "session_id" in s.data(w, "chat_list_rooms")["items"][0]),
    "artifact in a feed": (
        "no-artifact",
        lambda s, w: "artifact_id" in json.dumps(s.data(w, "chat_get_feed", room_id=1)),
    ),
    "session of a new room": (
        "no-session",
        lambda s, w: s.code(w, "chat_create_room", name="r", members=["x"], session_id="s") == "ALREADY_EXISTS",
    ),
    "artifact to share": (
        "no-artifact",
        lambda s, w: s.code(w, "chat_share_artifact", room_id=1, artifact_id=1) in ("OK", "PERMISSION_DENIED"),
    ),
}
CONTEXT = "directive://agent_context"
TEMPLATE = "directive://reference/agent_context.md"


def load(site: Site, who: str, **arguments: Any) -> str:
    return site.call(who, "npl_load_tailored", **arguments).body.decode()


def figures(site: Site, who: str) -> bytes:
    answer = request(site.server, "GET", "/metrics", None, site.headers(who))
    assert answer.status == 200
    return answer.body


@pytest.mark.parametrize("route", ROUTES)
def test_each_route_shows_what_a_caller_may_see(site: Site, route: str) -> None:
    """Who may see all sees it there, and who may not does not."""
    blind, shows = ROUTES[route]
    assert shows(site, "alice"), route
    assert not shows(site, blind), route


def test_what_is_hidden_is_as_what_is_not_there(site: Site) -> None:
    """Answers about something hidden and about something absent differ by its name alone."""
    pairs: list[tuple[str, Callable[[str], Any], str, str]] = [
        ("no-directive", lambda n: site.ask("no-directive", "resources/read", uri=n), CONTEXT, "nosuch://thing"),
        ("no-directive", lambda n: site.ask("no-directive", "prompts/get", name=n), "directive_spec", "nosuch"),
        ("no-directive", lambda n: site.ask("no-directive", n), "directive.files.list", "no.such"),
        ("no-artifact", lambda n: found(site, "no-artifact", file=n), "artifact:1", "artifact:9"),
        ("no-cr", lambda n: found(site, "no-cr", file=n), "cr:DOC-001", "cr:DOC-009"),
        ("docs", lambda n: found(site, "docs", file=n), str(site.other / "other.md"), str(site.other / "no.md")),
        ("docs", lambda n: found(site, "docs", file=n), str(site.other), str(site.other / "none")),
        ("docs", lambda n: site.call("docs", "get_cr", key=n).body.decode(), "OTH-001", "XXX-001"),
        ("docs", lambda n: folder(site, "docs", n), str(site.other), str(site.other / "none")),
    ]
    for who, answer, hidden, absent in pairs:
        shown, missing = json.dumps(answer(hidden)), json.dumps(answer(absent))
        for one, name in ((hidden, "N"), (absent, "N"), ("OTH", "N"), ("XXX", "N")):
            shown, missing = shown.replace(one, name), missing.replace(one, name)
        assert shown == missing, (who, hidden)


def folder(site: Site, who: str, path: str) -> tuple[int, str]:
    answer = site.call(who, "npl_section_index", {"NPL_Cwd": path}, file="docs.md")
    assert answer.headers.get("npl-cwd") == "refused"
    return answer.status, answer.body.decode()
