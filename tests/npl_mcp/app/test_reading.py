"""The digests of read sections are those of the answer, even if the file changes meanwhile."""

from pathlib import Path

import pytest

from npl_index.answer.forms import Json
from npl_index.answer.request import TailorRequest
from npl_index.answer.tailoring import write
from npl_index.library.documents import DocumentRef
from npl_mcp.app.app import App
from npl_mcp.app.reading import ReadSections, read_sections_of
from npl_mcp.config.settings import Settings
from tests.conftest import GUIDE

AFTER: dict[str, tuple[str | None, list[bool]]] = {
    "an edit": (GUIDE.replace("late winter", "early spring"), [True]),
    "a deletion": (None, [False]),
    "an edit elsewhere": (GUIDE.replace("Deep roots", "Roots"), []),
    "nothing": (GUIDE, []),
}


@pytest.mark.parametrize("case", AFTER)
@pytest.mark.parametrize("file", [None, "guide.md"])
def test_what_happens_between_answer_and_memory_is_a_change(
    settings: Settings, docs: Path, case: str, file: str | None
) -> None:
    """The section is remembered as it was sent; a removed file breaks no answer."""
    text, expected = AFTER[case]
    app, reader = App(settings), ReadSections()
    documents = app.gather(DocumentRef(file))
    made = write(TailorRequest.parse(selectors=["guide > ## Pruning"]), documents, Json())
    if text is None:
        (docs / "guide.md").unlink()
    else:
        (docs / "guide.md").write_text(text, encoding="utf-8")
    reader.remember(read_sections_of(made.plan.documents, made.plan.kept))
    changes = reader.changes(app)
    assert [change.digest is not None for change in changes] == expected
    assert {change.selector for change in changes} <= {row.selector for row in made.value.sections}
    reader.remember(changes)
    assert reader.changes(app) == []
    app.close()
