"""Change requests and calls for the pages that show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conftest import case_text

if TYPE_CHECKING:
    from tests.browser.site import Site

CONFIG = '[project]\nname = "Harbour"\ncode = "HBR"\nid = "harbour"\nticketsPath = "crs"\n'

TITLES = (
    ("Pump drops the last litre", "Bug Fix", "High", "Proposed"),
    ("Siphon for the second basin", "Feature Enhancement", "Medium", "Approved"),
    ("One valve for both basins", "Architecture", "Critical", "In Progress"),
    ("Describe the night watch", "Documentation", "Low", "Implemented"),
    ("How fast does the tide turn", "Research", "Medium", "Proposed"),
    ("Old winch is greased by hand", "Technical Debt", "Low", "On Hold"),
)

TEXT = case_text("browser/changes/text.md")


def fill_changes(site: Site) -> None:
    """Make a project with change requests, one of each type."""
    (site.docs / ".mdt-config.toml").write_text(CONFIG, encoding="utf-8")
    (site.docs / "crs").mkdir()
    for title, kind, priority, status in TITLES:
        data = {"title": title, "priority": priority, "content": TEXT, "assignee": "ann", "phaseEpic": "Tide"}
        made = site.call("create_cr", project="HBR", type=kind, data=data)
        if status != "Proposed":
            site.call("update_cr_status", key=made["key"], status=status)
    site.call("update_cr_attrs", key="HBR-001", attributes={"relatedTickets": "HBR-002", "blocks": "HBR-003"})


def fill_calls(site: Site) -> None:
    """Load sections, and some of what was offered with them."""
    parts = (
        f"## Part {at}\n\nThe siphon lifts water over edge {at}. {'Water runs. ' * 30}\n" for at in range(12)
    )
    (site.docs / "siphons.md").write_text("# Siphons\n\n" + "\n".join(parts), encoding="utf-8")
    for edge in range(4):
        task = {"context": f"siphon lifts water over edge {edge}", "file": "siphons.md", "token_budget": 400}
        answer = site.call("npl_load_tailored", **task)
        for selector in [
            *answer["request_more"],
            *(suggestion["selector"] for suggestion in answer["suggestions"]),
        ][:1]:
            site.call("npl_load_tailored", file="siphons.md", selectors=[selector], token_budget=600)
