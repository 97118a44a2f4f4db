"""The user's folders of data and settings."""

# Importing pathlib takes as long as a whole command may take.
# ruff: noqa: PTH111, PTH117, PTH118

import os
import sys

NAME = "npl-mcp"


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
