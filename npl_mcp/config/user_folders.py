"""The user's folders of data and settings."""

# Importing pathlib takes as long as a whole command may take.
# ruff: noqa: PTH100, PTH111, PTH117, PTH118

import os
import sys
from typing import Any

from npl_mcp.config.toml import read_toml

NAME = "npl-mcp"

_MAX_BYTES = 64 * 1024


def user_folder(kind: str) -> str:
    """Return the user's folder of this program; it need not exist.

    :param kind: ``data`` or ``config``.
    """
    if sys.platform == "linux" and os.path.isabs(home := os.path.expanduser("~")):
        given = os.environ.get(f"XDG_{kind.upper()}_HOME", "")
        usual = os.path.join(home, ".local/share" if kind == "data" else ".config")
        return os.path.join(given if os.path.isabs(given) else usual, NAME)
    import platformdirs  # 20 ms

    folder: str = getattr(platformdirs, f"user_{kind}_dir")(NAME, appauthor=False)
    return folder


def user_settings() -> dict[str, Any]:
    """Return the user's settings; the whole program reports what is wrong with them."""
    try:
        path = os.path.join(user_folder("config"), "npl.toml")
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)  # a FIFO must not block
        with os.fdopen(os.open(path, flags), encoding="utf-8-sig") as file:
            return read_toml(file.read(_MAX_BYTES))
    except (OSError, ValueError):
        return {}


def data_folder(flag: str | None = None) -> str:
    """Return the data folder of a flag, of the environment, of the user's settings, or the default one."""
    own = user_settings()
    folder = flag or os.environ.get("NPL_MCP_DATA_DIR") or own.get("data-dir", own.get("data_dir"))
    return os.path.abspath(os.path.expanduser(str(folder))) if folder else user_folder("data")
