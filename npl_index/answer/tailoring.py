"""The use case: what a task needs from some documents, inside a token budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npl_index.answer.assembling import TailoredSection, assemble, choose, request_more, rows
from npl_index.answer.budget import Fit, fit
from npl_index.answer.document_set import DocumentSet
from npl_index.answer.suggestions import Companions, Place, suggest
from npl_index.choices import Weights
from npl_index.errors import InvalidRequestError, MissingRequestError, SectionNotFoundError
from npl_index.ranking.analysis import Keywords, extract_keywords
from npl_index.ranking.cut import GENEROUS_MOST, cut
from npl_index.ranking.scoring import DEFAULT_WEIGHTS, LIMIT, Hit, Query, rank
from npl_index.selectors.grammar import Selector, compile_selector
from npl_index.selectors.selection import Selected, select_in

MAX_TOPICS = 64
MAX_TOPIC_LENGTH = 200
MAX_SELECTORS = 64
SHOWN_KEYWORDS = 16
NEIGHBOURS = 8
SAMPLE = 2_000


@dataclass(frozen=True, slots=True)
class TailorRequest:
    """What a caller asks for.

    :param context: task or agent description; its keywords choose sections.
    :param topics: concepts to match against headings and text.
    :param selectors: sections that are wanted whatever their score.
    :param token_budget: tokens of the content at most; ``None`` for no limit.
    :param depth: levels below a selected section that come with it: 0 for its own text, 1 for its direct
        children, too, and so on; ``None`` for all.
    :param explain: report every hit and the parts of its score.
    """

    context: str = ""
    topics: tuple[str, ...] = ()
    selectors: tuple[Selector, ...] = ()
    token_budget: int | None = None
    depth: int | None = None
    explain: bool = False

    @classmethod
    def parse(
        cls,
        *,
        context: str | None = None,
        topics: Sequence[str] | None = None,
        selectors: Sequence[str] | None = None,
        token_budget: int | None = None,
        depth: int | None = None,
        explain: bool = False,
    ) -> TailorRequest:
        """Check a request and compile its selectors.

        :raises MissingRequestError: there is nothing to look for.
        :raises InvalidRequestError: too many or too long parts, or a negative number.
        :raises SelectorSyntaxError: a selector cannot be read.
        """
        wanted = tuple(topic.strip() for topic in topics or () if topic.strip())
        written = [text for text in selectors or () if text.strip()]
        if not (context and context.strip()) and not wanted and not written:
            raise MissingRequestError(
                "there is nothing to look for",
                parameter="context",
                hint='give context, topics or selectors, e.g. context="review NPL fences"',
            )
        for name, count, most in (
            ("topics", len(wanted), MAX_TOPICS),
            ("selectors", len(written), MAX_SELECTORS),
        ):
            if count > most:
                raise InvalidRequestError(
                    f"{count} {name} are too many", parameter=name, hint=f"give at most {most}"
                )
        for topic in wanted:
            if len(topic) > MAX_TOPIC_LENGTH:
                raise InvalidRequestError(
                    f"the topic {topic[:40]!r}… has {len(topic):,} characters",
                    parameter="topics",
                    hint=f"use at most {MAX_TOPIC_LENGTH}; longer text belongs in context",
                )
        for name, number in (("token_budget", token_budget), ("depth", depth)):
            if number is not None and number < 0:
                raise InvalidRequestError(
                    f"{name} is {number}", parameter=name, hint="use 0 or more, or leave it out for no limit"
                )
        compiled = tuple(compile_selector(text) for text in written)
        return cls(context or "", wanted, compiled, token_budget, depth, explain)


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
    :param content: part for the text, 0 to 1.
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
    :param truncated: something relevant did not fit into the budget.
    :param request_more: selectors of that.
    :param keywords_extracted: keywords of the context, best first.
    :param total_tokens: tokens of ``content``.
    :param token_counter: how they were counted.
    :param file: the document's path below its root; for several documents what the request called them.
    :param mark: what the lines that name files carry where some text has a line like them; no text holds it.
    :param not_found: for each selector that selects nothing, why.
    :param unreadable: files of a set that were left out, and why.
    :param ranking: every hit, best first, when asked for.
    """

    content: str
    sections: tuple[TailoredSection, ...]
    suggestions: tuple[Suggestion, ...]
    truncated: bool
    request_more: tuple[str, ...]
    keywords_extracted: tuple[str, ...]
    total_tokens: int
    token_counter: str
    file: str
    mark: str | None = None
    not_found: tuple[str, ...] | None = None
    unreadable: tuple[str, ...] | None = None
    ranking: tuple[RankedSection, ...] | None = None


def tailor(
    request: TailorRequest,
    documents: DocumentSet,
    *,
    weights: Weights = DEFAULT_WEIGHTS,
    companions: Companions | None = None,
) -> Tailored:
    """Choose, pack and assemble what a request needs.

    :param weights: of the parts of a score.
    :param companions: which sections earlier calls asked for together; this call is recorded there.
    :raises SectionNotFoundError: there are selectors, and none selects anything.
    """
    keywords = extract_keywords(request.context)
    selections, not_found = _selections(request, documents)
    limit = LIMIT if request.explain else GENEROUS_MOST + NEIGHBOURS
    hits = rank(documents.collection, Query(keywords, request.topics), weights=weights, limit=limit)
    relevant = cut(hits, documents.collection, generous=request.token_budget is not None)
    parts = choose(documents, selections, relevant, request.depth)
    documents = documents.tagged(parts)
    packed = fit(parts, request.token_budget, documents.cut, documents.entry_cost)
    content, total = assemble(documents, packed.kept)
    kept = [(part.document, part.section) for part in packed.kept]
    companions = companions or Companions()
    companions.record(documents.collection, kept)
    if not hits and kept:
        # Only selectors were given: what is like the first section is of interest then.
        alike = extract_keywords(documents.text(kept[0])[:SAMPLE])
        similar = rank(documents.collection, Query(alike), weights=weights)
    else:
        alike, similar = keywords, hits
    return Tailored(
        content=content,
        sections=tuple(rows(documents, packed, relevant)),
        suggestions=_suggestions(documents, alike, similar, packed, companions),
        truncated=bool(packed.dropped),
        request_more=request_more(documents, packed),
        keywords_extracted=keywords.words[:SHOWN_KEYWORDS],
        total_tokens=total,
        token_counter=documents.counter.name,
        file=documents.file,
        mark=documents.tag or None,
        not_found=not_found or None,
        unreadable=documents.unreadable or None,
        ranking=tuple(_ranked(documents, hit) for hit in hits) if request.explain else None,
    )


def _selections(request: TailorRequest, documents: DocumentSet) -> tuple[list[Selected], tuple[str, ...]]:
    """Evaluate every selector; those that find nothing are reported unless none finds anything."""
    if not request.selectors:
        return [], ()
    scope = documents.scope()
    selected: list[Selected] = []
    failures: list[SectionNotFoundError] = []
    for selector in request.selectors:
        try:
            selected += select_in(scope, selector)
        except SectionNotFoundError as error:
            failures.append(error)
    if failures and not selected:
        raise failures[0]
    return selected, tuple(str(failure) for failure in failures)


def _ranked(documents: DocumentSet, hit: Hit) -> RankedSection:
    section = documents.tree(hit.document).sections[hit.section]
    return RankedSection(
        selector=documents.selector((hit.document, hit.section), own=True),
        title=section.name,
        start_line=section.own.start + 1,
        score=round(hit.score.total, 4),
        name=round(hit.score.name, 4),
        content=round(hit.score.content, 4),
        topic=round(hit.score.topic, 4),
        file=documents.path(hit.document) if documents.several else None,
    )


def _suggestions(
    documents: DocumentSet, keywords: Keywords, hits: Sequence[Hit], packed: Fit, companions: Companions
) -> tuple[Suggestion, ...]:
    kept = [(part.document, part.section) for part in packed.kept]
    named = [(part.document, part.section) for part in packed.dropped]
    above = [(document, at) for document, index in kept for at in documents.tree(document).ancestors(index)]
    taken = {*kept, *named, *above}
    places = [(hit.document, hit.section) for hit in hits if (hit.document, hit.section) not in taken]
    related = ((place, _shared(documents, place, keywords)) for place in places[:NEIGHBOURS])
    ideas = suggest(documents.collection, kept, {*named, *above}, related, companions)
    return tuple(Suggestion(documents.selector(idea.place), idea.reason) for idea in ideas)


def _shared(documents: DocumentSet, place: Place, keywords: Keywords) -> list[str]:
    text = documents.text(place).casefold()
    return [word for word in keywords.words if word.casefold() in text]
