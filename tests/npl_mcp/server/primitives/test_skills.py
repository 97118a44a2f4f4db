"""Skills over MCP: listed, got and read verbatim under two versions of the protocol, and checked."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from npl_mcp.cli.commands.load import main
from npl_mcp.config.settings import Settings
from tests.conftest import Call
from tests.npl_mcp.http.http_server import META, MODERN
from tests.npl_mcp.server.test_protocol import HELLO, ask, running

PDF = b"""---\r
name: pdf\r
description: Read and fill forms in PDF files.\r
version: 1.10\r
date: 2026-01-01\r
metadata: {author: "a", tags: [x, y]}\r
---\r
\r
# PDF\r
\r
## Fill a form\r
\r
Call fill with the fields of [the list](references/field%20list.md).\r
\r
## Merge files\r
\r
Call merge with the names of the files.\r
"""
FILES = {
    "skills/pdf/SKILL.md": PDF,
    "skills/pdf/references/field list.md": "# Fields – a list\n\nName, date, signature.\n".encode(),
    "skills/pdf/assets/mark.bin": bytes(range(256)),
    "skills/pdf/.hidden": b"x",
    "skills/wrong/SKILL.md": b"---\nname: right\ndescription: Its folder has another name.\n---\n",
}
Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def root(docs: Path) -> Path:
    """A root with a sound skill, and one that is not served."""
    for name, data in FILES.items():
        path = docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (docs / "skills/pdf/link.md").symlink_to(docs / "guide.md")
    return docs


@pytest.fixture(params=["2025-11-25", MODERN])
def said(request: pytest.FixtureRequest, root: Path, tmp_path: Path) -> Iterator[Ask]:
    """Give a function that sends a request to a process and returns its answer."""
    version, number = request.param, iter(range(2, 1_000))
    with running([sys.executable, "-m", "npl_mcp", "--root", str(root)], tmp_path) as process:
        shared: dict[str, Any] = {"_meta": META} if version == MODERN else {}
        if version != MODERN:
            hello = ask(process, 1, "initialize", {**HELLO, "protocolVersion": version})["result"]
            capabilities = hello["capabilities"]
            assert process.stdin is not None
            process.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        else:
            capabilities = ask(process, 1, "server/discover", shared)["result"]["capabilities"]
        assert capabilities["extensions"]["io.modelcontextprotocol/skills"] == {}
        assert "resources" in capabilities

        def send(method: str, **params: Any) -> dict[str, Any]:
            answer = ask(process, next(number), method, {**shared, **params})
            assert ("ttlMs" in answer.get("result", {"ttlMs": 0})) or version != MODERN
            return answer

        yield send


def read(said: Ask, uri: str) -> bytes:
    (content,) = said("resources/read", uri=uri)["result"]["contents"]
    return base64.b64decode(content["blob"]) if "blob" in content else content["text"].encode()


def test_every_digest_is_that_of_the_bytes_that_are_read(said: Ask) -> None:
    """The list is complete, in order, with the bundled skill; front matter is what YAML says."""
    listed = said("skills/list")["result"]["skills"]
    assert [one["uri"] for one in listed] == [
        "skill://npl/load-markdown/SKILL.md",
        "skill://skills/pdf/SKILL.md",
    ]
    for skill in listed:
        assert said("skills/get", uri=skill["uri"])["result"]["skill"] == skill
        for file in skill["resources"]:
            data = read(said, file["uri"])
            assert (len(data), f"sha256:{hashlib.sha256(data).hexdigest()}") == (file["size"], file["digest"])
        front = read(said, skill["uri"]).decode().split("---")[1]
        assert skill["frontmatter"] == json.loads(json.dumps(yaml.load(front, yaml.BaseLoader))) | {
            name: value for name, value in skill["frontmatter"].items() if name == "version"
        }
    assert listed[1]["frontmatter"]["version"] == 1.1
    assert [one["uri"].removeprefix("skill://skills/pdf/") for one in listed[1]["resources"]] == [
        "SKILL.md",
        "assets/mark.bin",
        "references/field%20list.md",
    ]


def test_what_is_not_served_is_an_invalid_parameter(said: Ask) -> None:
    """Another name than that of the folder, a hidden file, a link, no skill at all."""
    for uri in ("skill://skills/wrong/SKILL.md", "skill://gone/SKILL.md", "skill://skills/pdf"):
        assert said("skills/get", uri=uri)["error"]["code"] == -32602
    for path in ("wrong/SKILL.md", "pdf/.hidden", "pdf/link.md", "pdf/../../guide.md"):
        assert said("resources/read", uri=f"skill://skills/{path}")["error"]["code"] == -32602
    assert said("skills/list", cursor="x")["error"]["code"] == -32602


def test_sections_of_a_skill_come_by_its_name(root: Path, settings: Settings, call: Call) -> None:
    """An outline and the needed section, of all Markdown of the skill."""
    outline = call("npl_section_index", file="skill:pdf", depth=3)["data"]
    assert "references/field list.md" in json.dumps(outline)
    assert "Merge files" in json.dumps(outline)
    found = call("npl_load_tailored", file="skill:pdf", context="How do I merge files?", token_budget=450)
    assert "Call merge" in found["data"]["content"]
    chosen = call("npl_load_tailored", selectors=["pdf > ## Merge files"])["data"]
    assert [one["title"] for one in chosen["sections"]] == ["Merge files"]
    assert call("npl_load_tailored", file="skill:load-markdown", context="grep")["success"]
    assert "skill:pdf" in call("npl_section_index", file="skill:pfd")["error"]


# File, its text, and what the check says of it.
WRONG = {
    "no front matter": ("a/SKILL.md", "# A\n", "a/SKILL.md:1: SKILL.md has no front matter"),
    "not YAML": ("a/SKILL.md", "---\nname: a\nb: [\n---\n", "a/SKILL.md:"),
    "a name of capitals": (
        "A/SKILL.md",
        "---\nname: A\ndescription: x\n---\n",
        "A/SKILL.md:2: name has to be",
    ),
    "no description": ("a/SKILL.md", "---\nname: a\n---\n", "a/SKILL.md:2: description has to be"),
    "a dead link": (
        "a/SKILL.md",
        "---\nname: a\ndescription: x\n---\n\nSee [this](gone.md).\n",
        "a/SKILL.md:6: the skill has no file 'gone.md'",
    ),
    "too long": (
        "a/SKILL.md",
        "---\nname: a\ndescription: x\n---\n" + "x\n" * 600,
        "a/SKILL.md:1: 604 lines",
    ),
    "another of this name": (
        "more/pdf/SKILL.md",
        "---\nname: pdf\ndescription: Something else.\n---\n",
        "more/pdf/SKILL.md:2: 2 skills have the name 'pdf'",
    ),
    "a description like another": (
        "a/SKILL.md",
        "---\nname: a\ndescription: Fill forms in PDF files, and read them.\n---\n",
        "a/SKILL.md:3: the description is nearly that of skills/pdf",
    ),
}


@pytest.mark.parametrize(("file", "text", "problem"), WRONG.values(), ids=list(WRONG))
def test_the_check_names_each_problem(
    file: str, text: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its place, and exit code 1; a sound skill has none."""
    for name, data in {"skills/pdf/SKILL.md": PDF, "skills/pdf/references/field list.md": b"# F\n"}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert main(["skill", "check", str(tmp_path)]) == 0
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text, encoding="utf-8")
    assert main(["skill", "check", str(tmp_path)]) == 1
    assert any(problem in line for line in capsys.readouterr().err.splitlines())
