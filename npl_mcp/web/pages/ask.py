"""Ask: what an answer takes of a set of documents, what it leaves, and why; two requests side by side."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from npl_mcp.web.browsers import TOKEN_COOKIE
from npl_mcp.web.routing import Action, Data, Page, Shown
from npl_mcp.web.visits import CallError, Visit, address

PATH = "/ask"

ROWS = 200
"""Rows of a page."""

SLIDER = 16_000
"""Where the slider ends; an address may say more."""

SECOND = "b_"
"""How the parameters of the second request begin."""

RIGHT = "right"
"""The parameter of each section that is marked as right, by its selector; links of the page keep it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the form has it.

    :param topics: one after another, with commas.
    :param selectors: one a line.
    :param budget: tokens; 0 for no limit.
    :param default: the budget of a call that names none.
    """

    context: str
    topics: str
    selectors: str
    file: str
    budget: int
    default: int

    @classmethod
    def of(cls, visit: Visit, lead: str = "") -> Asked:
        """Return the request that an address says.

        :param lead: how the names of its parameters begin.
        """
        free, default = visit.flag(f"{lead}nolimit"), visit.settings.token_budget
        return cls(
            visit.text(f"{lead}context"),
            visit.text(f"{lead}topics"),
            visit.text(f"{lead}selectors"),
            visit.text(f"{lead}file"),
            0 if free else visit.number(f"{lead}budget", default) or 0,
            default,
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked for."""
        return not (self.context or self.topics or self.selectors)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the tool call that asks this."""
        given = {
            "context": self.context,
            "topics": _parts(self.topics.split(",")),
            "selectors": _parts(self.selectors.splitlines()),
            "file": self.file,
        }
        is_default = self.budget == self.default and (self.context or self.topics)
        budget = {} if is_default else {"token_budget": self.budget}
        return {name: value for name, value in given.items() if value} | budget

    def parameters(self, lead: str = "") -> dict[str, object]:
        """Return the parameters of an address that say this."""
        kept: dict[str, object] = {
            "context": self.context,
            "topics": self.topics,
            "selectors": self.selectors,
            "file": self.file,
            "budget": self.budget,
            "nolimit": None if self.budget else 1,
        }
        return {f"{lead}{name}": value for name, value in kept.items()}


def _parts(texts: Iterable[str]) -> list[str]:
    return [text.strip() for text in texts if text.strip()]


async def ask(visit: Visit) -> Data:
    """Return what a request takes and leaves; with another request beside it, what is different there."""
    asked = Asked.of(visit)
    form = visit.text("form", visit.settings.format)
    shown: Data = {"asked": asked.arguments(), "form": form, "_asked": asked, "_slider": SLIDER}
    if visit.flag("compare"):
        return {**shown, **await _compared(visit, asked, form)}
    if asked.is_empty:
        return shown
    audit = await visit.call(
        "npl_audit",
        **asked.arguments(),
        format=form,
        open=visit.texts("open"),
        matching=visit.flag("matching") or None,
        section=visit.text("section") or None,
        offset=visit.number("offset"),
        limit=ROWS,
    )
    return shown | audited(visit, asked, audit)


def audited(visit: Visit, asked: Asked, audit: Any) -> Data:
    """Return what an answer took and left, as the page shows it.

    :param audit: the data of an answer of ``npl_audit``.
    """
    return {
        "audit": audit,
        "copies": copies(visit, asked, audit["form"]),
        "right": visit.texts(RIGHT),
        "_elsewhere": _elsewhere(audit, visit.texts(RIGHT)),
        "_longest": _longest(audit),
        "_question": asked.parameters(),
    }


def copies(visit: Visit, asked: Asked, form: str) -> dict[str, str]:
    """Return the same request as a tool call, a command line, and a call over HTTP where there is a port."""
    arguments = {**asked.arguments(), "format": form}
    origin = visit.settings.web_url
    token = ['-H "Authorization: Bearer $NPL_MCP_TOKEN"'] if TOKEN_COOKIE in visit.cookies else []
    sent = shlex.quote(json.dumps(arguments, ensure_ascii=False))
    curl = [
        f"curl -s {shlex.quote(f'{origin}/mcp/tools/npl_load_tailored')}",
        "-H 'Content-Type: application/json'",
        *token,
        f"-d {sent}",
    ]
    call = {"name": "npl_load_tailored", "arguments": arguments}
    return {
        "tool call": json.dumps(call, ensure_ascii=False, indent=1),
        "command line": _command(arguments),
        **({"curl": " ".join(curl)} if origin else {}),
    }


def _command(arguments: dict[str, Any]) -> str:
    """Return the command that asks this."""
    flags = [
        *chain.from_iterable(("--topic", one) for one in arguments.get("topics", ())),
        *chain.from_iterable(("--select", one) for one in arguments.get("selectors", ())),
        *(("--file", arguments["file"]) if "file" in arguments else ()),
        *(("--budget", str(arguments["token_budget"])) if "token_budget" in arguments else ()),
        "--format",
        arguments["format"],
    ]
    words = ["--", arguments["context"]] if "context" in arguments else []
    return shlex.join(["npl-load", "tailored", *flags, *words])


def _longest(audit: Any) -> dict[str, int]:
    """Return the tokens of the longest section and of the longest file of a page, for the bars."""
    rows = [row["tokens"] for file in audit["items"] for row in file["rows"]]
    return {"section": max([1, *rows]), "file": max([1, *(file["tokens"] for file in audit["items"])])}


def _elsewhere(audit: Any, right: list[str]) -> list[str]:
    """Return the sections that are marked as right and have no row on this page."""
    rows = {row["selector"] for file in audit["items"] for row in file["rows"]}
    return [selector for selector in dict.fromkeys(right) if selector not in rows]


async def _compared(visit: Visit, asked: Asked, form: str) -> Data:
    """Return two requests beside each other, and each section that became something else."""
    given = any(name.startswith(SECOND) for name in visit.request.query_params)
    other = Asked.of(visit, SECOND) if given else asked
    both = []
    for one in (asked, other):
        if one.is_empty:
            return {"other": other.arguments(), "_other": other}
        both.append(await visit.call("npl_audit", **one.arguments(), format=form, matches=True, limit=1))
    first, second = both
    return {
        "other": other.arguments(),
        "compared": [{name: one[name] for name in ("file", "answers", "states", "tokens")} for one in both],
        "changes": _changes(first["matches"], second["matches"]),
        "_other": other,
    }


def _changes(first: list[Any], second: list[Any]) -> list[Data]:
    """Return the sections that became something else, in document order."""
    before, after = ({(row["file"], row["start_line"]): row for row in rows} for rows in (first, second))
    changed = []
    for place in sorted({*before, *after}):
        rows = [side.get(place) for side in (before, after)]
        kinds = [(row.get("state"), row.get("taken_tokens")) if row else (None, None) for row in rows]
        if kinds[0] != kinds[1]:
            section = rows[0] or rows[1]
            assert section is not None
            named = {name: section[name] for name in ("file", "title", "selector", "start_line", "tokens")}
            changed.append({**named, "before": rows[0], "after": rows[1]})
    return changed


async def keep(visit: Visit) -> str:
    """Return the address of the same page that says which sections are marked as right."""
    return visit.here(**{RIGHT: visit.form.getlist(RIGHT)})


async def label(visit: Visit) -> Shown:
    """Save the question with the sections that are right."""
    form = visit.form
    ticked = form.getlist(RIGHT)
    others = _parts(form.get("others", "").splitlines())
    right = list(dict.fromkeys([*ticked, *others]))
    if not right:
        raise CallError("no section is marked as right; tick those that answer the question")
    saved = await visit.call(
        "npl_label",
        context=form.get("context") or None,
        topics=_parts(form.get("topics", "").split(",")) or None,
        selectors=_parts(form.get("selectors", "").splitlines()) or None,
        file=form.get("file") or None,
        name=form.get("name", "").strip() or None,
        right=right,
    )
    fields = ("context", "topics", "selectors", "file", "budget", "nolimit")
    back = address(PATH, **{name: form.get(name, "") for name in fields})
    return Shown("ask_saved.html", {**saved, "right": right, "_back": back}, 200)


DECLARED = (
    Page(PATH, ask, "ask.html", "npl", "Ask"),
    Action(PATH, keep, writes=False),
    Action(f"{PATH}/labels", label),
)
