"""Collections of documents made without files, for tests of the library."""

import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from types import FrameType
from typing import Any

import pytest
import tiktoken

from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import Json
from npl_index.answer.request import TailorRequest
from npl_index.answer.tailoring import write
from npl_index.answer.values import Tailored
from npl_index.library.documents import Document, Fingerprint
from npl_index.ranking.collection import Collection, KnownCollection
from npl_index.ranking.indexing import index_document
from npl_index.tokens import exact
from npl_index.tokens.counting import TokenCounter
from npl_index.tokens.estimated import estimator
from npl_index.tokens.sections import TokenCounts

CORPUS = Path(__file__).resolve().parents[2] / "corpus"


def document(path: str, text: str) -> Document:
    """Make a document without a file."""
    data = text.encode()
    state = Fingerprint(f"/docs/{path}", 0, len(data))
    digest = blake2b(data, digest_size=16).hexdigest()
    return Document(PurePosixPath(path).stem, path, state, data, digest, False)


_indexed = lru_cache(500)(lambda path, text: index_document(document(path, text)))


def document_set(texts: Mapping[str, str], counter: TokenCounter | None = None) -> DocumentSet:
    """Make the documents of a request, by path."""
    counter = counter or estimator()
    collection = KnownCollection([_indexed(path, text) for path, text in texts.items()])
    counts = [TokenCounts(indexed.tree, counter) for indexed in collection.documents]
    for each in counts:
        each.stored()  # as of an indexed document
    return DocumentSet(
        collection=collection,
        several=len(texts) > 1,
        file="docs",
        counts=counts.__getitem__,
        count_with=lambda: counter,
    )


def tailor(request: TailorRequest, documents: DocumentSet) -> Tailored:
    """Answer a request; the budget limits the answer as JSON."""
    return write(request, documents, Json()).value


def exact_counter() -> TokenCounter:
    """Return an exact counter without a vocabulary file: bytes, and the pairs that matter for joining."""
    pairs = b"\n\n,##,--,th,in, a,``,\n#,.\n,.\n\n,  ,|\n,|\n\n".split(b",")
    ranks = {bytes([byte]): byte for byte in range(256)} | {pair: 256 + n for n, pair in enumerate(pairs)}
    # Pieces as in o200k_base, whose classes of letters are made small: words, numbers, signs, white space.
    pattern = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    encoding = tiktoken.Encoding("small", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return exact.exact_counter("small", encoding)


class Meter(TokenCounter):
    """A counter that also counts the characters it is shown."""

    def __init__(self) -> None:
        super().__init__("meter", self._count, margin=6)
        self.shown = 0

    def _count(self, text: str) -> int:
        self.shown += len(text)
        return estimator().count(text)


def collection(*texts: str) -> Collection:
    return KnownCollection([index_document(document(f"part{n}.md", text)) for n, text in enumerate(texts)])


def lines_run(action: Callable[[], object]) -> int:
    """Return how many lines of Python an action runs: a measure of work that is the same on every machine."""
    count = 0

    def traced(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


@pytest.fixture(scope="session")
def corpus() -> Mapping[str, str]:
    """The bundled prompts, by path."""
    paths = sorted(CORPUS.rglob("*.md"))
    return {path.relative_to(CORPUS).as_posix(): path.read_text(encoding="utf-8") for path in paths}
