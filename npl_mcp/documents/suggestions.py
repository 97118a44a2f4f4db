"""Suggestions for a change request, based on its fields and words."""

from __future__ import annotations

from npl_mcp.documents.answers import Improvement
from npl_mcp.documents.tickets import Ticket

_MIN_BODY = 200
"""Characters of a body; a shorter one needs more detail."""

_CRITERIA = "Add acceptance criteria: they say when the change is done."
_NOTES = "Set implementationNotes: the work done and its differences from the plan."


def suggestions(ticket: Ticket, body: str, code: str) -> tuple[Improvement, ...]:
    """Suggest improvements, the most urgent first.

    High: work cannot begin. Medium: a part is missing. Low: planning would be easier.

    :param body: Markdown of the change request without front matter.
    :param code: code of its project.
    """
    text = body.casefold()
    kind, status, priority = map(ticket.text, ("type", "status", "priority"))

    def lacks(*words: str) -> bool:
        return not any(word in text for word in words)

    is_short, is_bug = len(body.strip()) < _MIN_BODY, kind == "Bug Fix"
    is_unpaid = kind == "Technical Debt" and priority == "Low"
    related = (
        f'Look for related change requests, e.g. by npl_load_tailored with file "cr:{code}", and set '
        "relatedTickets."
    )
    rules = (
        ("High", is_short, "Describe the change in more detail: the text has only a few sentences."),
        ("High", is_bug and lacks("reproduc", "steps"), "Add steps that reproduce the bug."),
        ("High", is_bug and lacks("root cause"), "Name the root cause."),
        (
            "Medium",
            kind == "Architecture" and lacks("diagram", "mermaid"),
            "Add a diagram of the architecture.",
        ),
        ("Medium", status == "Proposed" and lacks("acceptance criteria"), _CRITERIA),
        ("Medium", status == "Implemented" and not ticket.text("implementationNotes"), _NOTES),
        ("Low", not ticket.text("phaseEpic"), "Set phaseEpic: it helps to plan the change."),
        ("Low", not ticket.text("relatedTickets"), related),
        ("Low", is_unpaid, "Check the priority: unpaid debt grows."),
    )
    return tuple(Improvement(rank, text) for rank, applies, text in rules if applies)
