"""Promises of the artifact tools, as an MCP client sees them."""

import base64
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from npl_mcp.config.settings import Settings
from tests import engines
from tests.conftest import Call, calls, cases

Request = tuple[str, dict[str, Any]]

CASES = cases("npl_mcp/tools/artifact")

FILES = 2 if engines.ENGINE == "sqlite" else 0
"""Files of a revision after an answer has named them."""


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def create(name: str = "plan", content: bytes = b"one\n", **more: Any) -> Request:
    given = {"artifact_type": "document", "filename": "plan.md"} | more
    return "artifact_create", {"name": name, "file_content_base64": encoded(content)} | given


def revise(content: bytes = b"two\n", **more: Any) -> Request:
    given = {"artifact_id": 1, "filename": "plan.md"} | more
    return "artifact_add_revision", {"file_content_base64": encoded(content)} | given


def get(revision: int | None = None) -> Request:
    more = {} if revision is None else {"revision": revision}
    return "artifact_get", {"artifact_id": 1, "text": False, **more}


def history(**more: Any) -> Request:
    return "artifact_history", {"artifact_id": 1} | more


def kept_files(settings: Settings) -> list[str]:
    """Every file below the artifacts folder, as a path in it."""
    folder = engines.files(settings.data_folder)
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def copy_of(settings: Settings, stored: dict[str, Any], filename: str = "plan.md") -> Path:
    """Return the path of a revision's file, which answers name."""
    folder = engines.files(settings.data_folder) / str(stored["artifact_id"])
    path = folder / f"revision-{stored['revision_num']}-{filename}"
    assert stored["file_path"] == str(path)
    return path


@pytest.mark.engine("sqlite")
def test_an_artifact_begins_with_revision_0(settings: Settings) -> None:
    """The answer names two files, which have the content and its description."""
    data = calls(settings, [create("A plan", b"hello", filename="plan v1.md", created_by="amy")])[0]["data"]
    folder = engines.files(settings.data_folder) / "1"
    file, meta = copy_of(settings, data, "plan v1.md"), folder / "revision-0.meta.md"
    assert data == {
        "artifact_id": 1,
        "artifact_name": "A plan",
        "artifact_type": "document",
        "revision_id": 1,
        "revision_num": 0,
        "file_path": str(file),
        "meta_path": str(meta),
    }
    assert file.read_bytes() == b"hello"
    assert kept_files(settings) == ["1/revision-0-plan v1.md", "1/revision-0.meta.md"]


def test_the_former_name_gives_the_file_in_base64(settings: Settings) -> None:
    _, answer = calls(settings, [create(), ("get_artifact", {"artifact_id": 1})])
    assert answer["data"]["file_content"] == encoded(b"one\n")


def test_a_description_is_front_matter_and_notes(settings: Settings) -> None:
    """Keys keep their order, values their form; the unchanged notes follow."""
    hostile = "x: y --- # \"'{[ \u200b"
    requests = [
        create(hostile, created_by=hostile, purpose="Draft"),
        revise(notes="First line\n---\nlast: line"),
        get(0),
        get(1),
    ]
    first, second = (answer["data"] for answer in calls(settings, requests)[2:])
    start, fields, rest = first["metadata"].split("---\n", 2)
    assert (start, rest) == ("", "\n")
    assert yaml.safe_load(fields) == {
        "artifact_name": hostile.strip(),
        "created_at": first["created_at"],
        "created_by": hostile.strip(),
        "filename": "plan.md",
        "purpose": "Draft",
        "revision": 0,
    }
    keys = [line.split(":")[0] for line in fields.splitlines()]
    assert keys == sorted(keys)
    assert "created_by: unknown\n" in second["metadata"]
    assert second["metadata"].endswith("---\n\n# Notes\n\nFirst line\n---\nlast: line\n")


@pytest.mark.parametrize(("change", "code", "said"), CASES["what_is_refused_leaves_nothing_behind"])
def test_what_is_refused_leaves_nothing_behind(
    settings: Settings, change: dict[str, Any], code: str, said: str
) -> None:
    """It leaves no artifact and no file; the name can still be used."""
    tool, arguments = create()
    refused, listed, made = calls(settings, [(tool, arguments | change), ("artifact_list", {}), create()])
    assert refused["error_code"] == code
    assert said in refused["error"]
    assert listed["data"]["total"] == 0
    assert made["data"]["artifact_id"] == 1
    assert len(kept_files(settings)) == FILES


@pytest.mark.parametrize(
    ("request_", "code", "said"),
    [
        (create(content=b"x"), "ALREADY_EXISTS", "artifact 1"),
        (revise(artifact_id=99), "ARTIFACT_NOT_FOUND", "artifact_list"),
        (("artifact_get", {"artifact_id": 99}), "ARTIFACT_NOT_FOUND", "artifact_list"),
        (history(artifact_id=99), "ARTIFACT_NOT_FOUND", "artifact_list"),
        (get(2), "NOT_FOUND", "0 to 1"),
        (get(-1), "INVALID_PARAMETER", "revision"),
        (("artifact_get", {"artifact_id": 0}), "INVALID_PARAMETER", "artifact_id"),
        (("artifact_get", {"artifact_id": 2**63}), "INVALID_PARAMETER", "artifact_id"),
        (get(2**64), "INVALID_PARAMETER", "revision"),
        (history(limit=0), "INVALID_PARAMETER", "limit"),
        (("artifact_list", {"offset": -1}), "INVALID_PARAMETER", "offset"),
        (revise(notes=" "), "MISSING_REQUIRED", "notes"),
        (revise(notes="a\x00b"), "INVALID_PARAMETER", "notes"),
    ],
)
def test_errors_say_what_is_there(settings: Settings, request_: Request, code: str, said: str) -> None:
    *_, before, answer, after = calls(settings, [create(), revise(), history(), request_, history()])
    assert answer["error_code"] == code
    assert said in answer["error"]
    assert before == after
    assert len(kept_files(settings)) == 2 * FILES


def test_base64_is_strict(settings: Settings) -> None:
    """Content must have the one form of RFC 4648 (section 4); nothing is skipped or guessed."""
    tool, arguments = create()
    requests = [(tool, arguments | {"file_content_base64": text}) for text in CASES["wrong_base64"]]
    *refused, right = calls(settings, [*requests, create(content=b"Hello")])
    assert {answer.get("error_code") for answer in refused} == {"INVALID_PARAMETER"}
    assert all("SGVsbG8=" in answer["error"] for answer in refused)
    assert right["data"]["artifact_id"] == 1


def test_the_size_of_a_file_is_capped(settings: Settings) -> None:
    requests = [*(create(content=b"x" * size) for size in (11, 10)), *(revise(b"x" * at) for at in (11, 12))]
    answers = calls(replace(settings, max_artifact_bytes=10), requests)
    told = [answer.get("error", "stored") for answer in answers]
    assert [text.split(";")[0] for text in told] == [
        "the file has 11 bytes",
        "stored",
        "the file has 11 bytes",
        "the file has 12 bytes",
    ]
    assert {answer.get("error_code") for answer in answers} == {None, "INVALID_PARAMETER"}
    assert "NPL_MAX_ARTIFACT_BYTES" in told[0]


WRONG_FILENAMES = (*CASES["wrong_filenames"], "x" * 201, "堆" * 70)


def test_filenames_cannot_leave_the_store(settings: Settings) -> None:
    """An invalid filename is refused and makes no file anywhere."""
    before = set(settings.cwd.parent.rglob("*"))
    tool, arguments = create()
    answers = calls(settings, [(tool, arguments | {"filename": name}) for name in WRONG_FILENAMES])
    for name, answer in zip(WRONG_FILENAMES, answers, strict=True):
        assert (answer.get("error_code"), "filename" in answer["error"]) == ("INVALID_PARAMETER", True), name
    assert set(settings.cwd.parent.rglob("*")) == before


@pytest.mark.engine("sqlite")
def test_a_file_has_its_name_in_a_folder_with_the_number_of_its_artifact(settings: Settings) -> None:
    """Letters of any language, digits and a few signs stay; the artifact may have any name."""
    pairs = [*CASES["names"], ("x" * 200, "x" * 200)]
    made = calls(settings, [create(name, filename=filename) for name, filename in pairs])
    for (name, filename), answer in zip(pairs, made, strict=True):
        assert answer["data"]["artifact_name"] == name
        assert copy_of(settings, answer["data"], filename).read_bytes() == b"one\n"
    assert {path.split("/")[0] for path in kept_files(settings)} == set("1234567")


@pytest.mark.engine("sqlite")
@pytest.mark.parametrize("harm", ["gone", "changed", "longer", "link", "no description"])
def test_a_file_that_is_not_what_was_stored_is_made_again(settings: Settings, harm: str) -> None:
    """Its changed text is not returned, and the target of a link stays."""
    made = calls(settings, [create(), revise()])
    file = copy_of(settings, made[1]["data"])
    meta = file.with_name("revision-1.meta.md")
    before = file.read_bytes(), meta.read_bytes()
    secret = settings.cwd / "secret"
    secret.write_bytes(b"two, too\n")
    if harm == "changed":
        file.write_bytes(b"2wo\n")
    elif harm == "longer":
        file.write_bytes(b"two\n" * 1000)
    elif harm == "no description":
        meta.unlink()
    else:
        file.unlink()
        if harm == "link":
            file.symlink_to(secret)
    (given,) = calls(settings, [get(1)])
    assert base64.b64decode(given["data"]["file_content"]) == before[0]
    assert (file.read_bytes(), meta.read_bytes()) == before
    assert secret.read_bytes() == b"two, too\n"
    assert not file.is_symlink()


@pytest.mark.engine("sqlite")
def test_a_folder_that_is_a_link_is_not_followed(settings: Settings) -> None:
    """Nothing is written to its target; contents are returned, and no answer names their files."""
    calls(settings, [create()])
    folder, elsewhere = engines.files(settings.data_folder) / "1", settings.cwd / "elsewhere"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    before = {path: path.read_bytes() for path in elsewhere.iterdir()}
    added, got, other = calls(settings, [revise(), get(), create("other")])
    assert {"file_path", "meta_path"}.isdisjoint({*added["data"], *got["data"]})
    assert base64.b64decode(got["data"]["file_content"]) == b"two\n"
    assert copy_of(settings, other["data"]).read_bytes() == b"one\n"
    assert {path: path.read_bytes() for path in elsewhere.iterdir()} == before


@pytest.mark.engine("sqlite")
def test_a_call_works_again_when_its_folder_does(settings: Settings, call: Call) -> None:
    """A file replaces the folder and is removed again, under one server."""
    place = settings.data_folder
    engines.unused(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("in the way")
    (tool, arguments), (reading, which) = create(), get()
    failed = call(tool, **arguments)
    place.unlink()
    listed, made, got = call("artifact_list"), call(tool, **arguments), call(reading, **which)
    assert failed["error_code"] == "DATABASE_ERROR"
    assert str(settings.data_folder) not in failed["error"]
    assert listed["data"]["total"] == 0
    assert made["data"]["artifact_id"] == 1
    assert base64.b64decode(got["data"]["file_content"]) == b"one\n"


TEXT = "堆肥\r\nand \ttabs 😀\n"


def plain(content: str, name: str = "plan", **more: Any) -> Request:
    given = {"artifact_type": "document", "filename": "plan.md"} | more
    return "artifact_create", {"name": name, "content": content} | given


def test_text_comes_and_goes_as_it_is(settings: Settings) -> None:
    """Text is kept byte for byte; only a caller that asks for base64 gets it."""
    revision = ("artifact_add_revision", {"artifact_id": 1, "content": "new", "filename": "plan.md"})
    first = ("artifact_get", {"artifact_id": 1, "revision": 0})
    made, got, coded, revised, newest = calls(
        settings, [plain(TEXT), first, get(0), revision, ("artifact_get", {"artifact_id": 1})]
    )
    if engines.ENGINE == "sqlite":
        assert copy_of(settings, made["data"]).read_bytes() == TEXT.encode()
    assert (got["data"]["content"], "file_content" in got["data"]) == (TEXT, False)
    assert (coded["data"]["file_content"], "content" in coded["data"]) == (encoded(TEXT.encode()), False)
    assert (revised["data"]["revision_num"], newest["data"]["content"]) == (1, "new")


UNUSABLE_CONTENTS: dict[str, tuple[dict[str, Any], str]] = {
    "neither": ({}, "MISSING_REQUIRED"),
    "empty": ({"content": ""}, "MISSING_REQUIRED"),
    "both": ({"content": "x", "file_content_base64": "eA=="}, "INVALID_PARAMETER"),
    "half a character": ({"content": "\ud800"}, "INVALID_PARAMETER"),
    "too long": ({"content": "x" * 65}, "INVALID_PARAMETER"),
    "too many bytes": ({"content": "é" * 33}, "INVALID_PARAMETER"),
}


@pytest.mark.parametrize("case", UNUSABLE_CONTENTS)
@pytest.mark.parametrize("tool", ["artifact_create", "artifact_add_revision"])
def test_a_content_is_given_once(settings: Settings, tool: str, case: str) -> None:
    arguments, code = UNUSABLE_CONTENTS[case]
    more = {"name": "n", "artifact_type": "t"} if tool == "artifact_create" else {"artifact_id": 1}
    request = (tool, {**more, "filename": "a.md", **arguments})
    _, answer, listed, kept = calls(
        replace(settings, max_artifact_bytes=64), [plain("a"), request, ("artifact_list", {}), history()]
    )
    assert answer["error_code"] == code, answer
    assert (listed["data"]["total"], kept["data"]["total"]) == (1, 1)


def test_an_archived_artifact_is_read_and_takes_nothing(settings: Settings) -> None:
    """It is in no list and no set of documents, and comes back as it was."""
    archive = ("artifact_archive", {"artifact_id": 1})
    back = ("artifact_archive", {"artifact_id": 1, "archived": False})
    lists: list[Request] = [("artifact_list", {}), ("artifact_list", {"archived": True})]
    documents = ("npl_section_index", {"file": "artifact:*"})
    review = ("review_create", {"artifact_id": 1, "revision_id": 1, "reviewer_persona": "amy"})
    before: list[Request] = [plain("# One\n", "one"), plain("# Two\n", "two"), documents, archive, archive]
    refused: list[Request] = [revise(), review, plain("# One\n", "one")]
    requests = [*before, *lists, documents, *refused, get(), back, back, *lists, documents, revise(), review]
    answers = calls(settings, requests)
    (_, _, both, archived, again, listed, apart, alone, revised, reviewed, taken, got) = answers[:12]
    assert archived["data"] == again["data"]
    assert archived["data"]["artifact_name"] == "one"
    pages = [
        ([row["id"] for row in page["data"]["items"]], page["data"]["total"]) for page in (listed, apart)
    ]
    assert pages == [([2], 1), ([1], 1)]
    assert [row["name"] for row in both["data"]["sections"]] == ["artifact:1@0", "artifact:2@0"]
    assert [row["name"] for row in alone["data"]["sections"]] == ["artifact:2@0"]
    for answer in (revised, reviewed):
        assert (answer["error_code"], "artifact_archive" in answer["error"]) == ("OPERATION_FAILED", True)
    assert taken["error_code"] == "ALREADY_EXISTS"
    assert got["success"]
    (returned, _, listed, apart, every, revised, reviewed) = answers[12:]
    assert returned["data"] == {"artifact_id": 1, "artifact_name": "one"}
    assert (listed["data"]["total"], apart["data"]["total"]) == (2, 0)
    assert every == both
    assert (revised["data"]["revision_num"], reviewed["success"]) == (1, True)


def test_a_revision_is_added_to_the_one_it_was_made_from(settings: Settings) -> None:
    """The caller sends the number it has read; after another revision it is refused with that number."""
    requests = [create(), revise(b"by ann", expect=0), revise(b"by bo", expect=0), revise(b"by bo", expect=1)]
    _, added, refused, again = calls(settings, requests)
    assert (added["data"]["revision_num"], again["data"]["revision_num"]) == (1, 2)
    assert refused["error_code"] == "OPERATION_FAILED"
    assert "is at revision 1, not 0" in refused["error"]
    assert "expect=1" in refused["error"]
    wrong = calls(settings, [revise(expect=-1)])[0]
    assert (wrong["error_code"], wrong["parameter"]) == ("INVALID_PARAMETER", "expect")


@pytest.mark.engine("sqlite")
def test_only_an_answer_with_its_path_writes_a_file(settings: Settings) -> None:
    """Lists, reviews and searches read the database alone."""
    calls(settings, [create(), revise()])
    shutil.rmtree(engines.files(settings.data_folder))
    review = {"review_id": 1, "location": "line:1", "comment": "why?", "persona": "bob"}
    requests: list[Request] = [
        ("artifact_list", {}),
        history(),
        ("review_create", {"artifact_id": 1, "revision_id": 1, "reviewer_persona": "bob"}),
        ("review_add_comment", review),
        ("review_generate_annotated", {"artifact_id": 1, "revision_id": 1}),
        ("search", {"query": "one", "kinds": "artifact"}),
    ]
    assert all(answer["success"] for answer in calls(settings, requests))
    assert kept_files(settings) == []
    (got,) = calls(settings, [get(0)])
    assert copy_of(settings, got["data"]).read_bytes() == b"one\n"
