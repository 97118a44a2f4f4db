"""Types of values on command lines. They check values while argparse knows the option's name."""

from __future__ import annotations

import argparse
import errno
import os
from pathlib import Path


def path(text: str) -> Path:
    """Read a path; the file need not exist.

    :raises ArgumentTypeError: no file can have this path, or it is empty: that would mean the working
        directory.
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
    """Read a text that is not empty; an empty one often comes from an unset variable of a script.

    :raises ArgumentTypeError: the text is empty.
    """
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty; write a value")
    return text


def words(text: str) -> tuple[str, ...]:
    """Read words separated by commas.

    :raises ArgumentTypeError: the text has no word.
    """
    found = tuple(word.strip() for word in text.split(",") if word.strip())
    if not found:
        raise argparse.ArgumentTypeError("it has no name; write names separated by commas")
    return found
