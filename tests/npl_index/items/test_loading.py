"""Loading whole items: the chosen files, their order, and the exact text."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from npl_index.errors import (
    DocumentNotFoundError,
    DocumentTooLargeError,
    InvalidRequestError,
    MissingRequestError,
    NPLError,
    OutsideRootError,
)
from npl_index.items.agents import list_agents
from npl_index.items.loading import (
    ALWAYS_NEEDED,
    declared_components,
    flag_header,
    load,
    load_agent,
    load_raw,
)
from npl_index.library.catalog import Root, make_catalog
from npl_index.library.documents import Library, Limits
from tests.conftest import case_text, cases
from tests.folders import fill

CASES = cases("loading/cases")


def named(case: object) -> str:
    return case["name"] if isinstance(case, dict) else str(case)


def library_at(
    base: Path, files: Mapping[str, str] | None = None, limits: Limits | None = None, **settings: str
) -> Library:
    """A library with a project in ``work``, a user in ``home`` and a bundled corpus in ``corpus``."""
    work = fill(base / "work", files or {})
    catalog = make_catalog(
        cwd=work, home=base / "home", system=base / "system", bundled=base / "corpus", **settings
    )
    return Library([Root(str(work), "working directory")], catalog, limits)


def library_for(case: Mapping[str, Any], base: Path) -> Library:
    """The library of a case: the three trees of the case file, or two of them."""
    fill(base / "home", CASES["trees"]["home"])
    environment = fill(base / "environment", CASES["trees"]["environment"])
    npl_home = environment if case.get("environment") else base / "nonexistent"
    return library_at(
        base, CASES["trees"]["work"], theme=case.get("theme", "default"), npl_home=str(npl_home)
    )


@pytest.mark.parametrize("case", CASES["outputs"], ids=named)
def test_output_to_the_byte(case: dict[str, Any], tmp_path: Path) -> None:
    """Header and content together are what the command has always printed."""
    loaded = load(library_for(case, tmp_path), case["kind"], case["items"], case.get("skip"))
    assert flag_header(loaded.flags) + loaded.content == case["text"]


@pytest.mark.parametrize("case", CASES["choices"], ids=named)
def test_what_is_loaded(case: dict[str, Any], tmp_path: Path) -> None:
    """Names, patterns and skips choose the right items in the right order; the rest is reported."""
    loaded = load(library_for(case, tmp_path), case["kind"], case["items"], case.get("skip"))
    assert [item.name for item in loaded.items] == case["loaded"]
    assert [item.name for item in loaded.missing or ()] == case.get("missing", [])
    assert list(loaded.skipped or ()) == case.get("skipped", [])
    assert list(loaded.flags.values()) == ([",".join(sorted(case["loaded"]))] if case["loaded"] else [])


@pytest.mark.parametrize("case", CASES["sources"], ids=named)
def test_where_it_comes_from(case: dict[str, Any], tmp_path: Path) -> None:
    """Each item names the place it comes from, with path, version and patch."""
    (item,) = load(library_for(case, tmp_path), case["kind"], case["items"]).items
    assert (item.root, item.path) == (case["root"], case["path"])
    assert (item.version, item.patched) == (case["version"], case["patched"])


def test_the_bundled_corpus_comes_last(tmp_path: Path) -> None:
    """It serves only items that no place on the machine has."""
    files = {
        "npl/a.md": "",
        "npl/b.md": "",
        "conventions/default/s.md": "",
        "prompts/p.md": "",
        "npl.md": "core",
    }
    fill(tmp_path / "corpus", files)
    fill(tmp_path / "system", {"npl/b.md": ""})
    library = library_at(tmp_path)
    assert [(item.name, item.root) for item in load(library, "c", "*").items] == [
        ("a", "bundled"),
        ("b", "system"),
    ]
    assert [load(library, kind, "*").items[0].path for kind in ("s", "prompt")] == [
        "conventions/default/s.md",
        "prompts/p.md",
    ]
    assert load_raw(library, "init").content == "core"


def test_missing_items_come_with_near_names(tmp_path: Path) -> None:
    library = library_at(tmp_path, {".npl/npl/syntax.md": "", ".npl/npl/syntax/fill-in.md": ""})
    missing = load(library, "c", "sintax,syntax.fillin,syntx.*").missing
    assert [(item.name, item.near[0]) for item in missing or ()] == [
        ("sintax", "syntax"),
        ("syntax.fillin", "syntax.fill-in"),
        ("syntx.*", "syntax"),
    ]


def test_a_digest_tells_texts_apart(tmp_path: Path) -> None:
    """The digest changes when the item changes and when its patch does, and only then."""
    library = library_at(tmp_path, {".npl/npl/a.md": "one"})
    seen = [load(library, "c", "a").items[0].digest]
    for name, text in (("a.md", "two"), ("a.patch.md", "one"), ("a.patch.md", "two")):
        (tmp_path / "work/.npl/npl" / name).write_text(text)
        seen.append(load(library, "c", "a").items[0].digest)
    assert len(set(seen)) == 4
    assert load(library, "c", "a").items[0].digest == seen[-1]


@pytest.mark.parametrize(
    ("items", "error"),
    [
        *cases("npl_index/items/loading")["items_that_cannot_be_loaded"],
        (",".join(f"a{number}" for number in range(257)), "InvalidRequestError"),
        ("x" * 5000, "InvalidRequestError"),
    ],
)
def test_items_that_cannot_be_loaded(tmp_path: Path, items: str, error: str) -> None:
    """A path out of the roots, an unreadable text and an invalid name are different errors."""
    library = library_at(tmp_path, {".npl/npl/folder.md/x.md": ""})
    fill(tmp_path, {"secret.md": "secret", "evil/s.md": "secret"})
    folder = tmp_path / "work" / ".npl" / "npl"
    (folder / "out.md").symlink_to(tmp_path / "secret.md")
    (folder / "outdir").symlink_to(tmp_path / "evil")
    (folder / "latin.md").write_bytes(b"caf\xe9")
    os.mkfifo(folder / "pipe.md")
    with pytest.raises(NPLError) as raised:
        load(library, "c", items)
    assert type(raised.value).__name__ == error
    assert str(tmp_path) not in str(raised.value)


def test_too_much_text_is_refused(tmp_path: Path) -> None:
    """Items that fit one by one and not together are refused, and so are endless skip lists."""
    library = library_at(tmp_path, {f".npl/npl/{name}.md": "x" * 60 for name in "abc"}, Limits(max_bytes=100))
    assert load(library, "c", "a").content
    with pytest.raises(DocumentTooLargeError):
        load(library, "c", "a,b,c")
    with pytest.raises(InvalidRequestError):
        load(library, "c", "a", "x" * 70_000)
    with pytest.raises(InvalidRequestError):
        load(library, "c", "a", [f"{number}*" for number in range(100)])


def test_a_header_lists_flags_in_fixed_order() -> None:
    """Several loads make one header, components first; nothing loaded makes none."""
    header = flag_header({"npl.prompt.loaded": "p", "npl.style.loaded": "", "npl.def.loaded": "a,b"})
    lines = '@npl.def.loaded+="a,b"\n@npl.prompt.loaded+="p"\n'
    assert header == f"# Flag Update\n\n```🏳️\n\n{lines}\n\n```\n\n\n---\n"
    assert flag_header({}) == flag_header({"npl.def.loaded": ""}) == ""


AGENT = case_text("npl_index/items/loading/agent.md")
AGENT_FILES = {
    ".npl/core/agents/scout.md": AGENT,
    ".npl/npl.md": "# Core\n",
    **{f".npl/npl/{name}.md": f"# {name}\n" for name in ALWAYS_NEEDED},
    **{f".npl/npl/{name}.md": "# x\n" for name in ("pumps/cot", "pumps/mood", "fences/alg", "unused")},
}


def test_an_agent_alone(tmp_path: Path) -> None:
    """An agent is its file behind a line with its name; it sets no flag."""
    loaded = load_agent(library_at(tmp_path, AGENT_FILES), "scout")
    assert loaded.content == f"# agent:scout:\n{AGENT}"
    assert loaded.flags == {}
    assert [(item.name, item.kind, item.version) for item in loaded.items] == [("scout", "agent", "2.10")]


def test_an_agent_with_its_definition(tmp_path: Path) -> None:
    """The definition adds the core reference, what agents always need, and what this one declares."""
    loaded = load_agent(library_at(tmp_path, AGENT_FILES), "scout", with_definition=True)
    needed = [*ALWAYS_NEEDED, "pumps.cot", "fences.alg", "pumps.mood"]
    assert [item.name for item in loaded.items] == ["scout", "npl", *needed]
    assert [item.name for item in loaded.missing or ()] == ["nosuch"]
    assert loaded.flags == {"npl.def.loaded": ",".join(sorted(needed))}
    assert loaded.content.startswith(f"# agent:scout:\n{AGENT}\n---\n\n# NPL Definition for scout\n\n")
    headings = re.findall(r"^## (.*)$", loaded.content, re.MULTILINE)
    assert headings == ["Core NPL Framework", *(f"Component: {name}" for name in needed)]
    assert "## Core NPL Framework\n\n# Core\n" in loaded.content
    assert "## Component: syntax\n\n# syntax\n" in loaded.content


def test_a_definition_without_its_parts(tmp_path: Path) -> None:
    """Missing parts are reported; the agent is returned all the same."""
    loaded = load_agent(
        library_at(tmp_path, {".claude/agents/scout.md": "text"}), "scout", with_definition=True
    )
    assert [item.name for item in loaded.items] == ["scout"]
    assert [item.name for item in loaded.missing or ()] == ["npl", *ALWAYS_NEEDED]
    assert loaded.flags == {}


@pytest.mark.parametrize(("text", "names"), cases("npl_index/items/loading")["declared_components"])
def test_declared_components(text: str, names: list[str]) -> None:
    """Commands and tool calls that load components are read; other kinds and stand-ins are not."""
    assert list(declared_components(text)) == names


def test_an_agent_that_is_not_there(tmp_path: Path) -> None:
    """An unknown agent is an error with similar names; a path is no name."""
    library = library_at(tmp_path, AGENT_FILES)
    with pytest.raises(DocumentNotFoundError) as raised:
        load_agent(library, "scoot")
    assert raised.value.near == ("scout",)
    with pytest.raises(OutsideRootError):
        load_agent(library, "/etc/passwd")


def test_agents_are_listed(tmp_path: Path) -> None:
    files = {
        **AGENT_FILES,
        ".claude/agents/scout.md": "---\nname: mine\n---\n",
        ".npl/core/agents/b.md": AGENT,
    }
    library = library_at(tmp_path, files)
    (tmp_path / "work/.npl/core/agents/broken.md").write_bytes(b"\xff")
    agents = {agent.name: agent for agent in list_agents(library)}
    assert list(agents) == ["b", "broken", "scout"]
    assert dict(agents["b"].fields) == {
        "name": "other-name",
        "description": "Looks\naround\n",
        "version": "2.10",
        "categories": ["search", "review"],
    }
    assert dict(agents["broken"].fields) == {}


def test_raw_items(tmp_path: Path) -> None:
    """A schema and the core reference come as they are; a schema that is not there is an error."""
    library = library_at(tmp_path, {".npl/core/schema/s.sql": "create table s(x);\n", ".npl/npl.md": "# N\n"})
    assert load_raw(library, "schema", "s").content == "create table s(x);\n"
    assert load_raw(library, "init").content == "# N\n"
    with pytest.raises(DocumentNotFoundError):
        load_raw(library, "schema", "t")
    with pytest.raises(MissingRequestError):
        load_raw(library, "schema")


RECORDED = cases("predecessor/load")
PRINTING = [
    case
    for case in RECORDED["cases"]
    if not case["exit"] and case["argv"][0] != "syntax" and "--list" not in case["argv"]
]
MASKS = [(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>"), (r"\d{4}-\d\d-\d\d", "<date>")]


def printed(library: Library, arguments: list[str]) -> str:
    """Return the output of a command line of the predecessor, made with this library."""
    command, *rest = [argument for argument in arguments if argument != "--quiet"]
    if command == "agent":
        return load_agent(library, rest[0]).content
    if command in ("init", "schema"):
        return load_raw(library, command, *rest).content
    items: list[str] = []
    skip = ""
    words = iter(rest)
    for word in words:
        if word == "--skip":
            skip = next(words)
        else:
            items.append(word)
    loaded = load(library, command, items, skip)
    return flag_header(loaded.flags) + ("" if "--quiet" in arguments else loaded.content)


@pytest.mark.parametrize("case", PRINTING, ids=lambda case: case["name"])
def test_prints_what_the_predecessor_printed(case: dict[str, Any], tmp_path: Path) -> None:
    """Recorded runs of the predecessor give the same bytes."""
    work, home = (
        RECORDED["fixtures"][tree] if isinstance(tree, str) else tree
        for tree in (case["fixture"], case["home_fixture"])
    )
    fill(tmp_path / "home", home)
    settings = {name.lower().replace("npl_theme", "theme"): value for name, value in case["env"].items()}
    text = printed(library_at(tmp_path, work, **settings), case["argv"])
    for pattern, mask in MASKS:
        text = re.sub(pattern, mask, text)
    assert text == case["stdout"]
