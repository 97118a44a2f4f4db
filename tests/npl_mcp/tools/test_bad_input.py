"""Hostile and mistaken input ends in a clear error or the right answer, and the server lives on."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from npl_index.tokens.estimated import estimator
from npl_mcp.config.settings import Settings
from tests.conftest import Call, Connect, cases, client_of

MiB = 1 << 20


def write(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda docs: (docs / name).write_bytes(content) and None


def link(name: str, target: str) -> Callable[[Path], None]:
    return lambda docs: (docs / name).symlink_to(target)


def directory(docs: Path) -> None:
    (docs / "x.md").mkdir()


def nothing(docs: Path) -> None:
    pass


FILES = {
    "missing": (nothing, "gide.md", "NOT_FOUND", "near: guide"),
    "directory": (directory, "x.md", "NOT_FOUND", "contains no Markdown"),
    "binary": (write("b.md", b"# A\n\0\1\2"), "b.md", "FILE_SYSTEM_ERROR", "binary"),
    "not UTF-8": (write("l.md", "# Größe\n".encode("latin-1")), "l.md", "FILE_SYSTEM_ERROR", "not UTF-8"),
    "50 MB": (write("big.md", b"# A\n" + b"word " * (10 * MiB)), "big.md", "OPERATION_FAILED", "larger than"),
    "100,000 headings": (
        write("h.md", b"# A\n" * 100_000),
        "h.md",
        "OPERATION_FAILED",
        "more than 20000 sections",
    ),
    "climbing": (nothing, "../guide.md", "PERMISSION_DENIED", "outside the search roots"),
    "climbing late": (nothing, "a/../../guide.md", "PERMISSION_DENIED", "outside the search roots"),
    "absolute": (nothing, "/etc/passwd", "PERMISSION_DENIED", "outside the search roots"),
    "NUL": (nothing, "guide.md\0.png", "INVALID_PARAMETER", "control characters"),
    "link out": (link("out.md", "/etc/hostname"), "out.md", "PERMISSION_DENIED", "outside the search roots"),
    "link to nowhere": (link("void.md", "nowhere.md"), "void.md", "NOT_FOUND", "no document"),
    "not Markdown": (write("a.txt", b"text"), "a.txt", "", ""),
    "long name": (nothing, "x" * 5000, "INVALID_PARAMETER", "5,000 characters"),
    "backslashes": (nothing, "..\\guide.md", "PERMISSION_DENIED", "outside the search roots"),
    "percent": (nothing, "%2e%2e/guide.md", "NOT_FOUND", "no document"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_cannot_be_used_is_named(call: Call, docs: Path, case: str) -> None:
    """The error has the right code, says why, and gives no path away."""
    prepare, file, code, text = FILES[case]
    prepare(docs)
    for tool, more in (("npl_section_index", {}), ("npl_load_tailored", {"context": "anything"})):
        answer = call(tool, file=file, **more)
        assert answer["success"] is False
        assert answer["error_code"] == code or (
            not code and answer["error_code"] in ("NOT_FOUND", "FILE_SYSTEM_ERROR")
        )
        assert text in answer["error"]
        assert str(docs.parent) not in answer["error"]
        assert call(tool, file="guide.md", **more)["success"] is True


HOSTILE = {
    "one line of 5 MB": b"# A\n\n" + b"word " * MiB + b"\n",
    "nested quotes": b">" * 10_000 + b" deep\n\n# After\n",
    "nested lists": b"".join(b"  " * n + b"- x\n" for n in range(2_000)) + b"\n# After\n",
    "list markers": b"- " * 10_000 + b"deep\n\n# After\n",
    "brackets": b"# " + b"[" * 200_000 + b"\n",
    "tall table": b"# A\n\n|a|b|\n|-|-|\n" + b"|1|2|\n" * 50_000,
    "wide table": b"# A\n\n" + b"|a" * 5_000 + b"|\n" + b"|-" * 5_000 + b"|\n" + b"|1|\n" * 2_000,
    "one fence": b"# A\n\n```\n" + b"# no heading\n" * 100_000,
    "backticks": b"# A\n\n" + b"`" * 500_000 + b"\n",
    "definition marks": b"# A\n\nterm\n" + b": text\n" * 50_000,
    "front matter": b"---\n" + b"a: b\n" * 200_000 + b"---\n# A\n",
    "empty": b"",
    "only blank lines": b"\n" * 100_000,
    "no heading": b"Just text about pruning.\n",
    "lone carriage returns": b"# A\r\rtext\r\r## B\r\rtext\r",
    "byte order mark": b"\xef\xbb\xbf# A\n\ntext\n",
    "one repeated letter": b"# A\n\n" + b"a" * 2_000_000 + b"\n",
}


@pytest.mark.thorough
@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_text_ends_in_an_answer_or_a_clear_error(
    settings: Settings, docs: Path, connect: Connect, case: str
) -> None:
    """No text ends the server, and none is worked on long beyond the time limit."""
    (docs / "hostile.md").write_bytes(HOSTILE[case])
    call = connect(replace(settings, time_limit=5.0))
    asked = {"file": "hostile.md", "context": "text about pruning", "token_budget": 50}
    hostile = [call("npl_section_index", file="hostile.md"), call("npl_load_tailored", **asked)]
    last = call.do("npl_load_tailored", file="guide.md", context="pruning")
    for answer in hostile:
        assert answer["success"] or answer["error_code"] == "OPERATION_FAILED", answer
    if hostile[1]["success"]:
        assert hostile[1]["data"]["total_tokens"] <= 50
    assert last["sections"][0]["title"] == "Pruning"


@pytest.mark.thorough
async def test_other_callers_are_served_while_a_hostile_file_is_read(settings: Settings, docs: Path) -> None:
    """Indexing runs outside the event loop: a small call overtakes a large one."""
    (docs / "hostile.md").write_bytes(HOSTILE["tall table"] * 4)
    order: list[str] = []

    async with client_of(settings) as client:
        await client.call_tool("npl_section_index", {"file": "guide.md"})

        async def ask(name: str, file: str) -> None:
            await client.call_tool("npl_section_index", {"file": file}, raise_on_error=False)
            order.append(name)

        async with anyio.create_task_group() as group:
            group.start_soon(ask, "hostile", "hostile.md")
            await anyio.wait_all_tasks_blocked()
            group.start_soon(ask, "small", "guide.md")
    assert order == ["small", "hostile"]


ARGUMENTS: dict[str, tuple[dict[str, Any], str, str]] = {
    **cases("npl_mcp/tools/bad_input")["arguments"],
    "selector of 1 MB": ({"selectors": ["## " + "x" * MiB]}, "INVALID_PARAMETER", "4096 characters"),
    "many selectors": ({"selectors": ["## A"] * 100}, "INVALID_PARAMETER", "at most 64"),
    "many topics": ({"topics": ["a"] * 100}, "INVALID_PARAMETER", "at most 64"),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_an_argument_that_cannot_be_used_is_named(call: Call, case: str) -> None:
    """The error has a code, names the parameter and shows what to write."""
    arguments, code, text = ARGUMENTS[case]
    refused, said = call.refused("npl_load_tailored", **{"file": "guide.md", **arguments})
    assert (refused, text in said) == (code, True), said


@pytest.mark.parametrize("budget", [1, 7, 2**31, 2**53])
def test_every_whole_budget_is_a_budget(call: Call, budget: int) -> None:
    """Any number from one up is accepted; zero means no limit."""
    asked = {"file": "guide.md", "context": "pruning trees", "token_budget": budget}
    assert call.do("npl_load_tailored", **asked)["total_tokens"] <= budget


def test_a_context_of_ten_megabytes_is_answered(call: Call) -> None:
    context = "prune fruit trees in winter. " + "lorem ipsum dolor " * (10 * MiB // 18)
    data = call.do("npl_load_tailored", file="guide.md", context=context)
    assert data["sections"][0]["title"] == "Pruning"


def test_a_file_that_vanishes_is_reported(call: Call, docs: Path) -> None:
    call.do("npl_section_index", file="guide.md")
    (docs / "guide.md").unlink()
    assert call.refused("npl_section_index", file="guide.md")[0] == "NOT_FOUND"


def test_a_file_of_a_folder_that_vanishes_is_named(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """It vanishes after the listing; the answer has the others and names it."""
    look = os.stat

    def late(path: Any, **named: Any) -> os.stat_result:
        if str(path).endswith("roses.md"):
            raise FileNotFoundError(path)
        return look(path, **named)

    load = partial(call.do, "npl_load_tailored", file="plants", context="sow beans")
    assert "unreadable" not in load()
    monkeypatch.setattr(os, "stat", late)
    monkeypatch.setattr(os, "lstat", partial(late, follow_symlinks=False))
    data = load()
    assert data["unreadable"] == ["plants/roses.md: the file was removed"]
    assert data["sections"][0]["file"] == "plants/beans.md"


def test_one_bad_file_does_not_spoil_a_folder(call: Call, docs: Path) -> None:
    (docs / "plants" / "bad.md").write_bytes(b"\xff\xfe")
    answer = call.do("npl_section_index", file="plants")
    assert [node["name"] for node in answer["sections"]] == ["plants/beans.md", "plants/roses.md"]
    (left_out,) = answer["unreadable"]
    assert left_out.startswith("plants/bad.md: ")
    assert "not UTF-8" in left_out
    tailored = call.do("npl_load_tailored", file="plants", context="roses")
    assert tailored["unreadable"] == [left_out]
    assert tailored["sections"][0]["file"] == "plants/roses.md"


@pytest.mark.parametrize("form", ["json", "markdown"])
@pytest.mark.parametrize("budget", [250, 1_000])
def test_hundreds_of_remarks_leave_the_budget_to_the_sections(
    call: Call, docs: Path, budget: int, form: str
) -> None:
    """Bad files and selectors are named within a part of the budget, and the others counted."""
    for number in range(100):
        (docs / f"bad{number}.md").write_bytes(b"# \xff\n")
    nowhere = [f"## Nowhere {number}" for number in range(60)]
    for request in ({"context": "prune roses"}, {"selectors": ["## Sowing", *nowhere]}):
        text = call.text("npl_load_tailored", **request, token_budget=budget, format=form)
        assert estimator("o200k_base").count(text) <= budget
        assert "files left out" in text
        assert ("Cut above" if "context" in request else "Sow beans") in text
        assert ("selectors found nothing" in text) is ("selectors" in request)


MISTAKES: list[tuple[str, dict[str, Any], str | None]] = cases("npl_mcp/tools/bad_input")["mistakes"]


def test_an_error_names_the_argument_that_cannot_be_used(call: Call) -> None:
    """A program need not search the message for it; other errors have none."""
    answers = [call(tool, **given) for tool, given, _ in MISTAKES]
    assert [answer.get("parameter") for answer in answers] == [name for *_, name in MISTAKES]
    assert not any(answer["success"] for answer in answers)
