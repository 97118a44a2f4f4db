"""What is kept of the sections of documents."""

from __future__ import annotations

import pytest

from npl_index.ranking.indexing import ParsedDocument
from npl_index.ranking.storing import dump_sections, restore_sections
from tests.npl_index.ranking.test_indexing import TEXT, indexed

TEXTS = {
    "guide": TEXT,
    "empty": "",
    "mark and CRLF": "\ufeff# A\r\n\r\ntext\r\n",
    "fences in doubt": "# A\n\n- ```\nx\n\n```\ny\n",
    "quotes": 'quotes " and \\ back\n',
    "many terms": "# 🎯\n\n" + " ".join(map(str, range(3000))),
}


def restored(packed: bytes, text: str = TEXT) -> ParsedDocument:
    """Restore the sections of a document of some text."""
    document = indexed(text).document
    return restore_sections(packed, lambda _: document, lambda: document.data)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_dump_and_restore(text: str) -> None:
    """What is written down comes back as it was."""
    original = indexed(text)
    found = restored(dump_sections(original), text)
    assert tuple(found.tree.sections) == tuple(original.tree.sections)
    assert (found.tree.source, found.tree.title) == (original.tree.source, original.tree.title)
    assert found.steps == original.steps
