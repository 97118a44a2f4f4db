"""Ask: the sections that an answer takes or leaves, and why."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from npl_index.answer.auditing import CUT, NO_ROOM, TAKEN, Audit, audit
from npl_index.answer.forms import Markdown
from npl_index.answer.request import TailorRequest
from npl_index.library.documents import DocumentRef
from npl_index.selectors.filters import SectionFilter
from npl_mcp.app.context import Context
from npl_mcp.app.waiting import HURRY
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.tools.npl import question_in
from npl_mcp.web.rendering import marked, sought
from npl_mcp.web.routing import Data, WebPage
from npl_mcp.web.visits import CallError, Visit, address

PATH = "/ask"

CARDS = 20
"""Sections shown at first; all sections that the answer wants appear regardless."""

SCALE = 2_000
"""Tokens at the end of the shortest ruler; each longer one has twice as many."""

RIGHT = "right"
"""The parameter of each section marked as right, with its selector; links of the page preserve it."""

FIELDS = ("context", "topics", "selectors", "file", "exclude", "filter")
"""Fields of a request besides its budget; all are texts."""

WANTED = (TAKEN, CUT, NO_ROOM)
"""States of sections that are worth their tokens."""


@dataclass(frozen=True, slots=True)
class AskForm:
    """A request with the values of its form.

    :param topics: the topics, separated by commas.
    :param selectors: the selectors, one per line.
    :param exclude: the selectors of excluded sections, one per line.
    :param filter: the conditions of ranked sections, as JSON.
    :param budget: the maximum tokens; 0 for no limit.
    :param default: the budget of a call without one; 0 for selectors alone.
    """

    context: str
    topics: str
    selectors: str
    file: str
    exclude: str
    filter: str
    budget: int
    default: int

    @classmethod
    def of(cls, visit: Visit) -> AskForm:
        """Return the request in an address; an invalid budget counts as the default."""
        given = {name: visit.text(name) for name in FIELDS}
        asks = given["context"] or given["topics"] or not given["selectors"]
        default = budget = visit.settings.token_budget if asks else 0
        with suppress(CallError):
            budget = visit.number("budget", default) or 0
        return cls(**given, budget=budget, default=default)

    @property
    def is_empty(self) -> bool:
        """Whether the request has no question."""
        return not (self.context or self.topics or self.selectors)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the tool call for this request.

        :raises CallError: the filter is not a JSON object.
        """
        try:
            conditions = json.loads(self.filter or "{}")
        except (ValueError, RecursionError):
            conditions = None
        if not isinstance(conditions, dict):
            raise CallError('Filter: JSON such as {"status": "!draft"}', parameter="filter")
        given = {
            "context": self.context,
            "topics": _parts(self.topics.split(",")),
            "selectors": _parts(self.selectors.splitlines()),
            "file": self.file,
            "exclude": _parts(self.exclude.splitlines()),
            "filter": conditions,
        }
        budget = {} if self.budget == self.default else {"token_budget": self.budget}
        return {name: value for name, value in given.items() if value} | budget


def _parts(texts: Iterable[str]) -> list[str]:
    return [text.strip() for text in texts if text.strip()]


def to_ask(arguments: Mapping[str, Any]) -> str:
    """Return the address of the page with the request of a call of ``npl_load_tailored``."""
    fields = {name: arguments.get(name) for name in FIELDS}
    fields["topics"] = ", ".join(arguments.get("topics") or ())
    fields["selectors"] = "\n".join([*(arguments.get("selectors") or ()), *(arguments.get("sections") or ())])
    fields["exclude"] = "\n".join(arguments.get("exclude") or ())
    fields["filter"] = json.dumps(arguments["filter"]) if arguments.get("filter") else None
    return address(PATH, **fields, budget=arguments.get("token_budget"))


async def ask(visit: Visit) -> Data:
    """Return the result of a request; without a question, its form.

    :raises CallError: the request is invalid; the error has the form, with the problem at its field.
    """
    asked = AskForm.of(visit)
    shown: Data = {"asked": {}, "_asked": asked}
    try:
        visit.number("budget")
        given = shown["asked"] = asked.arguments()
        if asked.is_empty:
            return shown
        audit = await audit_of(visit, visit.text("section") or None, **given)
        return {**shown, **audited(visit, asked, audit)}
    except CallError as error:
        error.form = {**shown, "_problem": _problem(error, asked)}
        raise


async def audit_of(visit: Visit, section: str | None = None, **given: Any) -> Data:
    """Return the audit of an answer in the form for models, as far as the documents are indexed.

    :param section: selector of a section to show whole.
    :param given: arguments of ``npl_load_tailored``.
    """

    def read(app: Context) -> Data:
        request = TailorRequest.parse(
            question_in(app, given.get("context")),
            given.get("topics"),
            given.get("selectors"),
            given.get("token_budget"),
            app.settings.token_budget,
            exclude=given.get("exclude"),
            among=SectionFilter.parse(given.get("filter")),
        )

        def answer() -> Audit:
            ref = DocumentRef(given.get("file"))
            documents = app.documents_of(ref, request.selectors, request.exclude, seconds=HURRY)
            wanted = replace(request, exclude=app.documents.possible(request.exclude, documents))
            return audit(wanted, section, documents, Markdown(), weights=app.settings.weights)

        audited: Data = as_dict(app.read_here(answer))
        return audited

    return await visit.run(read)


def _problem(error: CallError, asked: AskForm) -> Data:
    """Return the invalid field of the form, and suggestions for it."""
    field = {"token_budget": "budget"}.get(error.parameter or "", error.parameter)
    if field is None:
        others = "selectors" if asked.selectors else "context"
        field = "file" if asked.file and asked.file in error.message else others
    message, _, near = error.message.partition("; near: ") if field == "file" else (error.message, "", "")
    return {
        "field": field,
        "message": message,
        "waits": "being indexed" in message,
        "near": near.split(", ") if near else [],
    }


def audited(visit: Visit, asked: AskForm, audit: Any) -> Data:
    """Return the taken and the left sections of an answer, in the data of the page.

    :param audit: the data of :func:`audit_of`.
    """
    matches = audit["matches"]
    wanted = sum(row["state"] in WANTED for row in matches)
    cards = matches if visit.flag("all") else matches[: max(CARDS, wanted)]
    absent = {*audit.get("absent", ())}
    call = {"name": "npl_load_tailored", "arguments": {**asked.arguments(), "format": "markdown"}}
    return {
        "audit": audit,
        "copies": {"answer": audit["text"], "tool call": json.dumps(call, ensure_ascii=False, indent=1)},
        "right": visit.texts(RIGHT),
        "_read": {word: near[0] for word, near in audit.get("near", {}).items() if word not in absent},
        "_cards": cards,
        "_ruler": ruler(audit, asked.budget),
        "_marked": partial(marked, terms=sought(asked.context, asked.topics)),
    }


def ruler(audit: Data, budget: int) -> Data:
    """Return an answer on a scale of tokens: its sections, its frame, then what it left out, best first.

    The scale is the shortest with the budget in its first half.

    :returns: ``top``, the tokens at its end; ``blocks``, each with the number of its section, state, start
        and width in percent, and label; ``beyond``, the number of sections beyond its end.
    """
    top, at, beyond = SCALE, 0, 0
    while top < 2 * budget or top < audit["tokens"]:
        top *= 2
    inside, outside = [], []
    for number, row in enumerate(audit["matches"], 1):
        taken = row.get("taken_tokens") or 0
        label = f"{row['title']}: {taken:,} of {row['tokens']:,} tokens"
        inside.append((number, "taken", taken, label))
        outside.append((number, row["state"], row["tokens"] - taken, label))
    frame = audit["tokens"] - sum(tokens for _, _, tokens, _ in inside)
    blocks = []
    for number, state, tokens, label in [
        *inside,
        (0, "frame", frame, f"Pointers: {frame:,} tokens"),
        *outside,
    ]:
        if tokens > 0 and at < top:
            width = 100 * min(tokens, top - at) / top
            blocks.append((number, state, round(100 * at / top, 3), round(width, 3), label))
        beyond += tokens > 0 and at >= top
        at += max(0, tokens)
    return {"top": top, "blocks": blocks, "beyond": beyond}


DECLARED = (WebPage(PATH, ask, "ask.html", "npl", "Ask"),)
