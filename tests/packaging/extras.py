"""What an installation does without the extras, and what it does with them."""

from __future__ import annotations

import json
import subprocess
from html import unescape
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from fastmcp import Client

from npl_mcp.stores.base.extras import EXTRAS, how_to_install
from tests.packaging.first_answer import asked, environment

# One white pixel.
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg=="
NOWHERE = "postgresql://nobody@127.0.0.1:1/none"


def check(program: str, folder: Path, *, complete: bool) -> None:
    """Look at an installation, without extras or with all of them.

    :param program: its ``npl-mcp``.
    :param folder: an empty one.
    :param complete: whether the extras are there.
    :raises AssertionError: an extra that is missing is not named, or one that is there does not work.
    """
    folder.mkdir(parents=True)
    base = [program, "--data-dir", str(folder / "data")]
    found = {one["name"]: one for one in json.loads(said(base, "doctor", "--json"))["findings"]}
    for extra in EXTRAS:
        fix = found[f"extra {extra}"]["fix"] or ""
        assert (f"'npl-mcp[{extra}]" in fix) != complete, found
    assert found["vocabulary"]["text"].endswith("exactly" if complete else "estimated"), found
    assert (how_to_install("postgres") in said(base, "check", NPL_DATABASE_URL=NOWHERE)) != complete
    error = asked(base, folder, _drawn)
    assert error is None if complete else how_to_install("pictures") in error, error
    page = shown([f"{program}-server", *base[1:]], folder / "data", "/artifacts/1/revisions/0")
    assert (how_to_install("pictures") in page) != complete, page


def said(base: list[str], *words: str, **variables: str) -> str:
    """Return all that a command writes."""
    done = subprocess.run(
        [*base, *words], env={**environment(), **variables}, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def shown(server: list[str], data: Path, page: str) -> str:
    """Return a page as people see it on a server that is started for it.

    :param data: the server's data folder, where it says how it is reached.
    """
    with subprocess.Popen(
        [*server, "--port", "0", "--no-token"], env=environment(), stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()  # it listens
            state = json.loads((data / "server.json").read_text(encoding="utf-8"))
            with urlopen(state["url"] + page, timeout=60) as answer:
                return unescape(answer.read().decode())
        finally:
            process.terminate()


async def _drawn(client: Client[Any]) -> str | None:
    """Store a picture, comment on it and have that drawn; return the error of the last, if there is one."""
    given = {"name": "shot", "artifact_type": "image", "filename": "shot.png", "file_content_base64": PICTURE}
    made = (await _called(client, "artifact_create", given))["data"]
    on = {"artifact_id": made["artifact_id"], "revision_id": made["revision_id"]}
    review = (await _called(client, "review_create", {**on, "reviewer_persona": "bob"}))["data"]
    spot = {"review_id": review["review_id"], "x": 0, "y": 0, "comment": "too white", "persona": "bob"}
    assert (await _called(client, "review_add_annotation", spot))["success"]
    error: str | None = (await _called(client, "review_generate_annotated", on)).get("error")
    return error


async def _called(client: Client[Any], tool: str, given: dict[str, Any]) -> dict[str, Any]:
    done = await client.call_tool(tool, given, raise_on_error=False)
    answer: dict[str, Any] = json.loads(done.content[0].text)
    return answer
