"""One function opens files; this module lists the exceptions with their reasons."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import npl_index
import npl_mcp

PACKAGES = [Path(package.__file__).parent for package in (npl_index, npl_mcp)]

# What opens a file if it is called: plain names, and attributes of whatever object.
NAMES = {"open"}
ATTRIBUTES = {"open", "fdopen", "read_text", "read_bytes", "write_text", "write_bytes", "copyfile", "copy2"}
ATTRIBUTES |= {"copytree", "mkfifo", "mknod", "open_code", "FileIO", "TemporaryFile", "NamedTemporaryFile"}

ONE_WAY = "npl_index/library/files.py"

OWN = "a file that comes with the program"
DEVICE = "the null device, which takes the place of a stream"
FOLDER = "the one way itself: a method of Folder, or a file that it opened"
PRIVATE = "in the data folder, into which nobody else can put anything"

DATABASE = "the database; its driver opens what it has"

ALLOWED = {
    "npl_index/ranking/wordlists.py": {
        "resources.files('npl_index').joinpath('data').joinpath(name).read_text": OWN
    },
    "npl_index/tokens/estimated.py": {"(_DATA / f'tokens.{name}.gz').read_bytes": OWN},
    "npl_index/index/building.py": {"os.fdopen": "a pipe to a worker"},
    "npl_mcp/documents/creating.py": {
        """(_TEMPLATES / f"{kind.lower().replace(' ', '_')}.md").read_text""": OWN
    },
    "npl_mcp/projects/directive.py": {"source.read_bytes": OWN},
    "npl_mcp/questions/testing.py": {"Path(path).open": "the user named it on the command line"},
    "npl_mcp/questions/trial.py": {"path.write_bytes": "in a folder of its own that it just made"},
    "npl_mcp/tools/contract/aliases.py": {"FILE.read_text": OWN},
    "npl_mcp/tools/contract/spec.py": {"EXAMPLES.read_text": OWN},
    "npl_mcp/cli/terminal/arguments.py": {"EXAMPLES.read_text": OWN},
    "npl_mcp/server/server.py": {"_ICON.read_bytes": OWN},
    "npl_mcp/cli/commands/raw_files.py": {
        "Path(given.file).read_text": "the user named it on the command line, and it may be a pipe"
    },
    "npl_mcp/cli/commands/checks.py": {
        "Path(given.junit).write_text": "the user named it on the command line, and it may be a pipe"
    },
    "npl_mcp/cli/terminal/display.py": {"os.open": DEVICE},
    "npl_mcp/server/stdio.py": {
        "open": DEVICE,
        "io.FileIO": "a copy of standard input",
        "os.fdopen": "a copy of standard output",
    },
    "npl_mcp/config/server_state.py": {
        "open": f"{PRIVATE}; importing the one way takes as long as the call",
        "os.open": f"{PRIVATE}; importing the one way takes as long as the call",
    },
    "npl_mcp/http/service.py": {"os.open": PRIVATE},
    "npl_mcp/cli/commands/serving.py": {
        "os.open": PRIVATE,
        "os.fdopen": PRIVATE,
        "log.read_bytes": PRIVATE,
        "webbrowser.open": "an address",
    },
    "npl_mcp/projects/git.py": {
        "tempfile.TemporaryFile": "it has no name",
        "open": "the system's file on a process of our own",
    },
    "npl_mcp/stores/base/database.py": {"self.open": DATABASE},
    "npl_mcp/stores/copying.py": {"source.database.open": DATABASE, "target.database.open": DATABASE},
    "npl_mcp/app/document_sets.py": {"os.open": "a folder, to lock it"},
    "npl_mcp/stores/worklog/transfer.py": {"folder.open": FOLDER, "os.fdopen": FOLDER},
    "npl_mcp/stores/base/migrating.py": {"file.read_text": "of the program's own"},
}


def opened(source: str) -> Iterator[str]:
    """Return the callables that open a file, as they are written."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func
            plain = isinstance(name, ast.Name) and name.id in NAMES
            if plain or (isinstance(name, ast.Attribute) and name.attr in ATTRIBUTES):
                yield ast.unparse(name)


def test_files_are_opened_in_one_place() -> None:
    """Each other opening has a row in the table, and each row an opening."""
    openings = {
        f"{package.name}/{path.relative_to(package).as_posix()}": set(
            opened(path.read_text(encoding="utf-8"))
        )
        for package in PACKAGES
        for path in package.rglob("*.py")
    }
    del openings[ONE_WAY]
    assert {name: calls for name, calls in openings.items() if calls} == {
        name: set(calls) for name, calls in ALLOWED.items()
    }


@pytest.mark.parametrize(
    "written",
    ["open(a)", "io.open(a)", "Path(a).read_text()", "a.open('rb')", "os.open(a, 0)", "os.fdopen(1)"],
)
def test_every_way_of_opening_is_seen(written: str) -> None:
    """The walk recognizes every form of opening a file."""
    assert len(list(opened(written))) == 1
