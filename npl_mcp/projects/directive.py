"""The ``directive/`` folder of a project: its files, its templates with their context, its creation.

::

    directive/
      reference/agent_operating_procedure.md
      reference/agent_context.md
      reference/templates/spec_template.md, impact_template.md, tdr_template.md
      specs/<date-name>/spec.md, impact.md, tdr.md

Older projects have the files of ``reference/`` directly in ``directive/``; both places are read.
"""

# Lists of many files are handled as plain strings, as in npl_index.library.documents.
# ruff: noqa: PTH112, PTH113

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from npl_index import errors
from npl_index.library.documents import Library, Root
from npl_index.library.files import Folder
from npl_index.library.references import UNSPEAKABLE, check_name, near_names
from npl_index.library.roots import Roots, below_root, real_path, resolve, too_many

NAME = "directive"
"""Name of the folder, the first segment of paths in calls and answers."""

KINDS = ("spec", "impact", "tdr")
"""The kinds of templates."""

PROCEDURE = "agent_operating_procedure.md"
CONTEXT = "agent_context.md"
TEMPLATES = "templates"

SCAFFOLD = Path(__file__).parents[1] / "data" / NAME
"""The files of a new folder."""

FALLBACK_PRIMER = "Do not write code before the TDR is approved: spec, impact and TDR come first."
"""The primer if the operating procedure has no line for it."""

_PLACES = ("reference/", "")
_PRIMERS = ("Do not write code", "Do not start coding")
_INIT = "run 'npl-mcp directive init' to create it"


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file and its text.

    :param path: path with ``/`` between segments.
    :param content: text of the file, unchanged.
    """

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Resource:
    """A file of a bundle.

    :param path: path that begins with ``directive/``.
    """

    path: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """A template with the files that an agent needs to fill it in.

    :param primer: most important sentence of the operating procedure.
    :param agentOperatingProcedure: working rules for agents.
    :param agentContext: conventions of the project.
    :param template: template to fill in.
    :param resources: paths of the three files.
    """

    primer: str
    agentOperatingProcedure: TextFile  # noqa: N815 - name in released clients
    agentContext: TextFile  # noqa: N815 - name in released clients
    template: TextFile
    resources: tuple[Resource, ...]


class Directive:
    """The ``directive/`` folder of the first search root that has one.

    :param library: files below the search roots.
    :raises DocumentNotFoundError: no root has the folder.
    :raises OutsideRootError: the folder is a link that leads out of every root.
    """

    def __init__(self, library: Library) -> None:
        self._library, self._folder = library, self._find(library.roots)
        # The only root: no link leads out of it, and no file of it is ignored.
        self._roots = Roots([Root(self._folder, NAME)], library.limits)

    @staticmethod
    def _find(roots: Roots) -> str:
        for root in roots:
            folder = resolve(root.path, NAME)
            if folder is not None and roots.is_there(folder, NAME) and os.path.isdir(folder):
                return folder
        raise errors.DocumentNotFoundError(f"{NAME}/ directory not found", hint=_INIT)

    def files(self) -> tuple[str, ...]:
        """Return the sorted paths of all files; each begins with ``directive/``.

        Hidden files, hidden, linked and very deep folders, and links that leave the folder are left out.

        :raises DocumentTooLargeError: the folder has more files or entries than the limits allow.
        """
        limits, visited, paths = self._library.limits, 0, list[str]()
        for folder, folders, names in os.walk(self._folder):
            visited += len(folders) + len(names)
            below = folder.removeprefix(self._folder)
            folders[:] = filter(_is_shown, folders) if below.count("/") < limits.max_depth else ()
            files = (f"{below}/{name}" for name in names if _is_shown(name))
            paths += [f"{NAME}{file}" for file in files if self._is_inside(f"{self._folder}{file}")]
            if visited > limits.max_entries:
                raise too_many(f"{limits.max_entries:,} entries")
        if len(paths) > limits.max_files:
            raise too_many(f"{limits.max_files:,} files")
        return tuple(sorted(paths))

    def _is_inside(self, path: str) -> bool:
        """Return whether a path is a file, or a link to one, of the folder."""
        real = real_path(path)
        return real is not None and self._roots.locate(real) is not None and os.path.isfile(real)

    def _paths(self) -> tuple[str, ...]:
        """Return the paths of all files for messages; none if they are too many."""
        with suppress(errors.DocumentTooLargeError):
            return self.files()
        return ()

    def read(self, path: str) -> str:
        """Return the text of a file.

        :param path: path below the folder; ``directive/`` or ``/`` before it does not count.
        :raises InvalidRequestError: no file can have this name.
        :raises DocumentNotFoundError: the file does not exist.
        :raises OutsideRootError: the path or a link leads out of the folder.
        :raises UnreadableDocumentError: the file is not a regular file, or not UTF-8.
        :raises DocumentTooLargeError: the file is larger than the limit.
        """
        check_name(path, "path")
        below = path.lstrip("/").removeprefix(f"{NAME}/")
        text = self._file_text(below, path)
        if text is None:
            near = near_names(f"{NAME}/{below}", self._paths())
            hint = None if near else "directive_files_list names all files"
            raise errors.DocumentNotFoundError(f"File not found under {NAME}/: {path}", near=near, hint=hint)
        return text

    def _file_text(self, below: str, name: str) -> str | None:
        """Return the text of a file; ``None`` if it does not exist.

        :param below: path below the folder.
        :param name: name of the file for messages.
        """
        clean = os.path.normpath(below)
        if clean.split(os.sep, 1)[0] == os.pardir:
            hint = f"give a path below {NAME}/; directive_files_list names all files"
            raise errors.OutsideRootError(f"{name!r} lies outside {NAME}/", hint=hint)
        real = resolve(self._folder, clean)
        if real is None or not self._roots.is_there(real, name) or os.path.isdir(real):
            return None
        data = self._library.read(self._roots.regular(real, name, ("",))).data
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise errors.UnreadableDocumentError(f"{name!r} is not UTF-8 text") from None

    def bundle(self, kind: str) -> Bundle:
        """Return a template with the operating procedure, the context and the primer.

        :param kind: one of :data:`KINDS`.
        :raises DocumentNotFoundError: one of the three files is missing; the hint names the templates.
        """
        procedure, context, template = map(self.part, (PROCEDURE, CONTEXT, f"{TEMPLATES}/{kind}_template.md"))
        resources = tuple(Resource(part.path) for part in (procedure, context, template))
        lines = (line for line in procedure.content.splitlines() if any(words in line for words in _PRIMERS))
        primer = next(lines, FALLBACK_PRIMER).replace("**", "").strip()
        return Bundle(primer, procedure, context, template, resources)

    def part(self, name: str) -> TextFile:
        """Return one file of a bundle.

        :param name: path below ``reference/``.
        :raises DocumentNotFoundError: the file is missing; for a template, the hint names the others.
        """
        for place in _PLACES:
            path = f"{NAME}/{place}{name}"
            text = self._file_text(place + name, path)
            if text is not None:
                return TextFile(path, text)
        problem = f"Missing {NAME}/{_PLACES[0]}{name}"
        hint = "'npl-mcp directive init' adds the missing files"
        if name.startswith(f"{TEMPLATES}/"):
            parts = [path.split("/") for path in self._paths()]
            present = sorted({part[-1] for part in parts if part[-2] == TEMPLATES})
            hint += f"; existing templates: {', '.join(present) or 'none'}"
        raise errors.DocumentNotFoundError(problem, hint=hint)


def _is_shown(name: str) -> bool:
    return name[0] != "." and not UNSPEAKABLE.search(name)


def scaffold(folder: Path) -> tuple[list[str], list[str]]:
    """Write the files of a new ``directive/`` folder; existing files stay unchanged.

    :param folder: folder of the project.
    :returns: paths of the new files and of those that existed; each begins with ``directive/``.
    :raises InvalidRequestError: the folder does not exist.
    :raises UnreadableDocumentError: a file cannot be written; files written before it stay.
    """
    if not folder.is_dir():
        raise errors.InvalidRequestError(f"{str(folder)!r} is not a folder", hint="give the project's folder")
    made: list[str] = []
    kept: list[str] = []
    for source in sorted(SCAFFOLD.rglob("*.md")):
        name = source.relative_to(SCAFFOLD / _PLACES[0]).as_posix()
        new, *older = (f"{NAME}/{place}{name}" for place in _PLACES)
        present = [path for path in older if os.path.lexists(folder / path)]
        if present or not _write_new(folder, new, source.read_bytes()):
            kept += present or [new]
        else:
            made.append(new)
    return made, kept


def _write_new(project: Path, name: str, data: bytes) -> bool:
    """Write a new file below a folder in one step; return ``False`` if the name is taken."""
    above, _, last = name.rpartition("/")
    try:
        with Folder.opened(*below_root(project, above), make=True) as folder:
            return folder.create(last, data)
    except OSError as error:
        problem = (error.strerror or "unknown system error").lower()
        raise errors.UnreadableDocumentError(f"{name!r} cannot be written: {problem}") from None
