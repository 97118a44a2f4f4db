"""The required contents of published archives."""

import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.packaging.project import PROJECT, ROOT

BASE = f"{PROJECT['name'].replace('-', '_')}-{PROJECT['version']}"
PACKAGES = ("npl_index", "npl_mcp")
CORPUS = "corpus"
# What is needed to test, build and publish again from the source alone.
SOURCES = (
    "pyproject.toml", "requirements.txt", "Makefile", "LICENSE", "README.md", "Dockerfile", "compose.yaml",
    "tests/conftest.py", "tests/cases", "tests/packaging/build.py", "benchmarks/common.py", "docs",
    "server.json", "bundle", "plugin", ".claude-plugin", ".github", "SECURITY.md",
)  # fmt: skip


def expected_in_wheel() -> set[str]:
    """Return the names a wheel has, without those about itself: all files of the packages and the corpus."""
    packages = {name for package in PACKAGES for name in files_below(package)}
    return packages | {f"npl_mcp/{name}" for name in files_below(CORPUS)}


def files_below(folder: str, base: Path = ROOT) -> Iterator[str]:
    """Yield the names of a folder's files, relative to the project or to another base."""
    for path in (base / folder).rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            yield path.relative_to(base).as_posix()


def expected_in_sdist() -> set[str]:
    """Return names a source archive has among others."""
    files = {name for name in SOURCES if (ROOT / name).is_file()}
    below = {name for source in (*PACKAGES, CORPUS, *SOURCES) for name in files_below(source)}
    return files | below


def in_wheel(wheel: Path) -> set[str]:
    """Return the names in a wheel, without those about itself."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.startswith(f"{BASE}.dist-info/")}


def installed(folder: Path) -> set[str]:
    """Return the names of the packages' files where pip installed them."""
    return {name for package in PACKAGES for name in files_below(package, folder)}


def in_sdist(sdist: Path) -> set[str]:
    with tarfile.open(sdist) as archive:
        return {member.name.removeprefix(f"{BASE}/") for member in archive if member.isfile()}
