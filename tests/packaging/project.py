"""The package's description in the project file."""

import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
_SAID: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT: dict[str, Any] = _SAID["project"]
SDIST: dict[str, Any] = _SAID["tool"]["hatch"]["build"]["targets"]["sdist"]
