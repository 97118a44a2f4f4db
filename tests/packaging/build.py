"""``make package``: build what is published, check it, and let each of it serve its first answer.

Prints a line for each step, and ends with an error at the first that fails. Environments are made by the pip
of this one, two at a time, so that its cache serves all of them.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.packaging import bundling, contents, extras, pythons
from tests.packaging.first_answer import first_answer
from tests.packaging.project import PROJECT, ROOT

DIST = ROOT / "dist"
AT_ONCE = 2


def main() -> None:
    """Build in ``dist``, and try everything elsewhere."""
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        wheel, sdist = build(ROOT, DIST)
        check_contents(wheel, sdist, folder / "again")
        run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist))
        print(f"{wheel.name} and {sdist.name}: complete, and accepted by twine", flush=True)
        bundle = bundling.write(wheel, DIST)
        with ThreadPoolExecutor(AT_ONCE) as workers:
            tried = [
                (f"Python {version}", workers.submit(try_with, version, wheel, folder / version))
                for version in pythons.supported()
            ]
            tried.append((bundle.name, workers.submit(try_bundle, bundle, folder / "bundle")))
            for name, result in tried:
                print(f"{name}: {result.result()}", flush=True)


def build(source: Path, out: Path) -> tuple[Path, Path]:
    """Return the wheel and the source archive of a folder with the project."""
    run(sys.executable, "-m", "hatchling", "build", "--directory", str(out), cwd=source)
    (wheel,) = out.glob("*.whl")
    (sdist,) = out.glob("*.tar.gz")
    return wheel, sdist


def check_contents(wheel: Path, sdist: Path, folder: Path) -> None:
    """Compare the archives with the tree, and with what pip installs from the source archive."""
    same("the wheel", contents.in_wheel(wheel), contents.expected_in_wheel())
    needed = contents.expected_in_sdist()
    same("the source archive", contents.in_sdist(sdist) & needed, needed)
    install(sys.executable, "--no-deps", "--target", str(folder), str(sdist))
    same("what is installed from the source archive", contents.installed(folder), contents.in_wheel(wheel))


def same(what: str, actual: set[str], expected: set[str]) -> None:
    if actual != expected:
        missing, more = sorted(expected - actual), sorted(actual - expected)
        raise SystemExit(f"{what} lacks {missing} and has {more} in addition to what it should")


def try_with(version: str, wheel: Path, folder: Path) -> str:
    """Try the wheel in a new environment, alone and then with all extras; return a summary."""
    base = pythons.find(version)
    if base is None:
        return "not here, not tried"
    environment = folder / "env"
    run(base, "-m", "venv", "--without-pip", str(environment))
    python, program = (str(environment / "bin" / name) for name in ("python", PROJECT["name"]))
    install(python, str(wheel))
    tools = first_answer(lambda notes: [program, "--root", str(notes)], folder / "base")
    extras.check(program, folder / "without", complete=False)
    install(python, f"{wheel}[all]")
    first_answer(lambda notes: [program, "--root", str(notes)], folder / "all")
    extras.check(program, folder / "with", complete=True)
    return f"installed, {tools} tools, first answer served, without extras and with all of them"


def try_bundle(bundle: Path, folder: Path) -> str:
    """Try the bundle as a host opens it; return a summary."""
    if shutil.which("uv") is None:
        return "uv is not here, not tried"
    opened = folder / "opened"
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(opened)
    tools = first_answer(lambda notes: bundling.command(opened, notes), folder / "try")
    return f"opened, {tools} tools, first answer served"


def install(python: str, *what: str) -> None:
    """Install for an interpreter; its modules are compiled when they are first used."""
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    run(*pip, "install", "--quiet", "--no-compile", *what)


def run(*command: str, cwd: Path | None = None) -> None:
    """Run a program quietly; show what it wrote and stop if it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
