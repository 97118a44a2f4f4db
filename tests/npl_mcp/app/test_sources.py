"""Artifacts are documents: they are browsed, selected and tailored like files."""

import base64
import json
from typing import Any

import pytest

from npl_index.library.references import ADDRESSES
from npl_mcp.app.schemes import SCHEMES
from npl_mcp.config.settings import Settings
from tests.conftest import GUIDE, Call, calls, cases


def stored(call: Call, name: str, content: bytes, filename: str) -> int:
    made = call(
        "artifact_create",
        name=name,
        artifact_type="document",
        file_content_base64=base64.b64encode(content).decode(),
        filename=filename,
    )
    return int(made["data"]["artifact_id"])


@pytest.fixture
def guide(call: Call) -> str:
    """The guide of the other tests, as an artifact."""
    return f"artifact:{stored(call, 'guide', GUIDE.encode(), 'guide.md')}"


def without_place(answer: dict[str, Any]) -> dict[str, Any]:
    """Leave out what names the document."""
    text = json.dumps(answer["data"]).replace("artifact:1@0", "guide")
    return {name: value for name, value in json.loads(text).items() if name not in ("file", "path")}


@pytest.mark.parametrize(
    ("tool", "asked"),
    [
        ("npl_section_index", {}),
        ("npl_load_tailored", {"context": "when to prune fruit trees", "token_budget": 400}),
        ("npl_load_tailored", {"selectors": ["guide > ## Compost"]}),
        ("npl_load_tailored", {"topics": ["drip line"], "explain": True}),
    ],
)
def test_an_artifact_is_read_like_the_file(call: Call, guide: str, tool: str, asked: dict[str, Any]) -> None:
    """Selectors, lines, sizes and traits are equal."""
    answers = [without_place(call(tool, file=file, **asked)) for file in (guide, "guide.md")]
    assert answers[0] == answers[1]


def test_an_answer_names_the_revision_and_its_selectors_work_again(call: Call, guide: str) -> None:
    data = call("npl_load_tailored", file=guide, context="pruning")["data"]
    assert data["file"] == f"{guide}@0"
    again = call("npl_load_tailored", file=data["file"], selectors=[data["sections"][0]["selector"]])
    assert again["data"]["sections"][0]["title"] == "Pruning"


def test_each_revision_stays_a_document(settings: Settings, call: Call, guide: str) -> None:
    """The next call sees a new revision; the old one stays available by its number."""
    number = int(guide.partition(":")[2])
    newer = base64.b64encode(GUIDE.replace("## Pruning", "## Trimming").encode()).decode()
    revise = {"artifact_id": number, "file_content_base64": newer, "filename": "guide.md"}
    answers = calls(
        settings,
        [
            ("npl_section_index", {"file": guide}),
            ("artifact_add_revision", revise),
            ("npl_section_index", {"file": guide}),
            ("npl_section_index", {"file": f"{guide}@0"}),
        ],
    )
    headings = [
        [node["heading"] for node in answer["data"]["sections"][0]["children"]]
        for answer in answers
        if "sections" in answer["data"]
    ]
    assert "Pruning" in headings[0]
    assert "Trimming" in headings[1]
    assert headings[2] == headings[0]


WRONG = cases("npl_mcp/app/sources")["wrong"]


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_name_gets_a_clear_error(call: Call, guide: str, case: str) -> None:
    """The code says what is missing, the text what to write."""
    file, code, text = WRONG[case]
    answer = call("npl_section_index", file=file)
    assert answer["error_code"] == code
    assert text in answer["error"]


def test_what_is_no_text_is_refused(call: Call) -> None:
    number = stored(call, "picture", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "picture.png")
    assert call("npl_section_index", file=f"artifact:{number}")["error_code"] == "FILE_SYSTEM_ERROR"


def test_no_file_takes_the_name_of_a_scheme() -> None:
    """Files are kept from each scheme there is or was."""
    assert {f"{name}:" for name in (*SCHEMES, "lib")} == set(ADDRESSES)
