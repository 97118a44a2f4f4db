"""Real full disks and missing permissions."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let the system refuse every byte of a file beyond a size, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def unprivileged(place: Path) -> Iterator[None]:
    """Run as another user, who owns a place, if this is root: permissions do not bind root."""
    root = os.geteuid() == 0
    if root:
        give(place, NOBODY)
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
            os.setegid(0)
            give(place, 0)


def give(place: Path, owner: int) -> None:
    for path in (place, *place.rglob("*")):
        os.chown(path, owner, owner, follow_symlinks=False)


@contextmanager
def read_only(place: Path, *folders: str) -> Iterator[None]:
    """Take the right to write from some folders of a place and all that is in them."""
    paths = [path for name in folders for path in (place / name, *(place / name).rglob("*"))]
    modes = {path: path.stat().st_mode for path in paths}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    try:
        with unprivileged(place):
            yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
