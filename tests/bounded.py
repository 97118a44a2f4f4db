"""Read one hostile input in its own process, under limits of the system: for :mod:`tests.test_bounds`.

    python -m tests.bounded READER FOLDER

Prints what the reader answers. The limits are set when everything is imported: whatever needs more memory
ends in a :class:`MemoryError`, whatever needs more time is ended by the system.
"""

import math
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

from npl_index.errors import NPLError
from npl_index.library.catalog import Catalog, Root
from npl_index.library.documents import Document, DocumentRef, Library
from npl_index.library.fingerprints import Fingerprint
from npl_index.library.ignoring import Ignoring
from npl_index.library.patterns import PathPattern
from npl_index.markdown.editing import edit_section
from npl_index.markdown.front_matter import divide, values
from npl_index.markdown.links import references
from npl_index.ranking.indexing import index_document
from npl_index.selectors.grammar import compile_selector
from npl_mcp.app.app import App
from npl_mcp.calls.arguments import from_text
from npl_mcp.calls.messages import exceeded
from npl_mcp.config.clients import npl_entries
from npl_mcp.config.settings import Settings
from npl_mcp.documents.editor import read_sections
from npl_mcp.documents.projects import Projects
from npl_mcp.projects.git import visible
from npl_mcp.questions.files import problems_of, question_files
from npl_mcp.stores.worklog.transfer import read_object
from npl_mcp.web.markdown import markdown

SECONDS = 6
MEGABYTES = 500
INPUT = "input"


def _settings(folder: Path) -> object:
    os.chdir(folder)
    return Settings.from_env()


def _problems(folder: Path) -> object:
    projects = Projects(folder, ())
    return projects.all(), projects.problems()


def _parts_of_front_matter(folder: Path) -> object:
    parts = values(divide((folder / INPUT).read_text())[0])
    return {kind.__name__: sum(type(part) is kind for part in parts.values()) for kind in (str, list, dict)}


def _sections(folder: Path) -> object:
    data, state = (folder / INPUT).read_bytes(), Fingerprint(str(folder / INPUT), 0, 0)
    document = Document("x", INPUT, state, data, "", npl=False)
    return len(index_document(document, deadline=time.monotonic() + 60).tree.sections)


def _questions(folder: Path) -> object:
    settings = Settings(folder, folder, roots=(folder,), data_dir=folder / "data", cache_mode="memory")
    with closing(App(settings)) as app:
        files = question_files(app)
        return len(files), problems_of(files)[-1]


def _argument(folder: Path) -> object:
    text = (folder / INPUT).read_text()
    return exceeded(text.encode()) or type(from_text(text, list)).__name__


def _edit(folder: Path) -> object:
    data = (folder / INPUT).read_bytes()
    tree = read_sections(data, "x")
    return len(edit_section(data, tree, 1, "replace", "Text.", partial(read_sections, name="x"))[0])


def _walk(folder: Path) -> object:
    deep = folder.joinpath(*"d" * 28)
    deep.mkdir(parents=True)
    for number in range(400):
        (deep / f"f{number}.md").touch()
    root = Root(str(folder), "docs")
    return len(Library([root], Catalog(()), searched=[root], ignoring=Ignoring(True)).find(DocumentRef()))


def _name(folder: Path) -> object:
    roots = [Root(f"{folder}/{number}", str(number)) for number in range(20)]
    return Library(roots, Catalog(())).find(DocumentRef((folder / INPUT).read_text()))


def _pattern(folder: Path) -> object:
    return PathPattern.compile((folder / INPUT).read_text().split("/"), parameter="file")


def _ignored(folder: Path) -> object:
    (folder / ("a" * 200 + ".md")).touch()
    rules = Ignoring(gitignore=True).within(str(folder), str(folder), None)
    return [bool(rules and rules.label_of(str(path), False)) for path in folder.iterdir()]


READERS: Mapping[str, Callable[[Path], object]] = {
    "settings": _settings,
    "project": _problems,
    "client": lambda folder: list(npl_entries(folder / "home", folder)),
    "front matter": _parts_of_front_matter,
    "Markdown": _sections,
    "links": lambda folder: len(list(references((folder / INPUT).read_text()))),
    "edit": _edit,
    "questions": _questions,
    "page": lambda folder: len(markdown((folder / INPUT).read_text())) // 1_000_000,
    "JSON": _argument,
    "worklog": lambda folder: read_object((folder / INPUT).read_bytes()),
    "name": _name,
    "pattern": _pattern,
    "rules": _ignored,
    "walk": _walk,
    "selector": lambda folder: compile_selector((folder / INPUT).read_text()),
    "git": lambda folder: visible(str(folder), "here", 2.0),
}


def main(reader: str, folder: str) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = math.ceil(used.ru_utime + used.ru_stime) + SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    resource.setrlimit(resource.RLIMIT_DATA, (MEGABYTES << 20, MEGABYTES << 20))
    try:
        print(READERS[reader](Path(folder)))
    except NPLError as error:
        print(error)


if __name__ == "__main__":
    main(*sys.argv[1:])
