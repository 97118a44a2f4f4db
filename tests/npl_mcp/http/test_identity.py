"""Callers and their views: every route with a token that may see it and with one that may not."""

import base64
import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from npl_mcp.config.domains import LISTED, NEEDS
from npl_mcp.http.policy import SECONDS, Refreshed
from npl_mcp.server.introduction import ALSO, FIRST
from npl_mcp.stores.access import Permissions, add_token, revoke_token, tokens
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.paging import now
from npl_mcp.tools.domains import tool_named
from tests import engines
from tests.conftest import cases
from tests.folders import fill
from tests.messages import READY, asking, hello
from tests.npl_mcp.http.http_server import BOTH, JSON, Answer, Running, serving
from tests.until import until

PLAN = "# Plan\n\n## Siphon\n\nA siphon lifts water over the edge.\n"
CONFIG = '[project]\ncode = "{0}"\nname = "{0}"\nticketsPath = "crs"\n'
HEAD = "---\ncode: {0}-001\nstatus: Proposed\ntype: Bug Fix\npriority: High\npath: [a, 2]\n---\n"
CR = f"{HEAD}# Siphon\n\nIt leaks.\n"


def without(*domains: str) -> frozenset[str]:
    return frozenset(LISTED) - set(domains)


@dataclass
class Site:
    """A running server, and the tokens of some callers by their names."""

    server: Running
    database: Database
    tokens: dict[str, str]

    docs = property(lambda self: self.server.folder / "docs")
    other = property(lambda self: self.server.folder / "other")

    def headers(self, who: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[who]}"}

    def call(self, who: str, tool: str, /, headers: dict[str, str] | None = None, **arguments: Any) -> Answer:
        return self.server.call(tool, arguments, **{**self.headers(who), **(headers or {})})

    def data(self, who: str, tool: str, /, **arguments: Any) -> Any:
        answer = self.call(who, tool, **arguments)
        assert answer.status == 200, answer.data
        return answer.data["data"]

    def code(self, who: str, tool: str, /, **arguments: Any) -> str:
        return str(self.call(who, tool, **arguments).data.get("error_code", "OK"))

    def ask(self, who: str, method: str, **params: Any) -> dict[str, Any]:
        named = {"Mcp_Name": params["uri"]} if "uri" in params else {}
        answer: dict[str, Any] = self.server.mcp(method, params, **self.headers(who), **named).data
        return answer


def tree(folder: Path) -> None:
    """Make two roots with documents, a project with a change request, and templates each."""
    for name, code in (("docs", "DOC"), ("other", "OTH")):
        files = {
            f"{name}.md": f"# {name}\n\n## Water\n\nThe siphon of {name}.\n",
            ".mdt-config.toml": CONFIG.format(code),
            f"crs/{code}-001-siphon.md": CR.format(code),
        }
        fill(folder / name, files)
    for path in ("home/.npl/npl/homely.md", "work/.npl/npl/here.md", "work/lying.md"):
        fill(folder, {path: f"# {Path(path).stem}\n\nOutside of all roots.\n"})
    fill(folder / "other" / "prompts", {"siphons.md": "# Siphons\n\nClean them.\n"})
    names = ("templates/spec_template.md", "agent_operating_procedure.md", "agent_context.md")
    reference = folder / "other" / "directive" / "reference"
    fill(reference, dict.fromkeys(names, "# One\n\nKeep it short.\n"))


def callers(folder: Path) -> dict[str, tuple[Permissions, bool]]:
    return {
        "alice": (Permissions(), False),
        "bob": (Permissions(), False),
        "reader": (Permissions(), True),
        "docs": (Permissions(roots=(str(folder / "docs"),)), False),
        "deep": (Permissions(roots=(str(folder / "docs" / "crs"),)), False),
        "above": (Permissions(roots=(str(folder), "/nowhere")), False),
        "nothing": (Permissions(roots=()), False),
        "guides": (Permissions(), False),
        **{f"no-{domain}": (Permissions(without(domain)), False) for domain in LISTED},
    }


def started(folder: Path, *flags: str) -> Iterator[Site]:
    tree(folder)
    stores = engines.stores(folder / "data")
    tokens = {
        name: stores.database.writing(add_token, name, sight, read_only=read_only)
        for name, (sight, read_only) in callers(folder).items()
    }
    # The token of an earlier version that was for a library alone.
    limit = """UPDATE access_token SET libraries = '["guides"]' WHERE name = 'guides'"""
    engines.execute(folder / "data", limit)
    roots = ("--root", str(folder / "docs"), "--root", str(folder / "other"))
    try:
        with serving(folder, *roots, *flags, **engines.environment(folder / "data")) as running:
            site = Site(running, stores.database, tokens)
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
    yield from started(tmp_path_factory.mktemp("site"), "--write")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    yield from started(tmp_path_factory.mktemp("small"), "--small-list")


# One call of a tool of each domain, and an old name of one, where it has any.
CALLS: dict[str, tuple[str, dict[str, Any], str | None]] = cases("npl_mcp/http/identity")["calls"]


@pytest.mark.parametrize("domain", LISTED)
def test_a_tool_of_a_hidden_domain_is_unknown(site: Site, domain: str) -> None:
    """Its names, old and new, are unknown over both faces, and no answer proposes them."""
    tool, arguments, old = CALLS[domain]
    blind = f"no-{domain}"
    for name in filter(None, (tool, old)):
        assert f"there is no tool {name!r}" not in site.call("alice", name, **arguments).body.decode(), name
        plain = site.call(blind, name, **arguments)
        assert (plain.status, plain.data["error_code"]) == (404, "NOT_FOUND")
        assert plain.data["error"].startswith(f"there is no tool {name!r}")
        proposed = plain.data["error"].partition(";")[2]
        hidden = {
            tool_name for tool_name, (_, mine) in tools_of(site, "alice").items() if mine in gone(domain)
        }
        assert not any(tool_name in proposed.replace(",", " ").split() for tool_name in hidden)
        result = site.ask(blind, "tools/call", name=name, arguments=arguments)["result"]
        assert result["content"][0]["text"] == plain.body.decode()


def gone(domain: str) -> set[str]:
    return {domain} | {other for other, needed in NEEDS.items() if domain in needed}


def tools_of(site: Site, who: str) -> dict[str, tuple[dict[str, Any], str]]:
    """Return the listed tools and the domain of each."""
    listed = site.ask(who, "tools/list")["result"]["tools"]
    return {tool["name"]: (tool, tool_named(tool["name"]).domain or "") for tool in listed}


@pytest.mark.parametrize("domain", LISTED)
def test_the_list_has_the_tools_of_the_domains_a_caller_sees(site: Site, domain: str) -> None:
    every = tools_of(site, "alice")
    seen = tools_of(site, f"no-{domain}")
    assert list(seen) == [
        name
        for name, (_, mine) in every.items()
        if mine not in gone(domain) and domain not in NEEDS.get(name, ())
    ]
    assert domain in {mine for _, mine in every.values()}


def index_of(site: Site, who: str, file: str) -> str:
    return site.call(who, "npl_section_index", file=file).body.decode()


# Route by route: what is asked, who sees it and who does not, and whether an answer shows it.
ROUTES: dict[str, tuple[str, Callable[[Site, str], bool]]] = {
    **{
        f"instructions about {domain}": (
            f"no-{domain}",
            lambda s, w, words=words: words in s.ask(w, "server/discover")["result"]["instructions"],
        )
        for domain, words in {"npl": FIRST, **ALSO}.items()
    },
    "metrics": ("no-chat", lambda s, w: b"chat_create_room" in figures(s, w)),
    "sums of metrics": ("no-npl", lambda s, w: b"npl_tokens_served" in figures(s, w)),
    "artifact to share": (
        "no-artifact",
        lambda s, w: (
            s.code(w, "chat_share_artifact", room_id=1, artifact_id=1) in ("OK", "PERMISSION_DENIED")
        ),
    ),
}


def load(site: Site, who: str, **arguments: Any) -> str:
    return site.call(who, "npl_load_tailored", **arguments).body.decode()


def figures(site: Site, who: str) -> bytes:
    answer = site.server.request("GET", "/metrics", None, site.headers(who))
    assert answer.status == 200 or (answer.status, answer.data["error_code"]) == (403, "PERMISSION_DENIED")
    return answer.body


SHOWN: dict[str, tuple[str, str, dict[str, Any], str]] = cases("npl_mcp/http/identity")["shown"]
"""A caller who does not see what a call shows, the call, and a part of its answer."""

ASKED: dict[str, tuple[str, str, dict[str, Any], str]] = cases("npl_mcp/http/identity")["asked"]
"""The same of messages of the protocol."""


@pytest.mark.parametrize("what", SHOWN)
def test_each_call_shows_what_a_caller_may_see(site: Site, what: str) -> None:
    blind, tool, arguments, shown = SHOWN[what]
    places = json.dumps(arguments).replace("OTHER", str(site.other)).replace("DOCS", str(site.docs))
    seen = {who: site.call(who, tool, **json.loads(places)).body.decode() for who in ("alice", blind)}
    assert shown in seen["alice"]
    assert shown not in seen[blind]


@pytest.mark.parametrize("what", ASKED)
def test_each_message_shows_what_a_caller_may_see(site: Site, what: str) -> None:
    blind, method, params, shown = ASKED[what]
    assert shown in json.dumps(site.ask("alice", method, **params))
    assert shown not in json.dumps(site.ask(blind, method, **params))


@pytest.mark.parametrize("route", ROUTES)
def test_each_route_shows_what_a_caller_may_see(site: Site, route: str) -> None:
    """An unlimited caller sees all, a limited one nothing."""
    blind, shows = ROUTES[route]
    assert shows(site, "alice"), route
    assert not shows(site, blind), route


ALIKE = ("OTH", "XXX")
"""Parts of the names that these answers repeat."""


def test_what_is_hidden_is_as_what_is_not_there(site: Site) -> None:
    """Answers about a hidden and an absent thing differ by its name alone."""
    other = f"{site.other}/"
    pairs: list[tuple[str, Callable[[Site, str, str], Any], str, str]] = [
        ("no-directive", Site.ask, "directive.files.list", "no.such"),
        ("no-npl", read, "npl://file/a", "nosuch://thing"),
        ("docs", resource, "other.md", "othar.md"),
        ("no-artifact", resource, "artifact:1", "artifact:9"),
        ("no-artifact", index_of, "artifact:1", "artifact:9"),
        ("no-cr", index_of, "cr:DOC-001", "cr:DOC-009"),
        ("docs", index_of, f"{other}other.md", f"{other}no.md"),
        ("docs", index_of, other, f"{other}none"),
        ("docs", lambda s, w, n: s.call(w, "get_cr", key=n).body.decode(), "OTH-001", "XXX-001"),
        ("docs", folder, other, f"{other}none"),
    ]
    for who, answer, hidden, absent in pairs:
        shown, missing = json.dumps(answer(site, who, hidden)), json.dumps(answer(site, who, absent))
        for name in (hidden, absent, *ALIKE):
            shown, missing = shown.replace(name, "N"), missing.replace(name, "N")
        assert shown == missing, (who, hidden)


def test_a_field_with_the_name_of_a_path_may_have_any_value(site: Site) -> None:
    """Only the path of the file is shortened for a caller who may not know it."""
    request = site.data("docs", "get_cr", key="DOC-001")
    assert (request["path"], request["other"]["path"]) == ("crs/DOC-001-siphon.md", ["a", "2"])


def read(site: Site, who: str, uri: str) -> dict[str, Any]:
    return site.ask(who, "resources/read", uri=uri)


def resource(site: Site, who: str, path: str) -> dict[str, Any]:
    return read(site, who, f"npl://file/{path}")


def folder(site: Site, who: str, path: str) -> tuple[int, str]:
    answer = site.call(who, "npl_section_index", {"NPL_Cwd": path}, file="docs.md")
    assert answer.headers.get("npl-cwd") == "refused"
    return answer.status, answer.body.decode()


@pytest.mark.parametrize("domain", LISTED)
def test_search_finds_the_tools_of_the_domains_a_caller_sees(small: Site, domain: str) -> None:
    """The list, a search and the tool that calls others reveal no hidden one."""
    tool, arguments, _ = CALLS[domain]
    blind = f"no-{domain}"
    for who, shown in (("alice", True), (blind, False)):
        listed = small.ask(who, "tools/list")["result"]["tools"]
        about = next(row["description"] for row in listed if row["name"] == "search_tools")
        assert (domain in about.partition("domains:")[2].rstrip(".").replace(",", "").split()) is shown
        answer = small.data(who, "search_tools", query=tool.replace("_", " "))
        always = domain in ("search", "npl")
        assert always or (tool in {row["name"] for row in answer["tools"]}) is shown
        names = small.data(who, "search_tools", query="qqqq")["names"]
        assert (tool in names) is shown
        inner = small.call(who, "call_tool", name=tool, arguments=arguments).body.decode()
        assert ("there is no tool" in inner) is not shown


EDIT = {"selector": "## Edited", "operation": "append", "content": "Edited."}

# Who may change which files; all others are not there for them, or lie below no root of the server.
EDITORS = {
    "alice": {"docs/edited.md", "other/edited.md"},
    "docs": {"docs/edited.md"},
    "deep": set[str](),
    "above": {"docs/edited.md", "other/edited.md"},
    "guides": set[str](),
}


@pytest.mark.parametrize("who", EDITORS)
def test_sections_are_changed_below_roots_of_the_server_and_of_the_token(site: Site, who: str) -> None:
    """A token or the caller's folder can narrow the permission to write, never widen it."""
    files = ("docs/edited.md", "other/edited.md", "work/edited.md", "work/.npl/npl/edited.md")
    for name in files:
        file = site.server.folder / name
        file.write_text("# E\n\n## Edited\n", encoding="utf-8")
        os.utime(file, (1, 1))
    for name in files:
        path = str(site.server.folder / name)
        answer = site.call(who, "npl_update_section", **EDIT, file=path)
        changed = (site.server.folder / name).read_text(encoding="utf-8") != "# E\n\n## Edited\n"
        assert changed is (answer.status == 200) is (name in EDITORS[who]), (name, answer.data)
        assert answer.status in (200, 403, 404)
        new = site.server.folder / name.replace("edited.md", "made.md")
        made = site.call(who, "npl_update_section", operation="create", content="# M", file=str(new))
        assert new.exists() is (made.status == 200) is (name in EDITORS[who]), (name, made.data)
        new.unlink(missing_ok=True)
    for name in files:
        (site.server.folder / name).unlink()


def test_a_reader_is_not_shown_what_writes(site: Site) -> None:
    """Tools that write are not listed, refuse a call in words, and are never proposed."""
    every, seen = tools_of(site, "alice"), tools_of(site, "reader")
    reading = [name for name, (tool, _) in every.items() if tool.get("annotations", {}).get("readOnlyHint")]
    assert [name for name in seen if name in reading] == reading
    assert set(seen) - set(reading) == {"worklog_read", "manage_cr_sections"}
    for tool, arguments in (
        ("session_create", {}),
        ("create_session", {}),
        ("chat_send_message", {"room_id": 1, "message": "x"}),
        ("delete_cr", {"key": "DOC-001"}),
        ("worklog_read", {}),
        ("npl_update_section", {**EDIT, "file": "docs.md"}),
        ("manage_cr_sections", {"key": "DOC-001", "operation": "update"}),
        ("update_cr_section", {"key": "DOC-001"}),
    ):
        refused = site.call("reader", tool, **arguments)
        assert (refused.status, refused.data["error_code"]) == (403, "PERMISSION_DENIED")
        assert "'reader' only allows reading" in refused.data["error"]
    assert "session_create" not in site.call("reader", "session_creat").data["error"]
    assert site.data("reader", "session_get", session_id="s")["session"]["id"] == "s"
    assert site.data("reader", "worklog_read", peek=True)["session_id"] == "w"
    assert site.data("reader", "list_cr_sections", key="DOC-001")


# Tool, arguments without the one who acts, and where an answer says who did.
ACTS: dict[str, tuple[str, dict[str, Any], str]] = cases("npl_mcp/http/identity")["acts"]


@pytest.mark.parametrize("act", ACTS)
def test_the_token_says_who_acts(site: Site, act: str) -> None:
    """The argument may be absent or equal; every other name is refused."""
    tool, arguments, parameter = ACTS[act]
    for given in ({}, {parameter: "alice"}, {parameter: " alice "}, {parameter: None}):
        data = site.data("alice", tool, **arguments, **given)
        assert data.get(parameter, "alice") == "alice"
    for other in ("bob", "Alice", "nobody"):
        refused = site.call("alice", tool, **arguments, **{parameter: other})
        assert (refused.status, refused.data["error_code"]) == (403, "PERMISSION_DENIED")
        assert "the token belongs to 'alice'" in refused.data["error"]
    assert site.code("alice", tool, **arguments, **{parameter: 7}) == "INVALID_PARAMETER"
    listed = tools_of(site, "alice")[tool][0]["inputSchema"]
    assert parameter in listed["properties"]
    assert parameter not in listed.get("required", [])


def test_what_was_done_bears_the_name_of_the_token(site: Site) -> None:
    """Stored rows have its name, by either name of a tool."""
    site.data("bob", "send_message", room_id=1, message="by bob")
    assert site.data("alice", "chat_get_feed", room_id=1)["items"][-1]["persona"] == "bob"
    file = {"filename": "b.md", "file_content_base64": "eA=="}
    site.data("bob", "artifact_create", name="of bob", artifact_type="document", **file)
    newest = site.data("alice", "artifact_list")["items"][0]["id"]
    assert site.data("alice", "artifact_get", artifact_id=newest)["created_by"] == "bob"


def test_only_the_reviewer_completes_a_review(site: Site) -> None:
    """The overall comment is the reviewer's word."""
    review = site.data("alice", "review_create", artifact_id=1, revision_id=1)["review_id"]
    for name in ("review_complete", "complete_review"):
        said = site.call("bob", name, review_id=review, overall_comment="fine")
        assert (said.status, said.data["error_code"]) == (403, "PERMISSION_DENIED")
        assert site.code("bob", name, review_id=review, reviewer_persona="alice") == "PERMISSION_DENIED"
    assert site.data("bob", "review_get", review_id=review)["status"] == "in_progress"
    assert site.data("alice", "review_complete", review_id=review)["status"] == "completed"
    shown = tools_of(site, "bob")["review_complete"][0]["inputSchema"]["properties"]
    assert list(shown) == ["review_id", "overall_comment"]


def test_a_filter_by_persona_claims_nothing(site: Site) -> None:
    """Listing another persona's rooms is not acting for it."""
    assert site.data("docs", "chat_list_rooms", persona="bob")["total"] == 1
    assert site.data("docs", "chat_list_rooms")["total"] == 1


def test_roots_are_those_of_the_server_that_lie_below_those_of_the_token(site: Site) -> None:
    """A token's root above the server's shows just these; without roots it shows the bundled documents."""
    (site.server.folder / "beside.md").write_text("# Beside\n", encoding="utf-8")
    assert "siphon of other" in load(site, "above", context="siphon water", file="other.md")
    beside = str(site.server.folder / "beside.md")
    assert site.code("above", "npl_section_index", file=beside) == "NOT_FOUND"
    for limited in ("nothing", "guides"):
        assert site.code(limited, "npl_section_index", file="docs.md") == "NOT_FOUND"
        assert site.code(limited, "npl_load_components", items="syntax") == "OK"
        assert site.code(limited, "list_crs", project="DOC") == "NOT_FOUND"
    assert "Siphon" in index_of(site, "deep", "DOC-001-siphon.md")
    assert site.data("deep", "list_projects")["total"] == 0


def test_links_out_of_a_root_lead_nowhere(site: Site) -> None:
    """A link does not lead into a root that the token does not name."""
    link = site.docs / "link.md"
    link.symlink_to(site.other / "other.md")
    try:
        assert "siphon of other" in load(site, "alice", file="link.md", context="siphon")
        assert site.code("docs", "npl_section_index", file="link.md") == "NOT_FOUND"
    finally:
        link.unlink()


def test_the_callers_folder_lies_below_its_roots(site: Site) -> None:
    """Other folders are refused over both faces, whether they exist or not."""
    inside = {"NPL_Cwd": str(site.docs / "crs")}
    assert site.call("docs", "npl_section_index", inside, file="DOC-001-siphon.md").status == 200
    for path in (str(site.other), str(site.server.folder), "/", str(site.docs / "none")):
        status, body = folder(site, "docs", path)
        assert (status, json.loads(body)["error_code"]) == (403, "PERMISSION_DENIED")
        meta = {"npl/cwd": path}
        params = {"name": "npl_section_index", "arguments": {"file": "docs.md"}, "_meta": meta}
        result = site.server.mcp("tools/call", params, **site.headers("docs")).data["result"]
        assert result["isError"]
        assert result["_meta"]["npl/cwd"] == "refused"


ENTRIES = [("POST", "/mcp"), ("POST", "/mcp/tools/session_list"), ("GET", "/metrics"), ("GET", "/mcp")]


@pytest.mark.parametrize(("method", "path"), ENTRIES)
def test_without_a_valid_token_nothing_is_answered(site: Site, method: str, path: str) -> None:
    wrong = ("", "npl_nobody", site.tokens["alice"].swapcase(), site.tokens["alice"] + "x")
    for token in wrong:
        headers = {**JSON, "Authorization": f"Bearer {token}"} if token else JSON
        answer = site.server.request(method, path, {}, headers)
        assert (answer.status, answer.data["error_code"]) == (401, "PERMISSION_DENIED")


def test_the_user_who_runs_the_server_needs_no_token_of_its_own(site: Site) -> None:
    """The token of the state file suffices; the named persona acts."""
    own = {"Authorization": f"Bearer {site.server.state.token}"}
    message = {"room_id": 1, "persona": "bob", "message": "hi"}
    assert site.server.call("chat_send_message", message, **own).status == 200


def test_a_token_ends_when_it_expires_and_soon_after_it_is_revoked(site: Site) -> None:
    """Expiry is exact despite the cache; a revoked token ends within the stated time."""
    site.tokens["brief"] = site.database.writing(add_token, "brief", lifetime=timedelta(seconds=SECONDS + 2))
    site.tokens["gone"] = site.database.writing(add_token, "gone")
    ends = next(row.expires_at for row in site.database.reading(tokens) if row.name == "brief")
    until(lambda: site.call("brief", "session_list").status == 200 or now() >= ends)
    until(lambda: site.call("gone", "session_list").status == 200)
    site.database.writing(revoke_token, "gone")
    until(lambda: site.call("brief", "session_list").status == 401)
    entry = next(row for row in site.database.reading(tokens) if row.name == "brief")
    assert (entry.state, entry.expires_at) == ("expired", ends)
    until(lambda: site.call("gone", "session_list").status == 401)


def test_callers_at_the_same_time_keep_their_names(site: Site) -> None:
    """Two callers have many calls in flight, and none is made in the other's name."""
    site.data("alice", "chat_create_room", name="both", members=["alice", "bob"])
    room = site.data("alice", "chat_list_rooms")["items"][0]["id"]

    def send(number: int) -> tuple[str, str]:
        who = ("alice", "bob", "docs")[number % 3]
        if who == "docs":
            return site.code(who, "npl_section_index", file="other.md"), "NOT_FOUND"
        if number % 2:
            return site.data(who, "chat_send_message", room_id=room, message=who)["persona"], who
        params = {"name": "chat_send_message", "arguments": {"room_id": room, "message": who}}
        text = site.ask(who, "tools/call", **params)["result"]["content"][0]["text"]
        return json.loads(text)["data"]["persona"], who

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(send, range(120)))
    assert all(got == wanted for got, wanted in answers)
    events = site.data("alice", "chat_get_feed", room_id=room, limit=200)["items"]
    messages = [event for event in events if event["event_type"] == "message"]
    assert len(messages) == 80
    assert all(message["persona"] == message["data"]["message"] for message in messages)


def test_a_call_waits_under_the_name_of_the_token(site: Site) -> None:
    """The caller gives no persona, and gets its own notifications."""
    before = site.data("bob", "chat_get_notifications")
    since = max((item["id"] for item in before["items"]), default=0)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(site.data, "bob", "chat_get_notifications", since=since, wait=30)
        sent = site.data("alice", "chat_send_message", room_id=1, message="wake up, @bob")
        assert [item["event_id"] for item in waiting.result(30)["items"]] == [sent["event_id"]]


def test_notifications_of_others_cannot_be_read(site: Site) -> None:
    site.data("alice", "chat_send_message", room_id=1, message="for @bob")
    first = site.data("bob", "chat_get_notifications")["items"][0]["id"]
    assert site.code("alice", "chat_mark_read", notification_id=first) == "NOT_FOUND"
    assert site.data("bob", "chat_get_notifications")["items"][0]["id"] == first
    assert site.data("bob", "mark_notification_read", notification_id=first)["read_at"]
    assert "persona" not in tools_of(site, "bob")["chat_mark_read"][0]["inputSchema"]["properties"]


@pytest.mark.engine("sqlite")  # a replica keeps none
def test_a_session_belongs_to_its_first_caller(site: Site) -> None:
    """Another caller's protocol session does not exist, for any message."""

    def send(who: str, body: Any, **headers: str) -> Answer:
        return site.server.request("POST", "/mcp", body, {**BOTH, **site.headers(who), **headers})

    begun = send("no-npl", hello())
    assert b"npl_load_tailored" not in begun.body
    assert b"npl_load_tailored" in send("alice", hello()).body
    session = {"Mcp-Session-Id": begun.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
    send("no-npl", READY, **session)
    listing = asking(2, "tools/list")
    mine = send("no-npl", listing, **session)
    assert b"session_list" in mine.body
    assert b"npl_section_index" not in mine.body
    assert send("alice", listing, **session).status == 404


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[], Running]]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(serving(tmp_path, **engines.environment(tmp_path / "data")))


@pytest.mark.thorough
@pytest.mark.engine("sqlite")
def test_a_server_whose_database_does_not_answer_lets_no_caller_in(
    tmp_path: Path, serve: Callable[[], Running]
) -> None:
    """It is not ready, gives a reason without contents of the database, and recovers by itself."""
    token = {"Authorization": f"Bearer {engines.tokens(tmp_path / 'data', ['alice'])['alice']}"}
    server = serve()
    assert server.state.guarded
    assert server.call("session_list", {}, **token).status == 200
    database = tmp_path / "data" / "npl.db"
    away = database.rename(tmp_path / "away.db")
    database.write_bytes(b"no database" * 1000)
    until(lambda: server.call("session_list", {}, **token).status == 503)
    for answer in (server.call("session_list", {}, **token), server.request("GET", "/readyz")):
        assert (answer.status, answer.data["error_code"]) == (503, "DATABASE_ERROR")
        assert answer.headers["retry-after"] == "1"
        assert "alice" not in answer.body.decode()
        assert str(tmp_path) not in answer.body.decode()
    own = {"Authorization": f"Bearer {server.state.token}"}
    assert server.call("npl_load_components", {"items": "syntax"}, **own).status == 200
    database.unlink()
    until(lambda: server.call("session_list", {}).status == 401)  # no database is no open door
    away.rename(database)
    until(lambda: server.call("session_list", {}, **token).status == 200)
    assert server.request("GET", "/readyz").status == 200


@pytest.mark.thorough
def test_without_tokens_all_is_as_ever_until_the_first_is_made(
    tmp_path: Path, serve: Callable[[], Running]
) -> None:
    """Arguments name the persona; the first token closes the running server within the stated time."""
    server = serve()
    assert not server.state.guarded
    assert server.request("GET", "/readyz").status == 200
    assert not (tmp_path / "data" / "npl.db").exists()
    missing = server.call("chat_send_message", {"room_id": 1, "message": "x"})
    assert missing.data["error_code"] == "MISSING_REQUIRED"
    token = {"Authorization": f"Bearer {engines.tokens(tmp_path / 'data', ['alice'])['alice']}"}
    until(lambda: server.call("session_list", {}).status == 401)
    assert server.call("session_list", {}, **token).status == 200


class Slow:
    """An answer that comes when it is let, as a number or a failure."""

    def __init__(self) -> None:
        self.asked = 0
        self.fails = False
        self.may_answer = threading.Event()

    def __call__(self) -> int:
        self.asked += 1
        self.may_answer.wait(30)
        if self.fails:
            raise OSError("gone")
        return self.asked


async def together(kept: Refreshed[int], slow: Slow, many: int) -> list[Any]:
    parts: list[Any] = []

    async def ask() -> None:
        try:
            parts.append(await kept.get())
        except OSError as error:
            parts.append(str(error))

    async with anyio.create_task_group() as group:
        for _ in range(many):
            group.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        slow.may_answer.set()
    return parts


@pytest.mark.parametrize("fails", [False, True])
async def test_callers_that_come_meanwhile_get_the_same(fails: bool) -> None:
    """One request serves all of them; a failure is not kept."""
    slow = Slow()
    slow.fails = fails
    kept = Refreshed(slow, 3600)

    assert await together(kept, slow, 50) == ["gone" if fails else 1] * 50
    assert slow.asked == 1
    slow.fails = False
    assert await kept.get() == (2 if fails else 1)


async def test_an_old_one_is_asked_for_again() -> None:
    """With a lifetime of zero, each call asks for it."""
    slow = Slow()
    slow.may_answer.set()
    kept = Refreshed(slow, 0)

    assert [await kept.get(), await kept.get()] == [1, 2]


async def test_a_caller_that_goes_away_takes_no_answer_from_others() -> None:
    """The others get the answer to the same question after one caller gives up."""
    slow = Slow()
    kept = Refreshed(slow, 3600)

    with anyio.move_on_after(0.05) as limit:
        await kept.get()
    assert limit.cancelled_caught
    assert await together(kept, slow, 2) == [1, 1]
