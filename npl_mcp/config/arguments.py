"""Values on command lines, checked as they are read, so that a problem is told under the option's name."""

from __future__ import annotations

import argparse
import errno
import os
from pathlib import Path


def path(text: str) -> Path:
    """Read a path, whether something is there or not.

    :raises ArgumentTypeError: nothing can have this path. An empty one would mean the working directory.
    """
    if not text:
        raise argparse.ArgumentTypeError("it is empty; write a path")
    try:
        os.lstat(text)
    except ValueError:
        raise argparse.ArgumentTypeError("it holds a NUL character; write a path") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise argparse.ArgumentTypeError(f"{text[:32]!r}… is too long for a path") from None
    return Path(text)


def filled(text: str) -> str:
    """Read a text; an empty one, such as that of a variable that is not set, would mean what nobody wants.

    :raises ArgumentTypeError: it is empty.
    """
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty; write a value")
    return text


def words(text: str) -> tuple[str, ...]:
    """Read words separated by commas.

    :raises ArgumentTypeError: there is none.
    """
    found = tuple(word.strip() for word in text.split(",") if word.strip())
    if not found:
        raise argparse.ArgumentTypeError("it names nothing; write names, separated by commas")
    return found
