"""Names like a wanted one."""

from __future__ import annotations

import pytest

from npl_index.library.references import near_names

OPERATIONS = ("list", "get", "update", "replace", "append", "prepend", "delete")
RISKY = ("update", "replace", "delete")


@pytest.mark.parametrize("wanted", ["read", "select", "date", "place", "pdate", "lace", "elect", "repeat"])
def test_no_other_word_leads_to_what_overwrites(wanted: str) -> None:
    """However like it is."""
    assert not set(near_names(wanted, OPERATIONS, risky=RISKY)) & set(RISKY)


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ("repalce", "replace"),
        ("Replace", "replace"),
        ("delet", "delete"),
        ("udpate", "update"),
        ("apend", "append"),
    ],
)
def test_a_slip_is_corrected(wanted: str, meant: str) -> None:
    """Also that of a word that overwrites."""
    assert near_names(wanted, OPERATIONS, limit=1, risky=RISKY) == (meant,)
