"""The versions of Python that the package supports, and their places on this machine."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.packaging.project import PROJECT

CLASSIFIER = "Programming Language :: Python :: "
SAY_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def supported() -> list[str]:
    """Return the versions that the project file names, as ``3.10``."""
    return [line.removeprefix(CLASSIFIER) for line in PROJECT["classifiers"] if line.startswith(CLASSIFIER)]


def find(version: str) -> str | None:
    """Return the path of an interpreter of this version that runs, if there is one."""
    return next((path for path in _candidates(version) if _says(path) == version), None)


def _candidates(version: str) -> Iterator[str]:
    """Yield what may be one: what the path names, and those of pyenv, whose names there may not run."""
    on_path = shutil.which(f"python{version}")
    if on_path:
        yield on_path
    versions = Path.home() / ".pyenv" / "versions"
    fitting = re.compile(re.escape(version) + r"\.\d+")
    for folder in sorted(versions.glob("*")):
        if fitting.fullmatch(folder.name):
            yield str(folder / "bin" / "python")


def _says(path: str) -> str:
    done = subprocess.run([path, "-c", SAY_VERSION], capture_output=True, text=True, check=False)
    return done.stdout.strip()


if __name__ == "__main__":
    print(find(supported()[0]) or sys.exit(f"no Python {supported()[0]} here"))
