"""Values of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TailoredSection:
    """One section of the content.

    :param selector: selector of exactly its part in the content.
    :param title: its heading; for the text before the first heading, the title in the front matter or the
        document's name.
    :param relevance_score: 0 to 1, to two places; 1 for the match of a selector.
    :param token_count: tokens of its text.
    :param start_line: first line in the file, from 1.
    :param end_line: line after the last one.
    :param file: its document, in a request for several.
    :param cut: whether it is a piece of a section too large for the budget; absent if the selector shows
        that.
    :param digest: digest of the text that an edit by this selector replaces, for ``expect``; only if sections
        are editable.
    :param note: standing of its document (``deprecated``, ``version 1.2``, ``language de``) and copies of its
        text, if there are any.
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
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A suggested section.

    :param selector: its selector.
    :param reason: reason for the suggestion.
    """

    selector: str
    reason: str


@dataclass(frozen=True, slots=True)
class RankedSection:
    """One hit and the parts of its score.

    :param selector: selector of its own text.
    :param title: its heading.
    :param start_line: first line in the file, from 1.
    :param score: 0 to 1; falls along the ranking.
    :param name: part of the score for heading and heading path, 0 to 1.
    :param content: share of the question's weight in the section, 0 to 1.
    :param topic: part of the score for topics, 0 to 1.
    :param signals: parts of the score by the feature of the ranking; the order follows their sum.
    :param file: its document, in a request for several.
    """

    selector: str
    title: str
    start_line: int
    score: float
    name: float
    content: float
    topic: float
    signals: Mapping[str, float]
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Tailored:
    """The answer.

    :param indexed: remark on an answer from a part of the files.
    :param changed: selectors of sections that have changed since the caller read them.
    :param content: text of the sections in document order.
    :param sections: sections of the content, most relevant first.
    :param suggestions: at most five suggested sections.
    :param truncated: whether relevant text is omitted or cut.
    :param request_more: selectors for the next request, most relevant first: omitted and cut sections, and
        the next ones of the ranking.
    :param keywords_extracted: keywords of the context, best first.
    :param total_tokens: tokens of ``content``.
    :param token_counter: name of the token counter, if scores are explained or the content is shown alone.
    :param file: the document's path below its root; for several documents, their name in the request.
    :param mark: nonce in file markers, present only if a document contains marker-like lines.
    :param absent: words of the question that no section contains.
    :param not_served: numbers of documents below the roots that are not served, with the reasons, if a word
        is absent.
    :param advice: remark if no section has most of the words of the question, or selectors match too much.
    :param weak: true if no section covers enough of the question; the content is a short passage of the best
        one.
    :param excluded_tokens: tokens of relevant text that ``exclude`` omits.
    :param not_found: reasons for selectors without a match; a last entry counts those without room.
    :param unreadable: reasons for omitted files of a set; a last entry counts further ones.
    :param partial: true if the call did not wait for all files of the set.
    :param missing_files: number of files that are not indexed yet; ask again for them.
    :param notes: notes on sections of ``request_more``, by selector, in a list with their sizes.
    :param ranking: all hits, best first; only with ``explain``, not counted against the budget.
    """

    indexed: str | None = None
    changed: tuple[str, ...] | None = None
    content: str = ""
    sections: tuple[TailoredSection, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    truncated: bool = True
    request_more: tuple[str, ...] = ()
    keywords_extracted: tuple[str, ...] = ()
    total_tokens: int = 0
    token_counter: str | None = None
    file: str = ""
    mark: str | None = None
    absent: tuple[str, ...] | None = None
    not_served: str | None = None
    advice: str | None = None
    weak: bool | None = None
    excluded_tokens: int | None = None
    not_found: tuple[str, ...] | None = None
    unreadable: tuple[str, ...] | None = None
    partial: bool | None = None
    missing_files: int | None = None
    notes: Mapping[str, str] | None = None
    ranking: tuple[RankedSection, ...] | None = None


@dataclass(frozen=True, slots=True)
class Written(Generic[T]):
    """An answer as text, exactly as counted and sent.

    :param value: the answer as a value, for programs.
    :param text: the whole answer.
    :param is_json: whether the text is JSON, and not Markdown.
    """

    value: T
    text: str
    is_json: bool = field(default=False, kw_only=True)


_PLAIN = frozenset({str, int, float, bool, type(None)})


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def as_dict(value: object) -> Any:
    """Return the JSON value of a value; fields that are ``None`` are left out.

    :param value: dataclass, mapping, sequence, string, number, boolean or ``None``; of an answer written as
        text, its value is used.
    :raises TypeError: the value has another type.
    """
    kind: Any = value.__class__
    if kind in _PLAIN:
        return value
    if isinstance(value, list | tuple):
        return [part if part.__class__ in _PLAIN else as_dict(part) for part in value]
    if isinstance(value, Written):
        return as_dict(value.value)
    if isinstance(value, Mapping):
        return {str(key): as_dict(part) for key, part in value.items()}
    if is_dataclass(value):
        return {
            name: part if part.__class__ in _PLAIN else as_dict(part)
            for name in _field_names(kind)
            if (part := getattr(value, name)) is not None
        }
    raise TypeError(f"{kind.__name__} cannot be sent")
