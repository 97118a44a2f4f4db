"""Templates of new change requests, one for each type.

The headings are those clients look for; each has a question to answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Part = tuple[str, str, Sequence[tuple[str, str]]]
"""Heading of a section, what to write there, and its subsections."""

_ACCEPTANCE: Part = (
    "Acceptance Criteria",
    "",
    (),
)
_NOTES: Part = (
    "Implementation Notes",
    "What was found while it was done, and what differs from the plan.",
    (),
)
_REFERENCES: Part = ("References", "Related change requests, issues, documents.", ())

_PROBLEM = ("Problem Statement", "What is wrong or missing, and for whom?")
_CURRENT = ("Current State", "How is it today?")
_RATIONALE = ("Rationale", "Why is it worth doing now?")
_REQUIREMENTS = ("Technical Requirements", "What must the code do?")

_OUTLINES: Mapping[str, tuple[Sequence[Part], Sequence[str]]] = {
    "Architecture": (
        (
            (
                "Description",
                "",
                (
                    _PROBLEM,
                    _CURRENT,
                    ("Proposed State", "How shall the system be built?"),
                    _RATIONALE,
                ),
            ),
            (
                "Solution Analysis",
                "",
                (
                    ("Overview", "The architecture in a paragraph and a diagram."),
                    ("Key Components", "Parts, and what each is responsible for."),
                    ("Design Decisions", "What was decided, and what spoke for it."),
                    ("Trade-offs", "What is given up for what is won."),
                ),
            ),
            (
                "Implementation Specification",
                "",
                (
                    _REQUIREMENTS,
                    ("Migration Strategy", "Steps from today's state to the new one."),
                    ("Dependencies", "What must be there before."),
                    ("Risk Assessment", "What may go wrong, and what to do then."),
                ),
            ),
        ),
        (
            "The components are built as described",
            "The diagram shows what was built",
            "The migration can be undone",
            "Tests cover the borders between components",
            "The documentation is up to date",
        ),
    ),
    "Feature Enhancement": (
        (
            (
                "Description",
                "",
                (
                    _PROBLEM,
                    _CURRENT,
                    ("Desired State", "What can a user do afterwards?"),
                    _RATIONALE,
                    ("Impact Areas", "Parts of the system that change."),
                ),
            ),
            (
                "Solution Analysis",
                "",
                (
                    ("Approaches Considered", "Ways to do it."),
                    ("Trade-offs Analysis", "What speaks for and against each."),
                    ("Chosen Approach", "Which one, and why."),
                    ("Rejected Alternatives", "Which not, and why."),
                ),
            ),
            (
                "Implementation Specification",
                "",
                (
                    _REQUIREMENTS,
                    ("UI/UX Changes", "What a user sees."),
                    ("API Changes", "What callers see."),
                    ("Database Changes", "What is stored differently."),
                ),
            ),
        ),
        (
            "The feature works as described",
            "What worked before still works",
            "Errors are reported so that a user can act",
            "Tests cover the new behaviour",
            "The documentation is up to date",
        ),
    ),
    "Bug Fix": (
        (
            (
                "Description",
                "",
                (
                    _PROBLEM,
                    ("Current Behavior", "What happens? Steps to reproduce it."),
                    ("Expected Behavior", "What should happen?"),
                    ("Root Cause Analysis", "Why does it happen?"),
                    ("Impact Assessment", "Who is affected, how badly, since when?"),
                ),
            ),
            ("Solution Analysis", "Ways to fix it, and the one chosen.", ()),
            ("Implementation Specification", "What changes, and where.", ()),
        ),
        (
            "The steps to reproduce it do so no more",
            "A test fails without the fix",
            "What worked before still works",
            "The root cause is gone, not only the symptom",
            "The release notes mention it",
        ),
    ),
    "Technical Debt": (
        (
            (
                "Description",
                "",
                (
                    _PROBLEM,
                    ("Current Impact", "What does it cost today?"),
                    ("Root Cause", "How did it come to be?"),
                    ("Future Impact", "What will it cost if it stays?"),
                ),
            ),
            (
                "Solution Analysis",
                "",
                (
                    ("Proposed Solution", "What is to be changed?"),
                    ("Alternatives", "What else was considered?"),
                    ("Refactoring Strategy", "Steps that each leave it working."),
                ),
            ),
            (
                "Implementation Specification",
                "",
                (
                    _REQUIREMENTS,
                    ("Breaking Changes", "What callers must adapt."),
                    ("Testing Strategy", "How is it shown that nothing else changed?"),
                ),
            ),
        ),
        (
            "The code is simpler by a measure named above",
            "Behaviour is unchanged",
            "Tests cover what was touched",
            "Nothing of the old way is left",
            "The documentation is up to date",
        ),
    ),
    "Documentation": (
        (
            (
                "Description",
                "",
                (
                    ("Documentation Gap", "What is missing or wrong?"),
                    ("Target Audience", "Who reads it, and what do they know already?"),
                    _CURRENT,
                    ("Desired State", "What will a reader find?"),
                ),
            ),
            ("Content Analysis", "Topics, sources, and what can be left out.", ()),
            ("Implementation Specification", "Files, structure, and who writes what.", ()),
        ),
        (
            "The gap is closed",
            "Every example was run",
            "Links lead somewhere",
            "Somebody of the audience has read it",
            "It is found where it is looked for",
        ),
    ),
}

_RESEARCH = """\
## 1. Description

### Objective

What is to be found out?

### Context

What is known, and what depends on the answer?

### Scope

What is looked at, and what is not?

## 2. Research Questions

| # | question | how it is answered |
|:--|:--|:--|
| 1 |  |  |

## 3. Validation Approach

How is an answer checked?

## 4. Acceptance Criteria

- [ ] Every question has an answer, or a reason why it has none
- [ ] Answers name their evidence
- [ ] What follows from them is written down

## 5. Dependencies & Next Steps

What must come before, and what comes after.

## 6. References

Related change requests, issues, documents.
"""


def _written(parts: Sequence[Part], criteria: Sequence[str]) -> str:
    blocks = []
    for number, (heading, text, inner) in enumerate((*parts, _ACCEPTANCE, _NOTES, _REFERENCES), 1):
        blocks.append(f"## {number}. {heading}")
        if heading == _ACCEPTANCE[0]:
            blocks.append("\n".join(f"- [ ] {criterion}" for criterion in criteria))
        blocks += [text] if text else []
        for title, question in inner:
            blocks += [f"### {title}", question]
    return "\n\n".join(blocks) + "\n"


TEMPLATES: Mapping[str, str] = {
    **{kind: _written(*outline) for kind, outline in _OUTLINES.items()},
    "Research": _RESEARCH,
}
"""Markdown below the title, by type."""
