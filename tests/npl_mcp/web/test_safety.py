"""Promises of every page, present and future: permissions, and headers of answers."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from npl_mcp.config.domains import LISTED, NEEDS
from npl_mcp.stores.access import Permissions
from npl_mcp.web.browsers import HEADERS, SESSION_COOKIE, TOKEN_COOKIE
from npl_mcp.web.routing import TEAM, Action, WebPage
from tests.conftest import cases, every
from tests.folders import fill as fill_folder
from tests.npl_mcp.http.http_server import Answer, Running, call, mcp, request, serving
from tests.npl_mcp.web.browsing import FORM, Pages, Shown, Visitor, visited, without
from tests.npl_mcp.web.elements import strange
from tests.npl_mcp.web.examples import DECLARED, FORMS, PARAMETERS, SHOWN, filled, names, twin, with_query
from tests.npl_mcp.web.hostile import MARKS, fill
from tests.until import until

OWN = "the-token-of-the-whole-server"

ONLY = {f"only-{domain}": Permissions(frozenset({domain})) for domain in LISTED}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server without tokens, full of hostile texts."""
    folder = tmp_path_factory.mktemp("open")
    docs = folder / "docs"
    docs.mkdir()
    with serving(folder, "--root", str(docs), "--log-calls", "contexts", "--write") as running:

        def ask(tool: str, **given: Any) -> Any:
            answer = call(running, tool, given)
            assert answer.status < 500, answer.data
            return answer.data.get("data")

        fill(ask, docs)
        yield running


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    """A server with tokens: for everything, for reading, for all domains but one, and for one alone."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "docs").mkdir()
    sights = {"all": Permissions(), "reader": Permissions(), **without(*LISTED), **ONLY}
    with visited(folder, sights, f"--root={folder}/docs", readers=("reader",)) as pages:
        for tool, given in (
            ("session_create", {"session_id": "s", "title": "S"}),
            ("chat_create_room", {"name": "R", "members": ["all"]}),
            ("chat_send_message", {"room_id": 1, "message": "Told to those in it."}),
            ("worklog_init", {"session_id": "s", "task": "T"}),
            ("worklog_log", {"session_id": "s", "action": "note", "summary": "Told to those who may."}),
        ):
            pages.call("all", tool, **given)
        yield pages


def method_of(page: Any) -> str:
    return "POST" if isinstance(page, Action) else "GET"


def routes() -> list[tuple[str, str]]:
    """Return the method and an address of every route there is."""
    addresses = [(method_of(page), with_query(page.path)) for page in DECLARED]
    addresses += [("GET", twin(with_query(page.path))) for page in SHOWN]
    return [*addresses, ("GET", "/static/npl.css"), ("GET", "/static/npl.js"), ("GET", "/nowhere")]


ROUTES = routes()


def test_every_declared_page_has_an_example() -> None:
    """A new parameter of a path needs an example, so that the tests below try its page."""
    assert {name for page in DECLARED for name in names(page.path)} <= PARAMETERS.keys()


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.path)
def test_every_page_can_be_opened(server: Running, page: WebPage) -> None:
    """Otherwise the tests of its safety would prove nothing. Its twin is JSON for any content."""
    visitor = Visitor(server)
    assert visitor.open(with_query(page.path)).status == 200
    answer = visitor.send("GET", twin(with_query(page.path)))
    assert answer.data["success"]
    # No browser takes it for another type.
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"


def ask(server: Running, method: str, address: str, **headers: str) -> Answer:
    """Send a request by hand."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    host, body = named.pop("Host", ""), b"" if method == "POST" else None
    named = {"Accept": "text/html", **(FORM if method == "POST" else {}), **named}
    return request(server, method, address, body, named, host=host)


REFUSED = cases("npl_mcp/web/safety")["refused"]


@pytest.mark.parametrize("case", REFUSED)
def test_what_others_send_is_refused_everywhere(server: Running, case: str) -> None:
    headers, status = REFUSED[case]
    for method, address in ROUTES:
        answer = ask(server, method, address, **headers)
        assert (answer.status, address) == (status, address)
        check_headers(answer, address)


def test_a_link_is_followed_and_a_form_of_others_is_not(server: Running) -> None:
    followed = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    for page in DECLARED:
        status = ask(server, method_of(page), with_query(page.path), **followed).status
        assert (status == 403) == isinstance(page, Action), page.path


NOTHING = "default-src 'none'; sandbox"
"""The policy of foreign files, which are not pages."""


def check_headers(answer: Answer, address: str) -> None:
    """Check that an answer for a browser limits what the browser may do with it."""
    policy = answer.headers.get("content-security-policy")
    assert policy in (HEADERS["Content-Security-Policy"], NOTHING), address
    for name, value in HEADERS.items():
        if name not in ("Cache-Control", "Content-Security-Policy"):
            assert answer.headers.get(name.lower()) == value, (address, answer.status, name)
    assert answer.headers["cache-control"].partition(",")[0] in ("no-store", "no-cache"), address


def test_every_answer_says_what_a_browser_may_do(server: Running, guarded: Pages) -> None:
    for turn, (method, address) in enumerate(ROUTES):
        for running, sent in every(
            2, ((server, method), (guarded.server, method), (server, "DELETE"), (server, "HEAD")), turn
        ):
            check_headers(ask(running, sent, address), address)
    check_headers(ask(server, "GET", "/rooms/1" + "0" * 300), "a long number")
    long = request(server, "POST", "/sign-in", b"x", {**FORM, "Content-Length": "999999999"})
    assert long.status == 413
    check_headers(long, "a long body")


def test_the_policy_allows_nothing_of_others() -> None:
    policy = HEADERS["Content-Security-Policy"]
    rules = dict(rule.strip().partition(" ")[::2] for rule in policy.split(";"))
    assert {rules[name] for name in ("default-src", "base-uri", "frame-ancestors")} == {"'none'"}
    own = ("script-src", "style-src", "form-action", "connect-src")
    assert {rules[name] for name in own} == {"'self'"}
    assert "unsafe" not in policy
    assert "*" not in policy


METHODS = {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"}


def test_other_methods_are_refused(server: Running) -> None:
    allowed: dict[str, set[str]] = {}
    for method, address in ROUTES:
        allowed.setdefault(address.partition("?")[0], set()).add(method)
    for turn, (address, methods) in enumerate(allowed.items()):
        for method in every(3, sorted(METHODS - methods), turn):
            assert ask(server, method, address).status in (403, 404, 405), (method, address)


def test_forms_are_taken_from_their_own_page_alone(server: Running, tmp_path: Path) -> None:
    """A form without its token, with another session's, or from a new browser is refused."""
    owner, other = Visitor(server), Visitor(server)
    token = owner.open("/sign-in").fields("/sign-in")["form_token"]
    theirs = other.open("/sign-in").fields("/sign-in")["form_token"]
    assert token != theirs
    for turn, form in enumerate(FORMS):
        path = filled(form.path)
        strangers = (
            (owner, {}),
            (owner, {"form_token": ""}),
            (owner, {"form_token": theirs}),
            (owner, {"form_token": token[:-1]}),
            (owner, {"form_token": token + "\u00e9"}),
            (Visitor(server), {"form_token": token}),
            (Visitor(server, cookies={SESSION_COOKIE: "guessed"}), {"form_token": token}),
            (Visitor(server, cookies={**owner.cookies, TOKEN_COOKIE: "eA=="}), {"form_token": token}),
        )
        for visitor, fields in every(4, strangers, turn):
            sent = visitor.post(path, fields)
            assert (sent.status, path) == (403, path)
        from_elsewhere = owner.post(path, {"form_token": token}, Origin="https://elsewhere.invalid")
        assert from_elsewhere.status == 403
        assert owner.post(path, {"form_token": token}).status != 403, path
    with serving(tmp_path, "--web", "read") as reading:
        visitor = Visitor(reading)
        token = visitor.open("/sign-in").fields("/sign-in")["form_token"]
        for form in FORMS:
            status = visitor.post(filled(form.path), {"form_token": token}).status
            assert (status == 403) == form.writes, form.path


def test_a_token_that_only_reads_sends_no_form(guarded: Pages) -> None:
    visitor = guarded.visitor("reader")
    token = visitor.open("/rooms").fields("/sign-out")["form_token"]
    for form in FORMS:
        if form.writes:
            assert visitor.post(filled(form.path), {"form_token": token}).status == 403, form.path


@pytest.mark.parametrize("domain", LISTED)
def test_a_form_is_for_those_that_see_its_domain(guarded: Pages, domain: str) -> None:
    """A token for one domain sends the forms of this domain, and finds no other; every form has one."""
    visitor = guarded.visitor(f"only-{domain}")
    token = visitor.open("/sign-in").fields("/sign-in")["form_token"]
    for form in FORMS:
        if form.domain is None:
            assert not form.writes, form.path
            continue
        answer = visitor.post(filled(form.path), {"form_token": token}).answer
        is_found = b"there is no page" not in answer.body
        assert is_found == ({form.domain, *NEEDS.get(form.domain, ())} == {domain}), form.path


NEXT = cases("npl_mcp/web/safety")["next"]


def test_signing_in_leads_nowhere_else(guarded: Pages) -> None:
    running, tokens = guarded.server, guarded.tokens
    for given, expected in NEXT.items():
        visitor = Visitor(running)
        page = visitor.open(f"/sign-in?next={quote(given, safe='')}")
        assert page.fields("/sign-in")["next"] == expected
        for sent in (given, expected):
            done = visitor.post("/sign-in", {**page.fields("/sign-in"), "next": sent, "token": tokens["all"]})
            assert (done.status, done.answer.headers["location"]) == (303, expected)
            visitor.cookies.pop(TOKEN_COOKIE)


def test_a_token_is_in_a_cookie_that_no_script_reads_and_nowhere_else(
    guarded: Pages,
) -> None:
    running, tokens = guarded.server, guarded.tokens
    visitor = Visitor(running)
    page = visitor.open("/sign-in?next=/rooms")
    done = visitor.post("/sign-in", {**page.fields("/sign-in"), "token": tokens["all"]})
    parts = {part.strip().lower() for part in done.answer.headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= parts
    session = request(running, "GET", "/sign-in").headers["set-cookie"].lower()
    assert "httponly" in session
    assert "samesite=strict" in session
    assert tokens["all"] not in done.answer.headers["location"]
    shown = visitor.open("/rooms")
    assert tokens["all"] not in shown.html
    assert done.answer.headers["set-cookie"].split("=")[1].split(";")[0] not in shown.html
    for query in (f"token={tokens['all']}", f"npl_token={tokens['all']}", f"access_token={tokens['all']}"):
        assert ask(running, "GET", f"/rooms?{query}").status == 303
    assert "sign-in" in visitor.submit("/rooms", "/sign-out").answer.headers["location"]


def test_without_a_token_only_signing_in_is_there(guarded: Pages) -> None:
    for method, address in ROUTES:
        status = ask(guarded.server, method, address).status
        open_to_all = address == "/sign-in" or address.startswith("/static/")
        assert (status in (303, 401)) != open_to_all, (method, address, status)


PATHS = [*cases("npl_mcp/web/safety")["paths"], "9" * 5_000, "x" * 2_000]


def test_no_path_leads_out(server: Running) -> None:
    visitor = Visitor(server)
    places = [(declared, name) for declared in DECLARED for name in names(declared.path)]
    for turn, (declared, name) in enumerate(places):
        for text in every(4, PATHS, turn):
            answer = visitor.send(
                method_of(declared),
                filled(declared.path, **{name: text}),
                b"" if method_of(declared) == "POST" else None,
                **FORM,
            )
            assert answer.status < 500, (declared.path, text)
            assert b"root:" not in answer.body, (declared.path, text)
            assert "x=1" not in answer.headers.get("set-cookie", "")
    for text in PATHS:
        answer = visitor.send("GET", f"/static/{text}")
        assert answer.status in (400, 404, 405), text


QUERY = (
    "offset={0}&since={0}&q={0}&view={0}&status={0}&project={0}&section={0}&span={0}&who={0}&as={0}"
    "&file={0}&check={0}&line={0}&sort={0}"
)
VALUES = ("-1", "0", "99999999999999999999", "x", "%00", "%ff", "<b>", "1.5", "%D9%A1", "%ed%a0%80")


@pytest.mark.thorough
def test_no_parameter_breaks_a_page(server: Running) -> None:
    visitor = Visitor(server)
    for page in DECLARED:
        if isinstance(page, WebPage):
            for value in VALUES:
                address = f"{filled(page.path)}?{QUERY.format(value)}"
                assert visitor.send("GET", address).status < 500, address


def sees(domain: str, without: str) -> bool:
    return domain != without and without not in NEEDS.get(domain, ())


@pytest.mark.parametrize("domain", LISTED)
def test_what_a_token_does_not_name_is_not_there(guarded: Pages, domain: str) -> None:
    """It has no page, navigation, data, news or form."""
    running, tokens = guarded.server, guarded.tokens
    visitor = Visitor(running, tokens[f"no-{domain}"])
    team = [page.path for page in SHOWN if page.title and page.entry == TEAM]
    shown = [Shown(visitor.send("GET", path)) for path in ("/sign-in", *team)]
    menu = {link.get("href") for page in shown if page.status == 200 for link in page.tree.iter("a")}
    for declared in SHOWN:
        if declared.domain is not None and not sees(declared.domain, domain):
            assert declared.path not in menu
            for address in (with_query(declared.path), twin(with_query(declared.path))):
                answer = visitor.send("GET", address)
                nothing = visitor.send("GET", "/nowhere" + (".json" if ".json" in address else ""))
                assert answer.status == nothing.status == 404, address
                assert shape(answer, address) == shape(nothing, "/nowhere"), address
        elif declared.title:
            assert declared.path in menu


def shape(answer: Answer, address: str) -> str:
    """Return an answer without the address that it is about."""
    path = address.partition("?")[0]
    return re.sub(
        r'value="[0-9a-f]{64}"', "", answer.body.decode().replace(path, "PATH").replace(".json", "")
    )


MOST = 160
"""The number of read pages: the declared ones and their targets."""


def crawled(server: Running) -> Iterator[tuple[str, Shown]]:
    """Yield the declared pages, and the pages to which their links lead."""
    visitor = Visitor(server)
    waiting = [with_query(page.path) for page in SHOWN]
    seen: set[str] = set()
    while waiting and len(seen) < MOST:
        address = waiting.pop(0).partition("#")[0]
        if address in seen or not address.startswith("/") or address.startswith("/static/"):
            continue
        seen.add(address)
        page = visitor.open(address)
        if not page.answer.headers.get("content-type", "").startswith("text/html"):
            continue
        yield address, page
        waiting += [link.get("href", "") for link in page.tree.iter("a")]


@pytest.mark.thorough
def test_no_text_becomes_more_than_text(server: Running) -> None:
    """Every element and attribute is ours, and each text is shown somewhere."""
    shown_marks: set[str] = set()
    for address, page in crawled(server):
        assert page.status < 500, address
        wrong = sorted(set(strange(page.tree)))
        assert wrong == [], (address, wrong[:5])
        assert "1337" not in page.text, address
        for sign in "\0\x07\x08\x1b\x7f\x85\u2028\u2029\u202e\u2066\u200f":
            shown = re.sub(r"<(textarea|option)[^>]*>[^<]*</|value=\"[^\"]*\"", "", page.html)
            assert sign not in shown, (address, sign)
        shown_marks |= {mark for mark in MARKS if mark in page.html}
    assert shown_marks == set(MARKS)


def test_a_reader_with_the_token_of_the_server_can_sign_out(tmp_path: Path) -> None:
    """The token names no person; a visitor without it has nothing to forget."""
    with serving(tmp_path, NPL_MCP_TOKEN=OWN) as running:
        visitor = Visitor(running)
        assert b"/sign-out" not in visitor.open("/sign-in").answer.body
        visitor.submit("/sign-in", "/sign-in", token=OWN)
        assert visitor.open("/rooms").status == 200
        visitor.submit("/rooms", "/sign-out")
        assert visitor.open("/rooms").status == 303


def test_behind_https_every_cookie_is_kept_for_it(tmp_path: Path) -> None:
    with serving(tmp_path, NPL_MCP_WEB_URL="https://npl.invalid", NPL_MCP_TOKEN=OWN) as running:
        visitor = Visitor(running)
        page = visitor.open("/sign-in")
        done = visitor.post("/sign-in", {**page.fields("/sign-in"), "token": OWN})
        for answer in (page.answer, done.answer):
            assert "; secure" in answer.headers["set-cookie"].lower()


CANARY = re.compile(r"canary(?:npl|chat|session|worklog|artifact|cr)\b|selector\W+guessed\b", re.IGNORECASE)
"""Texts of one domain each, and the description of a document that texts of several domains name."""

READINGS = cases("npl_mcp/web/safety")["readings"]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    """A server with a canary in each domain, and with tokens for one domain each."""
    folder = tmp_path_factory.mktemp("full")
    files: dict[str, str | bytes] = {
        "docs/guessed.md": "# Canarynpl\n\nThe canarynpl sings.\n",
        "docs/prompts/bird.md": "# Canarynpl\n\nFeed {task}, canarynpl.\n",
        "docs/questions.md": "## Where is the canarynpl?\n\n- nowhere\n",
        "BAD/.mdt-config.toml": '[project]\ncode = "BAD"\nname = "Canarycr"\n',
        "BAD/docs/CRs/BAD-001-x.md": "---\ncode: BAD-001\ntitle: Canarycr\n---\n\n# Canarycr\n",
    }
    given = {"NPL_CR_PROJECTS": str(fill_folder(folder, files) / "BAD")}
    flags = (f"--root={folder}/docs", "--log-calls", "contexts")
    with visited(folder, {"all": Permissions(), **ONLY}, *flags, **given) as pages:
        for tool, arguments in cases("npl_mcp/web/safety")["canaries"]:
            done = call(pages.server, tool, arguments, Authorization=f"Bearer {pages.tokens['all']}")
            assert done.status in (200, 404), done.data
        until(lambda: b"Canaryartifact" in pages.get("all", "/usage.json?show=all").body)
        yield pages


@pytest.mark.parametrize("domain", LISTED)
def test_a_token_for_one_domain_learns_nothing_of_others(full: Pages, domain: str) -> None:
    """Tools, pages, resources, prompts and completions."""
    running, tokens = full.server, full.tokens
    owner = {"Authorization": f"Bearer {tokens[f'only-{domain}']}"}
    visitor = Visitor(running, tokens[f"only-{domain}"])
    answers = {str(reading): call(running, *reading, **owner).body for reading in READINGS["tools"]} | {
        str(reading): mcp(running, *reading, **owner).body for reading in READINGS["methods"]
    }
    for page in SHOWN:
        for address in (with_query(page.path), twin(with_query(page.path))):
            answers[address] = visitor.send("GET", address).body
    answers["usage"] = visitor.send("GET", "/usage.json?show=all").body
    files = ("canarynpl",) if domain in ("npl", "utility") else ()
    for asked, body in answers.items():
        told = {match[0].lower() for match in CANARY.finditer(body.decode("utf-8", "replace"))}
        assert {text for text in told if domain != "npl" or text[0] == "c"} <= {f"canary{domain}", *files}, (
            asked
        )
        assert str(running.folder) not in body.decode("utf-8", "replace"), asked
