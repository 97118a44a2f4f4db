"""Suggestions for a change request, based on its fields and words."""

from __future__ import annotations

from npl_mcp.documents.answers import Improvement
from npl_mcp.documents.tickets import Ticket

_MIN_BODY = 200
"""Characters of a body; a shorter one needs more detail."""

_MAX_SUGGESTIONS = 8
_RANKS = ("High", "Medium", "Low")


def suggestions(ticket: Ticket, body: str, code: str) -> tuple[Improvement, ...]:
    """Suggest improvements, the most urgent first.

    High: work cannot begin. Medium: a part is missing. Low: planning would be easier.

    :param body: Markdown of the change request without front matter.
    :param code: code of its project.
    """
    text = body.casefold()
    kind, status = ticket.type, ticket.status

    def lacks(*words: str) -> bool:
        return not any(word in text for word in words)

    rules = (
        (
            "High",
            len(body.strip()) < _MIN_BODY,
            "Describe the change in more detail: the text has only a few sentences.",
        ),
        (
            "Medium",
            kind == "Architecture" and lacks("diagram", "mermaid"),
            "Add a diagram of the architecture.",
        ),
        ("High", kind == "Bug Fix" and lacks("reproduc", "steps"), "Add steps that reproduce the bug."),
        ("High", kind == "Bug Fix" and lacks("root cause"), "Name the root cause."),
        (
            "Medium",
            status == "Proposed" and lacks("acceptance criteria"),
            "Add acceptance criteria: they say when the change is done.",
        ),
        ("Low", not ticket.text("phaseEpic"), "Set phaseEpic: it helps to plan the change."),
        (
            "Medium",
            status == "Implemented" and not ticket.text("implementationNotes"),
            "Set implementationNotes: the work done and its differences from the plan.",
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
            "Check the priority: unpaid debt grows.",
        ),
    )
    suggested = [Improvement(rank, text) for rank, applies, text in rules if applies]
    return tuple(sorted(suggested, key=lambda item: _RANKS.index(item.priority))[:_MAX_SUGGESTIONS])
