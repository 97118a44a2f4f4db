"""The user's folders of data and settings."""

# Importing pathlib takes as long as a whole command may take.
# ruff: noqa: PTH111, PTH117, PTH118, PTH123

import os
import sys
from contextlib import suppress

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


def data_folder() -> str:
    """Return the data folder of the environment, of the user's settings, or the default one.

    :raises OSError: the settings cannot be read.
    :raises ValueError: they are not TOML.
    """
    folder = os.environ.get("NPL_MCP_DATA_DIR")
    if not folder:
        with suppress(FileNotFoundError), open(os.path.join(user_folder("config"), "npl.toml"), "rb") as file:
            own = read_toml(file.read(_MAX_BYTES).decode("utf-8-sig"))
            folder = str(own.get("data-dir", own.get("data_dir", "")))
    return os.path.expanduser(folder) if folder else user_folder("data")
