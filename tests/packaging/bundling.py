"""Makes the MCP bundle: one file that a desktop program opens, asks for a folder, and starts.

The host brings Python and the packages; the server itself is the wheel that was checked.
"""

import json
import zipfile
from pathlib import Path
from typing import Any

from tests.packaging.contents import BASE
from tests.packaging.forms import check
from tests.packaging.project import PROJECT, ROOT

FOLDER = ROOT / "bundle"
NAME = f"{BASE}.mcpb"
# The host makes an environment from this; nothing of the tests is installed.
PYPROJECT = f"""\
[project]
name = "{PROJECT["name"]}-bundle"
version = "{PROJECT["version"]}"
requires-python = "{PROJECT["requires-python"]}"
dependencies = ["{PROJECT["name"]}"]

[tool.uv]
package = false

[tool.uv.sources]
{PROJECT["name"]} = {{ path = "%s" }}
"""


def manifest() -> dict[str, Any]:
    """Return the bundle's manifest.

    :raises jsonschema.ValidationError: hosts ask for another form.
    """
    read: dict[str, Any] = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))
    return check("bundle/manifest.json", read)  # type: ignore[no-any-return]


def write(wheel: Path, out: Path) -> Path:
    """Return the bundle of a wheel, in the folder ``out``."""
    made = out / NAME
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("manifest.json", manifest()["server"]["entry_point"]):
            archive.write(FOLDER / name, name)
        archive.write(wheel, wheel.name)
        archive.writestr("pyproject.toml", PYPROJECT % wheel.name)
    return made


def command(opened: Path, notes: Path) -> list[str]:
    """Return what a host runs when the bundle lies in ``opened`` and the user has chosen ``notes``."""
    configured = manifest()["server"]["mcp_config"]
    said = {"${__dirname}": str(opened), "${user_config.folder}": str(notes)}
    return [configured["command"], *(said.get(text, text) for text in configured["args"])]
