"""The same word in a message, a worklog, an artifact and a change request."""

from pathlib import Path
from typing import Any, Protocol


class Caller(Protocol):
    def call(self, tool: str, /, **arguments: Any) -> Any:
        """Return the data of an answer."""


def fill_search(site: Caller, docs: Path) -> None:
    """Make one thing of each kind with the word, in an existing room and project."""
    (docs / "capstan.md").write_text("# Capstan\n\nA capstan <b>lifts</b> the anchor.\n", encoding="utf-8")
    site.call("chat_send_message", room_id=1, persona="ben", message="Oil the capstan <i>now</i>.")
    change = {"title": "Anchor", "content": "## 1. Description\n\nThe capstan sticks.\n"}
    site.call("create_cr", project="HBR", type="Bug Fix", data=change)
    site.call("worklog_init", session_id="oil")
    site.call("worklog_log", agent_id="ann", action="done", summary="Oiled the capstan.", session_id="oil")
    text = {"filename": "list.md", "content": "# List\n\n## Capstan\n\nTwo bars.\n"}
    site.call("artifact_create", name="Spare parts", artifact_type="document", **text)
