"""Documents for the page Ask: some match, one does not, and one has words that look like markup."""

from pathlib import Path

WEEKS = "\n\n".join(
    f"In week {week} barrel {week} is turned and its bung is driven home." for week in range(40)
)


def fill_ask(docs: Path) -> None:
    cellar = docs / "cellar"
    cellar.mkdir()
    texts = {
        "barrels": f"# Barrels\n\n## Turning barrels\n\n{WEEKS}\n\n## Filling\n\nFill it to the bung.\n",
        "bottles": "# Bottles\n\n## Corks\n\nCorks are soaked.\n\n## Racks\n\nRacks stand in the dark.\n",
        "rules": "# Rules <b>of</b> the house\n\n## Bung & barrel\n\n<script>alert(1)</script> No barrel.\n",
    }
    for name, text in texts.items():
        (cellar / f"{name}.md").write_text(text, encoding="utf-8")
