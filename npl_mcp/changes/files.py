"""Where the change requests of a project lie."""

from __future__ import annotations

import errno

from npl_index.errors import OutsideRootError
from npl_index.library.files import below_root
from npl_mcp.editing.folders import SharedFolder, is_hidden
from npl_mcp.stores.base.errors import NotAllowedError, StorageError

SUFFIX = ".md"


def locate(root: str, path: str) -> SharedFolder:
    """Return the folder of change requests of a project; it need not exist.

    :param root: the project.
    :param path: below it.
    :raises OutsideRootError: a link leads out of the project.
    :raises StorageError: no folder can have the path.
    """
    try:
        return SharedFolder(*below_root(root, path))
    except (OSError, ValueError) as error:
        if not isinstance(error, OSError) or error.errno != errno.ELOOP:
            reason = getattr(error, "strerror", None) or str(error)
            raise StorageError(f"{path[:64]!r} cannot be used: {reason.lower()}") from None
        problem = f"{path!r} leads out of the project"
        raise OutsideRootError(problem, hint="keep change requests inside of it") from None


def check_visible(folder: SharedFolder) -> None:
    """Refuse to write change requests where programs keep what they obey.

    :raises NotAllowedError: the folder is hidden, or lies in a hidden one.
    """
    if is_hidden(folder.below.split("/")):
        hint = "name a folder that is not hidden in the project's configuration"
        raise NotAllowedError("the change requests lie in a hidden folder, so none is written", hint=hint)
