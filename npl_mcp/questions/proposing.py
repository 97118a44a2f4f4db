"""Questions that nobody has written yet: from the log of calls, and from links among the documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from npl_index.library.documents import DocumentRef
from npl_index.library.references import document_name
from npl_index.markdown.headings import MAX_HEADING
from npl_index.markdown.links import Reference, slugs
from npl_index.selectors.writing import qualified
from npl_mcp.core.app import App
from npl_mcp.core.relations import Relations, place_of
from npl_mcp.questions.format import Question
from npl_mcp.questions.running import Outcome, ask_one
from npl_mcp.questions.trial import Trial
from npl_mcp.stores.calls import CallEntry
from npl_mcp.tools.calls import calls_list
from npl_mcp.tools.responses import as_dict

AGAIN = timedelta(minutes=2)
"""Time in which a second question of a caller means that the answer to the first one was not enough."""

MOST_DRAFTED = 200
"""Questions of a draft: a minute or so."""

_MOST_CALLS = 5_000
_PAGE = 500
_FEWEST_WORDS, _MOST_WORDS = 6, 40
_LINES = re.compile(r"\[(?:lines|depth)=[0-9-]{1,20}\]")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*(?:\([^()]*\)[^()]*)?\)|\[[^\[\]]*\])")
_SENTENCE = re.compile(r"[^\s](?:[^.!?]|[.!?](?!\s))*(?:[.!?](?=\s)|\Z)")
_MARKS = re.compile(r"^(?:[-*+>|]|\d+\.|:::\S*)\s+|[*|]+|<[^<>]*>|\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A question that users ask and no file has.

    :param question: with the sections that may answer it; someone has to look at them.
    :param why: ``asked again``, ``found nothing``, ``absent`` or ``weak``.
    :param calls: how often it was asked.
    """

    question: Question
    why: str
    calls: int = 1

    def as_dict(self) -> dict[str, Any]:
        """Return its fields as JSON holds them."""
        found: dict[str, Any] = as_dict(self)
        return found


def from_calls(app: App, ref: DocumentRef | None = None) -> tuple[Proposal, ...]:
    """Return questions of the call log whose answers were not enough, the most frequent first.

    The log has questions only if the server keeps contexts.

    :param ref: the documents that are asked now.
    """
    found: dict[str, Proposal] = {}
    following: dict[str, CallEntry] = {}
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
    return tuple(sorted(found.values(), key=lambda one: -one.calls))


def _logged(app: App) -> Iterator[CallEntry]:
    for offset in range(0, _MOST_CALLS, _PAGE):
        page = calls_list(app, tool="npl_load_tailored", limit=_PAGE, offset=offset)
        yield from page.items
        if offset + len(page.items) >= page.total:
            return


def _is_second(first: CallEntry, second: CallEntry) -> bool:
    """Return whether a call asks again what the one before has not answered."""
    apart = datetime.fromisoformat(second.created_at) - datetime.fromisoformat(first.created_at)
    followed = any(offer.followed_by is not None for offer in first.offers or ())
    return bool(second.context) and second.context != first.context and apart <= AGAIN and not followed


def _selector(taken: str) -> str:
    """Return the selector of a section that the log names with its file."""
    file, colon, selector = taken.partition(": ")
    selector = _LINES.sub("", selector if colon else taken)
    return f"{document_name(file)} {selector}" if colon and selector.startswith("#") else selector


def draft(app: App, ref: DocumentRef) -> Iterator[Outcome]:
    """Ask the sentences around links for the sections that they link to.

    While it is asked, the sentence is left out of the index.
    """
    relations = Relations(app, app.gather(ref))
    with Trial.of(app, ref) as trial:
        for document, question, rest in islice(linked(relations), MOST_DRAFTED):
            path = place_of(relations.gathered.founds[document])
            whole = trial.read(path)
            trial.write(path, rest.encode())
            yield ask_one(trial.app, question)
            trial.write(path, whole)


def linked(relations: Relations) -> Iterator[tuple[int, Question, str]]:
    """Yield documents, questions, and the documents' texts without these; every question once."""
    asked: set[str] = set()
    for document in relations.documents:
        source = relations.parsed(document).tree.source
        for reference in relations.references(document):
            answer = _answer(relations, document, reference)
            found = None if answer is None else _sentence(source, reference)
            if answer is None or found is None:
                continue
            start, stop = found
            text = " ".join(_MARKS.sub(" ", _LINK.sub(r"\1", source[start:stop])).split())
            words = len(text.split())
            if _FEWEST_WORDS <= words <= _MOST_WORDS and len(text) < MAX_HEADING and text not in asked:
                asked.add(text)
                yield document, Question(text, (answer,)), source[:start] + source[stop:]


def _answer(relations: Relations, document: int, reference: Reference) -> str | None:
    """Return the selector of what a link of a document leads to in another one."""
    place = relations.place(document, reference)
    target = None if place is None else relations.target(place)
    if target is None or target == document:
        return None
    name = document_name(relations.gathered.files[target])
    parsed = relations.parsed(target)
    sections = [one for one in parsed.tree.sections if one.level]
    if not reference.anchor:
        return qualified(name, "")
    anchors = dict(zip(slugs(one.name for one in sections), sections, strict=True))
    section = anchors.get(reference.anchor.lower())
    return None if section is None else qualified(name, parsed.step(section.index))


def _sentence(source: str, reference: Reference) -> tuple[int, int] | None:
    """Return where the sentence with a link begins and ends in its paragraph; links in headings have none."""
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
