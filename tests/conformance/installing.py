"""Installs the suite and the clients in exact versions into a folder next to the sources."""

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from processes import CheckError, run

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / ".conformance"
INSTALL_SECONDS = 300.0
PAUSE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Installed:
    """Where everything lies.

    :param node: Node.js 22, which the suite needs.
    :param modules: the installed npm packages.
    :param clients: scripts that use them.
    :param python: an interpreter with a client library of its own.
    """

    node: Path
    modules: Path
    clients: Path
    python: Path


def install() -> Installed:
    """Install what is not there yet.

    :raises CheckError: npm is missing or an installation fails twice.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise CheckError("npm is not there: install Node.js with npm")
    FOLDER.mkdir(exist_ok=True)
    # Neither git nor what respects its settings looks into the folder.
    (FOLDER / ".gitignore").write_text("*\n")
    with ThreadPoolExecutor() as pool:
        for step in (pool.submit(_packages, npm), pool.submit(_environment)):
            step.result()
    modules = FOLDER / "node_modules"
    # A script finds packages only next to itself.
    clients = shutil.copytree(HERE / "clients", FOLDER / "clients", dirs_exist_ok=True)
    nodes = list(modules.glob("node-linux-*/bin/node"))
    if not nodes:
        raise CheckError("npm has no Node.js 22 for this machine: the suite runs on Linux, x64 or arm64")
    return Installed(nodes[0], modules, clients, FOLDER / "python" / "bin" / "python")


def _packages(npm: str) -> None:
    source = HERE / "package.json"
    if _known("npm", source):
        return
    shutil.copy(source, FOLDER)
    options = ("--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")
    _twice([npm, "install", *options])
    _remember("npm", source)


def _environment() -> None:
    source = HERE / "requirements.txt"
    if _known("python", source):
        return
    folder = FOLDER / "python"
    _twice([sys.executable, "-m", "venv", "--clear", folder])
    pip = (folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _twice([*pip, "--requirement", source])
    _remember("python", source)


def _twice(command: Sequence[object]) -> None:
    try:
        _once(command)
    except CheckError:
        time.sleep(PAUSE_SECONDS)
        _once(command)


def _once(command: Sequence[object]) -> None:
    done = run(command, os.environ, FOLDER, INSTALL_SECONDS)
    if done.code:
        raise CheckError(f"{Path(str(command[0])).name} cannot install: {done.words}")


def _mark(source: Path) -> str:
    return hashlib.sha256(source.read_bytes() + sys.version.encode()).hexdigest()


def _known(name: str, source: Path) -> bool:
    stamp = FOLDER / f"{name}.installed"
    return stamp.is_file() and stamp.read_text() == _mark(source)


def _remember(name: str, source: Path) -> None:
    (FOLDER / f"{name}.installed").write_text(_mark(source))
