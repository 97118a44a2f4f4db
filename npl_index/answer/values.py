"""What an answer says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TailoredSection:
    """One section of the content.

    :param selector: selects exactly the part of it that the content holds.
    :param title: its heading; for the text before the first heading the title in the front matter, or the
        document's name.
    :param relevance_score: 0 to 1, to two places; 1 for what a selector asked for.
    :param token_count: tokens of its text.
    :param start_line: first line in the file, from 1.
    :param end_line: line after the last one.
    :param file: its document, where the request is about several.
    :param cut: it was too large for the budget; this is a piece of it. Left out where the selector shows it.
    :param digest: of the text that an edit by this selector replaces, for ``expect``; only where sections may
        be changed.
    """

    selector: str
    title: str
    relevance_score: float
    token_count: int
    start_line: int
    end_line: int
    file: str | None = None
    cut: bool | None = None
    digest: str | None = None


class Pointer(NamedTuple):
    """A section to read next.

    :param selector: selects it; it can be sent back as it is.
    :param tokens: of its text.
    :param line: its line that holds most terms of the question, where there is room.
    :param sections: how many it stands for, if it is a range.
    """

    selector: str
    tokens: int
    line: str | None = None
    sections: int | None = None


class Guide(NamedTuple):
    """What a model reads behind the passages.

    :param pointers: to the sections of ``request_more``.
    :param held: words of the question that the best section has, where it has too few.
    """

    pointers: tuple[Pointer, ...] = ()
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A section that may be wanted next.

    :param selector: selects it.
    :param reason: why.
    """

    selector: str
    reason: str


@dataclass(frozen=True, slots=True)
class RankedSection:
    """One hit and the parts of its score.

    :param selector: selects its own text.
    :param title: its heading.
    :param start_line: first line in the file, from 1.
    :param score: 0 to 1; falls along the ranking.
    :param name: part of the score for heading and heading path, 0 to 1.
    :param content: share of the question that the section holds, its words weighted, 0 to 1.
    :param topic: part for topics, 0 to 1.
    :param file: its document, where the request is about several.
    """

    selector: str
    title: str
    start_line: int
    score: float
    name: float
    content: float
    topic: float
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Tailored:
    """The answer.

    :param content: text of the sections in document order.
    :param sections: what it consists of, most relevant first.
    :param suggestions: at most five sections that may be wanted next.
    :param truncated: something relevant was left out or cut.
    :param request_more: selectors to ask for next, most relevant first: of sections that were left out or
        cut, and of those that rank next.
    :param keywords_extracted: keywords of the context, best first.
    :param total_tokens: tokens of ``content``.
    :param token_counter: how they were counted, where scores are explained or the content is shown alone.
    :param file: the document's path below its root; for several documents what the request called them.
    :param mark: what the lines that name files carry where some text has a line like them; no text holds it.
    :param absent: words of the question that no section has.
    :param weak: no section has enough of the question; the content is a short passage of the best one.
    :param excluded_tokens: tokens of what is wanted and was left out because of ``exclude``.
    :param not_found: for each selector that selects nothing, why; a last entry counts what has no room.
    :param unreadable: files of a set that were left out, and why; a last entry counts further ones.
    :param partial: the answer is made from a part of the set, because the call did not wait for the rest.
    :param missing_files: how many files are not indexed yet; ask again for them.
    :param ranking: every hit, best first, when asked for; no budget counts it.
    """

    content: str
    sections: tuple[TailoredSection, ...]
    suggestions: tuple[Suggestion, ...]
    truncated: bool
    request_more: tuple[str, ...]
    keywords_extracted: tuple[str, ...]
    total_tokens: int
    token_counter: str | None
    file: str
    mark: str | None = None
    absent: tuple[str, ...] | None = None
    weak: bool | None = None
    excluded_tokens: int | None = None
    not_found: tuple[str, ...] | None = None
    unreadable: tuple[str, ...] | None = None
    partial: bool | None = None
    missing_files: int | None = None
    ranking: tuple[RankedSection, ...] | None = None


@dataclass(frozen=True, slots=True)
class Written(Generic[T]):
    """An answer that is already text: exactly this is sent, and exactly this was counted.

    :param value: what the text says, for programs.
    :param text: the whole answer.
    """

    value: T
    text: str
