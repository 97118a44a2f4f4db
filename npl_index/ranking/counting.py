"""Terms counted by rank-bm25."""

from __future__ import annotations

from collections.abc import Mapping

from rank_bm25 import BM25Plus


class Counted(BM25Plus):  # type: ignore[misc]
    """The counts of some sections: ``doc_freqs`` and ``doc_len``."""

    def _calc_idf(self, nd: Mapping[str, int]) -> None:
        """Do without the idf of this field of this file: that of all files counts."""
