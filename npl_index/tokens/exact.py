"""Exact token counts by tiktoken, from vocabulary files on this machine.

tiktoken's own loader downloads a vocabulary at its first use, and deletes a cached file with a wrong
checksum. So this module reads the files, and passes the ranks to tiktoken's public constructor. The files
come from tiktoken's cache, or from a package that contains them; no code of such a package runs.
"""

from __future__ import annotations

import hashlib
import zlib
from base64 import b64decode
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from npl_index.library.files import read_path
from npl_index.tokens.counting import TokenCounter, base_vocabulary
from npl_index.tokens.estimated import estimator
from npl_index.tokens.folders import vocabulary_folders

MAX_VOCABULARY = 16 * 1024 * 1024
"""Maximum bytes of a vocabulary file; the largest published one has a quarter of that."""

_GZIP = 16 + zlib.MAX_WBITS

# tiktoken caches a file under the SHA-1 of its address; the SHA-256 is the published file's.
_CHECKSUMS = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
_BLOB = "https://openaipublic.blob.core.windows.net/encodings"
_FILES = {name: (f"{_BLOB}/{name}.tiktoken", checksum) for name, checksum in _CHECKSUMS.items()}

# The patterns that cut a text into pieces before bytes are merged; part of each vocabulary's definition.
_SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LEAD = r"[^\r\n\p{L}\p{N}]?"
_CAPITAL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_SMALL = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SIGN = r"[^\s\p{L}\p{N}]"
_SPACE = r"\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERNS = {
    "o200k_base": f"{_LEAD}{_CAPITAL}*{_SMALL}+{_SHORT}?|{_LEAD}{_CAPITAL}+{_SMALL}*{_SHORT}?"
    rf"|\p{{N}}{{1,3}}| ?{_SIGN}+[\r\n/]*|{_SPACE}",
    "cl100k_base": rf"{_SHORT}|{_LEAD}\p{{L}}+|\p{{N}}{{1,3}}| ?{_SIGN}+[\r\n]*|\s++$|{_SPACE}",
}
"""The pattern of each vocabulary's pieces, in tiktoken's syntax."""


def load_vocabulary(vocabulary: str, folders: Sequence[Path]) -> TokenCounter | None:
    """Return an exact counter if one of the folders holds the vocabulary, else ``None``.

    Nothing is downloaded or written. ``o200k_base`` takes about 0.3 s of processor time and 70 MB of memory.

    :param vocabulary: one of :data:`~npl_index.choices.VOCABULARIES`.
    :param folders: folders to search, in order; a missing folder counts as empty.
    :raises InvalidRequestError: there is no such vocabulary.
    """
    encoding = load_encoding(vocabulary, folders)
    return encoding and exact_counter(vocabulary, encoding)


def load_encoding(vocabulary: str, folders: Sequence[Path]) -> Any:
    """Return the ``tiktoken.Encoding`` of a vocabulary, ``None`` if no folder holds it.

    A file counts only if it has the published file's name and content, plain or compressed by ``gzip``; other
    files are ignored.

    :raises InvalidRequestError: there is no such vocabulary.
    """
    contents = (content for _, content in vocabulary_files(vocabulary, folders))
    content = next((content for content in contents if content is not None), None)
    if content is None:
        return None
    base = base_vocabulary(vocabulary)
    import tiktoken  # costs 20 ms, and many processes never count exactly

    ranks = {b64decode(token): int(rank) for token, rank in map(bytes.split, content.splitlines())}
    return tiktoken.Encoding(base, pat_str=PATTERNS[base], mergeable_ranks=ranks, special_tokens={})


def exact_counter(vocabulary: str, encoding: Any) -> TokenCounter:
    """Return the counter of a ``tiktoken.Encoding``."""
    return TokenCounter(f"tiktoken:{vocabulary}", lambda text: len(encoding.encode_ordinary(text)))


def best_counter(vocabulary: str = "o200k_base", folders: Sequence[Path] = ()) -> TokenCounter:
    """Return the exact counter, or the estimator if no folder holds the vocabulary.

    :param folders: folders to search; by default :func:`~npl_index.tokens.folders.vocabulary_folders`.
    :raises InvalidRequestError: there is no such vocabulary.
    """
    return load_vocabulary(vocabulary, folders or vocabulary_folders()) or estimator(vocabulary)


def vocabulary_files(vocabulary: str, folders: Sequence[Path]) -> Iterator[tuple[Path, bytes | None]]:
    """Yield each file with a vocabulary's name, and its content; ``None`` for different content.

    :raises InvalidRequestError: there is no such vocabulary.
    """
    base = base_vocabulary(vocabulary)
    address, checksum = _FILES[base]
    cached = hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()
    for folder, name in product(folders, (cached, f"{base}.tiktoken", f"{base}.tiktoken.gz")):
        try:
            # One of the folders is the system's temporary folder, where any user can write.
            content, _ = read_path(folder / name, MAX_VOCABULARY)
            if name.endswith(".gz"):
                content = zlib.decompressobj(_GZIP).decompress(content, MAX_VOCABULARY)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, zlib.error):
            content = b""
        yield folder / name, content if hashlib.sha256(content).hexdigest() == checksum else None
