"""An installation without the extras, and with them."""

import json
import subprocess
from pathlib import Path

from tests.packaging.first_answer import environment

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
    findings = {
        finding["name"]: finding for finding in json.loads(said(base, "doctor", "--json"))["findings"]
    }
    assert findings["vocabulary"]["text"].endswith("exactly" if complete else "estimated"), findings
    assert ("install npl-mcp[postgres]" in said(base, "check", NPL_DATABASE_URL=NOWHERE)) != complete


def said(base: list[str], *words: str, **variables: str) -> str:
    done = subprocess.run(
        [*base, *words], env={**environment(), **variables}, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr
