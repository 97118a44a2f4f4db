"""Ask: the sections that an answer takes or leaves, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import accumulate
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

LISTS = {"topics": ", ", "selectors": "\n", "exclude": "\n"}
"""Signs between the items of fields."""

WANTED = (TAKEN, CUT, NO_ROOM)
"""States of sections that are worth their tokens."""


def fields_of(visit: Visit) -> dict[str, Any]:
    """Return the fields of a request in an address.

    :returns: also ``budget``, the maximum tokens, 0 for no limit; an invalid one counts as ``default``, the
        budget of a call without one.
    """
    asked: dict[str, Any] = {name: visit.text(name) for name in FIELDS}
    asks = asked["context"] or asked["topics"] or not asked["selectors"]
    asked["budget"] = asked["default"] = visit.settings.token_budget if asks else 0
    with suppress(CallError):
        asked["budget"] = visit.number("budget", asked["default"]) or 0
    return asked


def arguments_of(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the tool call for a request.

    :raises CallError: the filter is not a JSON object.
    """
    conditions = None
    with suppress(ValueError, RecursionError):
        conditions = json.loads(asked["filter"] or "{}")
    if not isinstance(conditions, dict):
        raise CallError('Filter: JSON such as {"status": "!draft"}', parameter="filter")
    lists = {
        name: [*filter(None, map(str.strip, asked[name].split(sign[0])))] for name, sign in LISTS.items()
    }
    given = {name: asked[name] for name in FIELDS} | lists | {"filter": conditions}
    budget = {} if asked["budget"] == asked["default"] else {"token_budget": asked["budget"]}
    return {name: value for name, value in given.items() if value} | budget


def to_ask(arguments: Mapping[str, Any]) -> str:
    """Return the address of the page with the request of a call of ``npl_load_tailored``."""
    selectors = [*(arguments.get("selectors") or ()), *(arguments.get("sections") or ())]
    given = {**arguments, "selectors": selectors}
    fields = {name: given.get(name) for name in FIELDS}
    fields |= {name: sign.join(given.get(name) or ()) for name, sign in LISTS.items()}
    fields["filter"] = json.dumps(given["filter"]) if given.get("filter") else None
    return address(PATH, **fields, budget=given.get("token_budget"))


async def ask(visit: Visit) -> Data:
    """Return the result of a request; without a question, its form.

    :raises CallError: the request is invalid; the error has the form, with the problem at its field.
    """
    asked = fields_of(visit)
    shown: Data = {"asked": {}, "_asked": asked}
    try:
        visit.number("budget")
        given = shown["asked"] = arguments_of(asked)
        if not (asked["context"] or asked["topics"] or asked["selectors"]):
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

    def answer(app: Context) -> Audit:
        question, among = question_in(app, given.get("context")), SectionFilter.parse(given.get("filter"))
        names = ("topics", "selectors", "exclude", "token_budget")
        more: dict[str, Any] = {name: given.get(name) for name in names}
        budget = app.settings.token_budget
        request = TailorRequest.parse(question, default_budget=budget, among=among, **more)
        ref = DocumentRef(given.get("file"))
        documents = app.documents_of(ref, request.selectors, request.exclude, seconds=HURRY)
        wanted = replace(request, exclude=app.documents.possible(request.exclude, documents))
        return audit(wanted, section, documents, Markdown(), weights=app.settings.weights)

    return await visit.run(lambda app: as_dict(app.read_here(partial(answer, app))))


def _problem(error: CallError, asked: Mapping[str, Any]) -> Data:
    """Return the invalid field of the form, and suggestions for it."""
    field = {"token_budget": "budget"}.get(error.parameter or "", error.parameter)
    if field is None:
        others = "selectors" if asked["selectors"] else "context"
        field = "file" if asked["file"] and asked["file"] in error.message else others
    message, _, near = error.message.partition("; near: ") if field == "file" else (error.message, "", "")
    waits = "being indexed" in message
    return {"field": field, "message": message, "waits": waits, "near": near.split(", ") if near else []}


def audited(visit: Visit, asked: Mapping[str, Any], audit: Any) -> Data:
    """Return the taken and the left sections of an answer, in the data of the page.

    :param audit: the data of :func:`audit_of`.
    """
    matches = audit["matches"]
    wanted = sum(row["state"] in WANTED for row in matches)
    absent = {*audit.get("absent", ())}
    call = {"name": "npl_load_tailored", "arguments": {**arguments_of(asked), "format": "markdown"}}
    return {
        "audit": audit,
        "copies": {"answer": audit["text"], "tool call": json.dumps(call, ensure_ascii=False, indent=1)},
        "right": visit.texts(RIGHT),
        "_read": {word: near[0] for word, near in audit.get("near", {}).items() if word not in absent},
        "_cards": matches if visit.flag("all") else matches[: max(CARDS, wanted)],
        "_ruler": ruler(audit, asked["budget"]),
        "_marked": partial(marked, terms=sought(asked["context"], asked["topics"])),
    }


def ruler(audit: Data, budget: int) -> Data:
    """Return an answer on a scale of tokens: its sections, its frame, then what it left out, best first.

    The scale is the shortest with the budget in its first half.

    :returns: ``top``, the tokens at its end; ``blocks``, each with the number of its section, state, start
        and width in percent, and label; ``beyond``, the number of sections beyond its end.
    """
    top = SCALE
    while top < max(2 * budget, audit["tokens"]):
        top *= 2
    rows = [(row["tokens"], row.get("taken_tokens") or 0, row) for row in audit["matches"]]
    labels = [f"{row['title']}: {taken:,} of {tokens:,} tokens" for tokens, taken, row in rows]
    frame = audit["tokens"] - sum(taken for _, taken, _ in rows)
    parts = [
        *((number, "taken", taken) for number, (_, taken, _) in enumerate(rows, 1)),
        (0, "frame", frame),
        *((number, row["state"], tokens - taken) for number, (tokens, taken, row) in enumerate(rows, 1)),
    ]
    parts = [part for part in parts if part[-1] > 0]
    labels.insert(0, f"Pointers: {frame:,} tokens")
    starts = accumulate((tokens for *_, tokens in parts), initial=0)
    blocks = [
        (number, state, round(100 * at / top, 3), round(100 * min(tokens, top - at) / top, 3), labels[number])
        for (number, state, tokens), at in zip(parts, starts, strict=False)
        if at < top
    ]
    return {"top": top, "blocks": blocks, "beyond": len(parts) - len(blocks)}


DECLARED = (WebPage(PATH, ask, "ask.html", "npl", "Ask"),)
