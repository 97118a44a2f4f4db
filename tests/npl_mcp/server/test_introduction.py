"""The instructions and the description of a server."""

import re
from fnmatch import fnmatch
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client

from npl_index import estimator
from npl_mcp.config.domains import LISTED
from npl_mcp.config.settings import Settings
from npl_mcp.server.introduction import ALSO, FIRST, ONLY_REFERENCE, introduction
from npl_mcp.tools.domains import listed_tools
from tests.conftest import cases, with_client
from tests.folders import fill
from tests.programs import Run


def met(settings: Settings, **changes: Any) -> Any:
    async def ask(client: Client[Any]) -> Any:
        return client.instructions, client.server_info, client.server_capabilities

    return with_client(settings, ask, **changes)


def test_instructions_cover_the_domains_in_force(settings: Settings) -> None:
    """All of them cost under 120 tokens, and they mention nothing that is not served."""
    every = met(settings, roots=())[0]
    assert {"npl", *ALSO} == set(LISTED)
    assert all(words in every for words in (FIRST, *ALSO.values()))
    assert estimator("o200k_base").count(every) * 1.04 < 120
    assert met(settings, roots=(), domains=("npl",))[0] == f"{FIRST} {ONLY_REFERENCE}"
    assert met(settings, domains=("cr",))[0] == f"Tools: {ALSO['cr']}."
    assert introduction(()) is None


def test_what_is_not_served_is_counted(settings: Settings, tmp_path: Path, program: Run) -> None:
    """The instructions and two commands count each file once, even if a root lies in another."""
    (root,) = settings.roots
    names = ("a.rst", "b.rst", "c.ipynb", "build/x.md", "build/in/y.md", "plants/local.md", "old.md")
    names += ("plants/sub/p.md", ".drafts/d.md", ".drafts/.in/e.txt", ".git/f.md")
    fill(root, {**dict.fromkeys(names, "# T\n"), ".gitignore": "build/\nlocal.md\n"})
    fill(root, {"plants/.gitignore": "sub\n", ".git/info/exclude": "# Rules\nx\n"})
    (root / "link.md").symlink_to(tmp_path / "nowhere.md")
    told = "3 ignored by .gitignore; 2 .rst; 1 .ipynb; 1 ignored by plants/.gitignore; 1 in .drafts; "
    told += "7 reasons in all"
    roots = (root, root / "plants")
    instructions = met(settings, roots=roots, exclude=("old.md",))[0]
    assert instructions.count(f"Not served: {told}.") == instructions.count("3 documents of") == 1
    flags = ["--data-dir", str(tmp_path / "indexed"), "--exclude", "old.md"]
    for words in (["index", *flags, str(root)], ["doctor", "--root", str(root), *flags]):
        assert program("npl-mcp", *words).out.count(f"not served: {told}") == 1
    assert ".git/info/exclude is not obeyed" in program("npl-mcp", "doctor", "--root", str(root), *flags).out
    every = met(settings, no_gitignore=True)[0]
    assert "8 documents of" in every
    assert "gitignore" not in every


GENERATED = cases("npl_mcp/server/introduction")["generated"]


@pytest.mark.parametrize("kind", GENERATED)
def test_words_of_comments_describe_no_documents(settings: Settings, kind: str) -> None:
    """Generated files have comments against editing."""
    for path in settings.roots[0].rglob("*.md"):
        path.unlink()
    for number in range(6):
        (settings.roots[0] / f"{number}.md").write_bytes(GENERATED[kind].encode())
    assert 'documents of "' in (said := met(settings)[0])
    assert " about Wombats." in said


def test_every_choice_of_domains_is_covered() -> None:
    """Each tool is named by itself or by its domain's pattern; no choice has a longer text than all."""
    for domain in LISTED:
        patterns = re.findall(r"[\w*]*[_*][\w*]*|\Asearch", ALSO.get(domain, FIRST))
        for spec in listed_tools([domain]):
            if domain == "npl" and not spec.always:
                continue  # the list of tools describes those that load NPL prompts
            assert any(fnmatch(spec.name, pattern) for pattern in patterns), spec.name
    most = len(str(introduction(LISTED)))
    for number in range(1, len(LISTED) + 1):
        for chosen in combinations(LISTED, number):
            text = str(introduction(chosen))
            told = [domain for domain in LISTED if ALSO.get(domain, FIRST) in text]
            assert (tuple(told), len(text) <= most) == (chosen, True)


def test_what_hosts_show(settings: Settings) -> None:
    """The server has the address of its pages if it has pages; it sends no log and completes nothing."""
    assert met(settings, web_url="http://127.0.0.1:8765")[1].website_url == "http://127.0.0.1:8765"
    _, info, served = met(settings)
    assert (info.website_url, served.logging, served.completions) == (None, None, None)
