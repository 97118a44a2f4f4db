"""Documents that link to each other, with some wrong links."""

from pathlib import Path

HOSTILE = """"'><img src=x onerror=alert(1)>{{ 7 * 7 }} &lt;b&gt; %2e#?;"""
"""Can be the name of a file."""

_PUMP = """# Pump

A pump moves water. Read the [siphon](#siphon) first, then [care](guide/care.md#cleaning).

## Siphon

A siphon lifts water over the edge.

| part | size | |
|:-----|-----:|-|
| hose | 12 | long |
| seal |  3 | round |

### Filling

```bash
pump --prime 3
```

## Impeller

- turns at [speed](guide/speed.md)
- see the [maker](https://example.org/impeller "Impeller") or ![photo](https://example.org/p.png)

## <script>alert(1)</script> *and* more

> Quoted <b>words</b> with [danger](javascript:alert(1)) and \u202ehidden\u202c order.
"""

_CARE = """# Care

Back to the [pump](../pump.md#impeller), or to its [tank](../pump.md#tank).

## Cleaning

Rinse it. See [nothing](missing.md).

### Tools

A brush.
"""


def fill_documents(docs: Path) -> None:
    (docs / "guide").mkdir()
    (docs / "pump.md").write_text(_PUMP, encoding="utf-8")
    (docs / "guide" / "care.md").write_text(_CARE, encoding="utf-8")
    long = "".join(f"\n## Step {number}\n\n{'Turn the valve slowly. ' * number}\n" for number in range(1, 40))
    (docs / "guide" / "steps.md").write_text(f"# Steps\n{long}", encoding="utf-8")
    (docs / f"{HOSTILE}.md").write_text(f"# {HOSTILE}\n\n## {HOSTILE}\n\n{HOSTILE}\n", encoding="utf-8")
    (docs / "empty.md").write_text("", encoding="utf-8")
