"""Pages of search: what a caller may not see is neither shown nor counted."""

from collections.abc import Iterator

import pytest

from npl_mcp.stores.access import Permissions
from npl_mcp.web.pages.search import TITLES
from tests import engines
from tests.npl_mcp.web.browsing import Pages, visited, without

DOMAINS = {"document": "npl", "message": "chat", "worklog": "worklog", "artifact": "artifact", "cr": "cr"}
CR = (
    "---\ncode: {0}-001\ntitle: One\nstatus: Proposed\ntype: Bug Fix\npriority: Low\n---\n# One\n\nCapstan.\n"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    folder = tmp_path_factory.mktemp("site")
    files = {}
    for name, code in (("docs", "DOC"), ("more", "MOR")):
        config = f'[project]\ncode = "{code}"\nname = "{name}"\nticketsPath = "crs"\n'
        files[f"{name}/{name}.md"] = f"# {name}\n\nThe capstan of {name}.\n"
        files |= {f"{name}/.mdt-config.toml": config, f"{name}/crs/{code}-001-one.md": CR.format(code)}
    docs = Permissions(roots=(str(folder / "docs"),))
    sights = {"all": Permissions(), "docs": docs, **without(*DOMAINS.values(), "search")}
    with visited(folder, sights, files=files) as made:
        text = {"filename": "a.md", "content": "# A\n\nA capstan.\n"}
        made.call("all", "chat_create_room", name="r", members=["all"])
        made.call("all", "chat_send_message", room_id=1, message="The <b>capstan</b> \u202e sticks.")
        made.call("all", "worklog_init", session_id="w")
        made.call("all", "worklog_log", action="done", summary="Oiled the capstan.")
        for name in ("a", "b"):
            made.call("all", "artifact_create", name=name, artifact_type="document", **text)
        engines.execute(folder / "data", "UPDATE revision SET digest = '00' WHERE artifact_id = 2")
        yield made


def test_every_kind_has_a_title() -> None:
    assert list(TITLES) == list(DOMAINS)


@pytest.mark.parametrize("kind", DOMAINS)
def test_a_hidden_kind_is_not_counted(site: Pages, kind: str) -> None:
    every = site.data("all", "/search?q=capstan")
    seen = site.data(f"no-{DOMAINS[kind]}", "/search?q=capstan")
    expected = {name: number for name, number in every["counts"].items() if name != kind}
    if kind == "cr":  # whose files lie in folders that the caller sees
        expected["document"] += every["counts"]["cr"]
    assert seen["counts"] == expected
    assert seen["total"] == sum(expected.values())
    assert {hit["kind"] for hit in seen["items"]} == DOMAINS.keys() - {kind}
    assert site.data(f"no-{DOMAINS[kind]}", f"/search?q=capstan&kind={kind}")["total"] == 0
    assert kind not in {act["kind"] for act in site.data(f"no-{DOMAINS[kind]}", "/index")["at_work"]}


def test_hidden_folders_are_not_counted(site: Pages) -> None:
    def files(who: str) -> tuple[int, set[str]]:
        answer = site.data(who, "/search?q=capstan&kind=document&kind=cr")
        return answer["total"], {hit["file"] for hit in answer["items"]}

    every, seen = files("all"), files("docs")
    assert every[0] == 2 * seen[0]
    assert seen[1] == {"docs.md", "cr:DOC-001"}
    start = site.data("docs", "/index")
    assert "docs:" in {place["address"] for place in start["places"]}
    assert "more:" not in {place["address"] for place in start["places"]}


def test_a_reader_without_searches_still_has_a_first_page(site: Pages) -> None:
    page = site.get("no-search", "/")
    assert page.status == 200
    assert b'action="/search"' not in page.body
    assert site.get("no-search", "/search?q=capstan").status == 404


def test_what_was_found_is_text(site: Pages) -> None:
    page = site.get("all", "/search?q=%3Cb%3Ecapstan&kind=message").body.decode()
    assert "The &lt;b&gt;<mark>capstan</mark>&lt;/b&gt;" in page
    assert "\u202e" not in page
    assert 'href="/rooms/1?event=2#event-2"' in page


def test_what_was_not_searched_is_said(site: Pages) -> None:
    said = b"Not searched: 1 of artifact:*, such as artifact:2@0"
    assert said in site.get("all", "/search?q=capstan").body
    assert b"Not searched" not in site.get("no-artifact", "/search?q=capstan").body


def test_the_last_word_may_be_a_beginning(site: Pages) -> None:
    whole, begun = (site.data("all", f"/search?q=the+{word}") for word in ("capstan", "capst"))
    assert begun["items"] == whole["items"]
    assert begun["completed"].lower() == "capstan"


def test_hits_lead_to_pages(site: Pages) -> None:
    page = site.get("all", "/search?q=capstan").body.decode()
    hits = page.partition('<ul class="list hits"')[2]
    links = [part.partition('"')[0] for part in hits.split('href="')[1:]]
    assert len(links) == site.data("all", "/search?q=capstan")["total"]
    for link in links:
        assert site.get("all", link.partition("#")[0]).status == 200, link
