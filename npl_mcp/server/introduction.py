"""What a server says of itself when a client connects."""

from __future__ import annotations

from collections.abc import Collection, Mapping

FIRST = (
    "npl_load_tailored answers a question with the Markdown sections that hold it, inside a token budget; "
    "npl_section_index shows what there is; other npl_load_* bring whole items."
)
"""About the tools of the domain ``npl``."""

ALSO: Mapping[str, str] = {
    "session": "session_* for agents that work together",
    "artifact": "artifact_* for versioned files",
    "chat": "chat_* for rooms, todos and notifications",
    "review": "review_* for remarks on artifacts",
    "worklog": "worklog_* for news among sub-agents",
    "cr": "*_cr* and *_project* for change requests",
    "directive": "directive_* for specs",
    "utility": "git_* and dump_files for files that git sees",
    "search": "search for words in everything",
}
"""What other domains are for."""


def introduction(domains: Collection[str]) -> str | None:
    """Return how to use a server of some domains; nothing where it has none."""
    others = ", ".join(text for domain, text in ALSO.items() if domain in domains)
    parts = [FIRST] if "npl" in domains else []
    if others:
        parts.append(f"{'Also' if parts else 'Tools'}: {others}.")
    return " ".join(parts) or None
