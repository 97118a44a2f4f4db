"""Suggestions for a change request, based on its fields and words."""

from __future__ import annotations

from npl_mcp.documents.answers import Improvement
from npl_mcp.documents.tickets import Ticket

_SHORT = 200
_MAX_SUGGESTIONS = 8
_RANKS = ("High", "Medium", "Low")


def suggestions(ticket: Ticket, body: str, code: str) -> tuple[Improvement, ...]:
    """Return what to do, first what keeps others from working, then what is missing, then what helps to plan.

    :param body: its Markdown without front matter.
    :param code: the project's.
    """
    text = body.casefold()
    kind, status = ticket.type, ticket.status

    def lacks(*words: str) -> bool:
        return not any(word in text for word in words)

    rules = (
        (
            "High",
            len(body.strip()) < _SHORT,
            "Describe the change in more detail: there are only a few sentences.",
        ),
        (
            "Medium",
            kind == "Architecture" and lacks("diagram", "mermaid"),
            "Add a diagram of the architecture.",
        ),
        ("High", kind == "Bug Fix" and lacks("reproduc", "steps"), "Add steps that reproduce the bug."),
        ("High", kind == "Bug Fix" and lacks("root cause"), "Say what the root cause is."),
        (
            "Medium",
            status == "Proposed" and lacks("acceptance criteria"),
            "Add acceptance criteria, so that it can be seen when it is done.",
        ),
        ("Low", not ticket.text("phaseEpic"), "Set phaseEpic, so that it can be planned."),
        (
            "Medium",
            status == "Implemented" and not ticket.text("implementationNotes"),
            "Set implementationNotes: what was done, and what differs from the plan.",
        ),
        (
            "Low",
            not ticket.text("relatedTickets"),
            f'Look for related change requests, e.g. by npl_load_tailored with file "cr:{code}", and set '
            "relatedTickets.",
        ),
        (
            "Low",
            kind == "Technical Debt" and ticket.priority == "Low",
            "See whether the priority fits: debt that is never paid off grows.",
        ),
    )
    found = [Improvement(rank, text) for rank, applies, text in rules if applies]
    return tuple(sorted(found, key=lambda one: _RANKS.index(one.priority))[:_MAX_SUGGESTIONS])
