"""Libraries of earlier versions are not served; their addresses say so, and their tokens see no documents."""

import json
from functools import partial
from pathlib import Path

import pytest

from tests import engines
from tests.conftest import Call, cases
from tests.folders import fill
from tests.programs import Run

ADDRESSED: list[tuple[str, dict[str, object]]] = [
    *(
        ("npl_section_index", {"file": file})
        for file in ("lib:docs", "lib:docs/guide.md", "lib:docs@1/x", "lib:*", "guide.md, lib:docs")
    ),
    ("npl_load_tailored", {"file": "lib:docs", "context": "water"}),
    ("npl_load_tailored", {"selectors": ["lib:docs/guide > ## Watering"]}),
    ("search", {"query": "water", "file": "lib:docs"}),
]


@pytest.mark.parametrize(("tool", "arguments"), ADDRESSED)
def test_an_address_says_what_became_of_it(call: Call, tool: str, arguments: dict[str, object]) -> None:
    """It may stand in a parameter, in a list, and in a selector of an old message."""
    answer = call(tool, **arguments)
    assert answer["error_code"] == "NOT_FOUND"
    assert "no longer served; serve the files of the library with --root" in answer["error"]


def test_a_folder_may_be_called_like_the_scheme(call: Call, docs: Path) -> None:
    """Only the colon makes it an address."""
    for name in ("lib", "cr", "artifact"):
        fill(docs / name, {"valve.md": "# Valve\n\nOil it.\n"})
        assert call("npl_section_index", file=name)["data"]["sections"][0]["name"] == f"{name}/valve.md"


LIMITS = cases("npl_mcp/stores/libraries")["limits"]


@pytest.mark.parametrize(("roots", "libraries", "shown"), LIMITS)
def test_a_token_for_libraries_sees_no_more_than_before(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: Run,
    roots: str | None,
    libraries: str | None,
    shown: str,
) -> None:
    """Its row, which an earlier version wrote, has the right to push."""
    data = tmp_path / "data"
    engines.tokens(data, ("kim",))
    for name, value in engines.environment(data).items():
        monkeypatch.setenv(name, value)
    run = partial(program, "npl-mcp", "--data-dir", str(data))
    limits = {"roots": roots, "libraries": libraries, "pushes": '["docs"]'}
    changes = (f"{name} = {'NULL' if limit is None else repr(limit)}" for name, limit in limits.items())
    engines.execute(data, f"UPDATE access_token SET {', '.join(changes)}")
    line = run("token", "list")[1].splitlines()[1]
    assert line.startswith("kim ")
    assert line.endswith(f"  {shown}")
    row = json.loads(run("token", "list", "--json")[1])[0]
    assert row["roots"] == (json.loads(roots) if roots else [] if libraries else None)
