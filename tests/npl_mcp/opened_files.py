"""The Markdown files that a test opens."""

import builtins
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def opened() -> Iterator[list[str]]:
    """Yield the names of the Markdown files that this process opens meanwhile.

    An audit hook would stay for good. Each trace function that is set later, as coverage does in each thread,
    would run it; other threads may go on meanwhile, and Python refuses to let two set theirs at once.
    """
    names: list[str] = []

    def noting(of: Callable[..., Any]) -> Callable[..., Any]:
        def noted(file: Any, *arguments: Any, **options: Any) -> Any:
            if str(file).endswith(".md"):
                names.append(Path(str(file)).name)
            return of(file, *arguments, **options)

        return noted

    with pytest.MonkeyPatch.context() as patch:
        for module in (os, io, builtins):
            patch.setattr(module, "open", noting(module.open))
        yield names
