"""Child processes: their programs and environments."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

_INHERITED = ("PATH", "HOME", "USERPROFILE", "XDG_CONFIG_HOME", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR")


def child_environment(added: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a child process: the variables that every program needs, and the added ones.

    Its ``PATH`` has only absolute folders.
    """
    variables = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    variables["PATH"] = os.pathsep.join(filter(os.path.isabs, variables.get("PATH", "").split(os.pathsep)))
    return variables | dict(added)


def use_one_thread_for_numpy() -> None:
    """Keep numpy, unless the environment says otherwise, from starting threads for large matrices.

    The matrices here are small, and the threads double the time of its import.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def keep_absolute_path() -> None:
    """Remove the folders from this process's ``PATH`` that depend on the working directory."""
    os.environ["PATH"] = child_environment({})["PATH"]


def find_program(name: str, path: str | None = None) -> str | None:
    """Return the full path of a program; ``None`` if it is not found outside the working directory.

    :param path: folders to search; by default those of ``PATH``.
    """
    program = shutil.which(name, path=path or child_environment({})["PATH"])
    # Windows searches the working directory first.
    return program if program and Path(program).is_absolute() else None


def inherited_environment(added: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of this process with the added variables."""
    return {**os.environ, **added}
