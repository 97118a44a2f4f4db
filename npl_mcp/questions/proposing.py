"""Proposals of questions: from the log of calls, and from links among the documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from npl_index.library.documents import DocumentRef
from npl_index.library.references import document_name
from npl_index.markdown.headings import MAX_HEADING
from npl_index.markdown.links import Reference, slugs
from npl_index.selectors.writing import qualified
from npl_mcp.app.app import App
from npl_mcp.browsing.relations import Relations, place_of
from npl_mcp.questions.files import Question
from npl_mcp.questions.running import Outcome, ask_one
from npl_mcp.questions.trial import Trial
from npl_mcp.stores.calls import LoggedCall
from npl_mcp.tools.calls import calls_list

AGAIN = timedelta(minutes=2)
"""Time within which a second question of a caller means that the first answer was not enough."""

MAX_DRAFT = 200
"""Questions of a draft, about a minute."""

_MAX_CALLS = 5_000
_PAGE = 500
_MIN_WORDS, _MAX_WORDS = 6, 40
_LINES = re.compile(r"\[(?:lines|depth)=[0-9-]{1,20}\]")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*(?:\([^()]*\)[^()]*)?\)|\[[^\[\]]*\])")
_SENTENCE = re.compile(r"[^\s](?:[^.!?]|[.!?](?!\s))*(?:[.!?](?=\s)|\Z)")
_MARKS = re.compile(r"^(?:[-*+>|]|\d+\.|:::\S*)\s+|[*|]+|<[^<>]*>|\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A question of users that no file has.

    :param question: question with sections that may answer it; a person has to check them.
    :param why: ``asked again``, ``found nothing``, ``absent`` or ``weak``.
    :param calls: number of calls with the question.
    """

    question: Question
    why: str
    calls: int = 1


def from_calls(app: App, ref: DocumentRef | None = None) -> tuple[Proposal, ...]:
    """Return questions of the call log with insufficient answers, the most frequent first.

    The log has questions only if the server logs contexts.

    :param ref: documents to ask now.
    """
    found: dict[str, Proposal] = {}
    following: dict[str, LoggedCall] = {}
    for entry in _logged(app):  # the latest first
        after = following.get(entry.who)
        following[entry.who] = entry
        text = " ".join((entry.context or "").split())[: MAX_HEADING - 1]
        if not text:
            continue
        if text in found:
            found[text] = replace(found[text], calls=found[text].calls + 1)
        elif after and _is_second(entry, after):
            answers = tuple(map(_selector, (after.taken or ())[:1]))
            found[text] = Proposal(Question(text, answers), "asked again")
        elif not entry.taken:
            found[text] = Proposal(Question(text), "found nothing")
        else:
            answers = tuple(map(_selector, entry.taken[:1]))
            outcome = ask_one(app, Question(text, answers), ref)
            if outcome.verdict != "held":
                found[text] = Proposal(outcome.question, outcome.verdict)
    return tuple(sorted(found.values(), key=lambda proposal: -proposal.calls))


def _logged(app: App) -> Iterator[LoggedCall]:
    for offset in range(0, _MAX_CALLS, _PAGE):
        page = calls_list(app, tool="npl_load_tailored", limit=_PAGE, offset=offset)
        yield from page.items
        if offset + len(page.items) >= page.total:
            return


def _is_second(first: LoggedCall, second: LoggedCall) -> bool:
    """Return whether a call repeats the question of the call before it in other words."""
    apart = datetime.fromisoformat(second.created_at) - datetime.fromisoformat(first.created_at)
    new = bool(second.context) and second.context != first.context
    return new and apart <= AGAIN and not second.followed


def _selector(taken: str) -> str:
    """Return the selector of a section in the log, which has its file as well."""
    file, colon, selector = taken.partition(": ")
    selector = _LINES.sub("", selector if colon else taken)
    return f"{document_name(file)} {selector}" if colon and selector.startswith("#") else selector


def draft(app: App, ref: DocumentRef) -> Iterator[Outcome]:
    """Ask the sentences around links, each for the target of its link, and yield the outcomes.

    The index does not have the sentence while it is asked.
    """
    relations = Relations(app, app.gather(ref))
    with Trial.of(app, ref) as trial:
        for document, question, rest in islice(linked(relations), MAX_DRAFT):
            path = place_of(relations.gathered.founds[document])
            whole = trial.read(path)
            trial.write(path, rest.encode())
            yield ask_one(trial.app, question)
            trial.write(path, whole)


def linked(relations: Relations) -> Iterator[tuple[int, Question, str]]:
    """Yield documents with a question and the document's text without it; each question once."""
    asked: set[str] = set()
    for document in relations.documents:
        source = relations.parsed(document).tree.source
        for reference in relations.references(document):
            answer = _target_selector(relations, document, reference)
            found = None if answer is None else _sentence(source, reference)
            if answer is None or found is None:
                continue
            start, stop = found
            text = " ".join(_MARKS.sub(" ", _LINK.sub(r"\1", source[start:stop])).split())
            words = len(text.split())
            if _MIN_WORDS <= words <= _MAX_WORDS and len(text) < MAX_HEADING and text not in asked:
                asked.add(text)
                yield document, Question(text, (answer,)), source[:start] + source[stop:]


def _target_selector(relations: Relations, document: int, reference: Reference) -> str | None:
    """Return the selector of a link's target in another document; ``None`` without such a target."""
    place = relations.place(document, reference)
    target = None if place is None else relations.target(place)
    if target is None or target == document:
        return None
    name = document_name(relations.gathered.files[target])
    parsed = relations.parsed(target)
    sections = [section for section in parsed.tree.sections if section.level]
    if not reference.anchor:
        return qualified(name, "")
    anchors = dict(zip(slugs(section.name for section in sections), sections, strict=True))
    section = anchors.get(reference.anchor.lower())
    return None if section is None else qualified(name, parsed.step(section.index))


def _sentence(source: str, reference: Reference) -> tuple[int, int] | None:
    """Return start and end of the sentence with a link; ``None`` for links in headings."""
    lines = source.split("\n")
    first = last = reference.line
    while first and lines[first - 1].strip() and not lines[first].lstrip().startswith(("-", "*", "|", "#")):
        first -= 1
    while last + 1 < len(lines) and lines[last + 1].strip():
        last += 1
    if lines[reference.line].lstrip().startswith("#"):
        return None
    begin = sum(len(line) + 1 for line in lines[:first])
    wanted = reference.anchor or reference.path.rpartition("/")[2]
    for sentence in _SENTENCE.finditer("\n".join(lines[first : last + 1])):
        if "](" in sentence[0] and wanted in sentence[0]:
            return begin + sentence.start(), begin + sentence.end()
    return None
