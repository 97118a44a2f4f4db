"""Documents that link to each other, with some wrong links."""

from pathlib import Path

from tests.conftest import case_text

HOSTILE = """"'><img src=x onerror=alert(1)>{{ 7 * 7 }} &lt;b&gt; %2e#?;"""
"""May be a file's name."""

_PUMP = case_text("browser/documents/pump.md")

_CARE = case_text("browser/documents/care.md")


def fill_documents(docs: Path) -> None:
    (docs / "guide").mkdir()
    (docs / "pump.md").write_text(_PUMP, encoding="utf-8")
    (docs / "guide" / "care.md").write_text(_CARE, encoding="utf-8")
    long = "".join(f"\n## Step {number}\n\n{'Turn the valve slowly. ' * number}\n" for number in range(1, 40))
    (docs / "guide" / "steps.md").write_text(f"# Steps\n{long}", encoding="utf-8")
    (docs / f"{HOSTILE}.md").write_text(f"# {HOSTILE}\n\n## {HOSTILE}\n\n{HOSTILE}\n", encoding="utf-8")
    (docs / "empty.md").write_text("", encoding="utf-8")
