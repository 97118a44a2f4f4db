"""A segment that is merged is the one that would be made anew, array by array."""

from __future__ import annotations

import io
from random import Random

import numpy as np
import pytest

from npl_index.ranking.columns import arrays_of
from npl_index.ranking.merging import merge, survivors
from npl_index.ranking.packing import NotASegmentError, packed, unpack, write_living
from npl_index.ranking.segments import Segment, segment_of
from tests.npl_index.ranking.test_segments import indexed


def text(chance: Random, sections: int) -> str:
    """Return sections of words, some of which stand in no other."""
    found = []
    for _ in range(sections):
        body = [f"v{one}" for one in chance.sample(range(500), 250)]
        body += [f"w{chance.randrange(10**6):x}" for _ in range(30)]
        found.append(f"{'#' * chance.randint(1, 3)} {' '.join(body[-3:])}\n\n{' '.join(body)}\n")
    return "\n".join(found)


def alive(segment: Segment, *dead: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which sections live if some documents are dead."""
    living = np.ones(segment.size, bool)
    for document in dead:
        living[segment.documents[document] : segment.documents[document + 1]] = False
    return living


@pytest.mark.parametrize("sections", [3, 110], ids=["small", "more than is looked at together"])
def test_merging_makes_the_segment_that_is_made_anew(sections: int) -> None:
    """In memory and in a file, of segments in memory and of mapped ones, with dead documents among them."""
    chance = Random(1)
    documents = [indexed(f"d/{number}.md", text(chance, sections)) for number in range(6)]
    records = [f"record {number}".encode() * number for number in range(6)]
    tokens = [[number, *range(number)] for number in range(6)]
    first, second, third = (
        segment_of(documents[some], records[some], tokens[some])
        for some in (slice(3), slice(3, 5), slice(5, 6))
    )
    living = survivors([(first, alive(first, 1)), (unpack(packed(second)), None), (third, None)])
    chosen = [0, 2, 3, 4, 5]
    anew = arrays_of(
        segment_of(*([every[one] for one in chosen] for every in (documents, records, tokens)))  # type: ignore[arg-type]
    )
    file = io.BytesIO()
    write_living(living, file)
    for found in (arrays_of(merge(living)), arrays_of(unpack(file.getvalue()))):
        assert list(found) == list(anew)
        assert [name for name in anew if found[name].dtype != anew[name].dtype] == []
        assert [name for name in anew if not np.array_equal(found[name], anew[name])] == []


def test_a_segment_with_any_byte_changed_is_none() -> None:
    """Wherever the byte is, but between arrays, where nothing is read."""
    data = packed(segment_of([indexed("a.md", "# Tea\n\nBoil it in a kettle.\n")]))
    whole = arrays_of(unpack(data))
    for at in range(0, len(data), 3):
        changed = bytearray(data)
        changed[at] ^= 1
        try:
            found = arrays_of(unpack(bytes(changed)))
        except NotASegmentError:
            continue
        assert not data[at]
        assert all(np.array_equal(found[name], whole[name]) for name in whole)
    for length in range(0, len(data), 7):
        with pytest.raises(NotASegmentError):
            unpack(data[:length])
