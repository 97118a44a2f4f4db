"""Digests of files and sections: a caller names the text it has read by its digest."""

from __future__ import annotations

from codecs import BOM_UTF8
from hashlib import blake2b

from npl_index.markdown.sections import SectionTree

DIGEST_LENGTH = 8
"""Hexadecimal digits; the chance that two different texts share a digest is one in four billion."""


def digest_of(data: bytes) -> str:
    """Return the digest of a file's or a section's bytes.

    Line ends and surrounding empty lines do not count. So a section's text and its bytes have the same
    digest, which stays the same when a neighbouring section changes.
    """
    text = data.removeprefix(BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n").strip(b"\n")
    return blake2b(text, digest_size=16).hexdigest()[:DIGEST_LENGTH]


def section_digest(tree: SectionTree, index: int, *, whole: bool) -> str:
    """Return the digest of the text that an edit of a section replaces.

    :param index: of the section; the document counts as its title.
    :param whole: the subsections as well.
    """
    section = tree.sections[index or tree.title or 0]
    lines = section.whole if whole else section.own
    text = tree.source[tree.line_starts[lines.start] : tree.line_starts[lines.stop]]
    return digest_of(text.encode("utf-8", "surrogatepass"))
