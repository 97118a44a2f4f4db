"""The form of answers whose content alone is shown, as on a command line."""

from __future__ import annotations

from collections.abc import Sequence

from npl_index.answer.budget import Part, Unit
from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import NO_GUIDE
from npl_index.answer.values import Guide, Pointer, Suggestion, Tailored


class Plain:
    """The content and the marks that name files; nothing else costs anything, since it is shown elsewhere."""

    lean = False
    shows_lines = False

    def text(self, documents: DocumentSet, part: Part) -> int:
        """Return the count of the text and the blank line behind it, which the document's counts have."""
        del documents
        return max(part.size.followed, part.size.last)

    def entry(self, documents: DocumentSet, document: int) -> int:
        """Count the mark that names the file."""
        return documents.counter.count(documents.mark(document) + "\n") if documents.several else 0

    def row(self, documents: DocumentSet, unit: Unit) -> str:
        """Return nothing."""
        del documents, unit
        return ""

    def pointer(self, pointer: Pointer) -> str:
        """Return nothing."""
        del pointer
        return ""

    def named(self, text: str) -> str:
        """Return nothing."""
        del text
        return ""

    def suggested(self, suggestion: Suggestion) -> str:
        """Return nothing."""
        del suggestion
        return ""

    keyword = named

    def frame(self, nothing: Tailored, documents: DocumentSet, held: tuple[str, ...]) -> str:
        """Return nothing."""
        del nothing, documents, held
        return ""

    def write(
        self, answer: Tailored, documents: DocumentSet, kept: Sequence[Unit], guide: Guide = NO_GUIDE
    ) -> str:
        """Return the content."""
        del documents, kept, guide
        return answer.content
