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
# ruff: noqa: PTH112, PTH113, PTH118

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from npl_index import errors
from npl_index.library.documents import Library
from npl_index.library.files import Folder
from npl_index.library.references import UNSPEAKABLE, check_name, near_names
from npl_index.library.roots import real_path, resolve, too_many

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


@dataclass(frozen=True, slots=True)
class Scaffolded:
    """The result of :func:`scaffold`.

    :param made: paths of the new files; each begins with ``directive/``.
    :param kept: paths of the files that existed.
    """

    made: tuple[str, ...]
    kept: tuple[str, ...]


class Directive:
    """The ``directive/`` folder of the first search root that has one.

    :param library: files below the search roots.
    :raises DocumentNotFoundError: no root has the folder.
    :raises OutsideRootError: the folder is a link that leads out of every root.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._folder = self._find()

    def _find(self) -> str:
        roots = self._library.roots
        for root in roots:
            folder = resolve(root.path, NAME)
            if folder is not None and roots.is_there(folder, NAME) and os.path.isdir(folder):
                return folder
        raise errors.DocumentNotFoundError(f"{NAME}/ directory not found", hint=_INIT)

    def files(self) -> tuple[str, ...]:
        """Return the sorted paths of all files; each begins with ``directive/``.

        Hidden files, hidden folders, linked folders and links that leave the folder are left out.

        :raises DocumentTooLargeError: the folder has more files, entries or levels than the limits allow.
        """
        limits, waiting, looked_at, paths = self._library.limits, [""], 0, list[str]()
        while waiting:
            below = waiting.pop()
            if below.count("/") > limits.max_depth:
                raise too_many(f"{limits.max_depth} levels of folders")
            for entry in _entries(os.path.join(self._folder, below)):
                looked_at += 1
                if looked_at > limits.max_entries:
                    raise too_many(f"{limits.max_entries:,} entries")
                path = below + entry.name
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{path}/")
                elif os.path.isfile(entry.path) and self._real_below(entry.path) is not None:
                    paths.append(f"{NAME}/{path}")
                    if len(paths) > limits.max_files:
                        raise too_many(f"{limits.max_files:,} files")
        return tuple(sorted(paths))

    def _real_below(self, path: str) -> str | None:
        """Return the real path of a path; ``None`` if it is not below the folder."""
        real = real_path(path)
        return real if real is not None and Path(real).is_relative_to(self._folder) else None

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
        clean = os.path.normpath(path.lstrip("/").removeprefix(f"{NAME}/"))
        if clean.split(os.sep, 1)[0] == os.pardir:
            raise _outside(path)
        text = self._file_text(clean, path)
        if text is None:
            raise self._missing(path)
        return text

    def _file_text(self, clean: str, name: str) -> str | None:
        """Return the text of a file; ``None`` if it does not exist.

        :param clean: normal path below the folder.
        :param name: name of the file for messages.
        """
        whole = os.path.join(self._folder, clean)
        if not os.path.lexists(whole) or os.path.isdir(whole):
            return None
        real = self._real_below(whole)
        if real is None:
            raise _outside(name)
        if not os.path.lexists(real):
            return None
        data = self._library.read(self._library.roots.regular(real, name, ("",))).data
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise errors.UnreadableDocumentError(f"{name!r} is not UTF-8 text") from None

    def _missing(self, path: str) -> errors.NPLError:
        known: tuple[str, ...] = ()
        with suppress(errors.DocumentTooLargeError):
            known = self.files()
        near = near_names(f"{NAME}/{path.lstrip('/').removeprefix(f'{NAME}/')}", known)
        hint = None if near else "directive_files_list names all files"
        return errors.DocumentNotFoundError(f"File not found under {NAME}/: {path}", near=near, hint=hint)

    def bundle(self, kind: str) -> Bundle:
        """Return a template with the operating procedure, the context and the primer.

        :param kind: one of :data:`KINDS`.
        :raises DocumentNotFoundError: one of the three files is missing; the hint names the templates.
        """
        procedure, context, template = map(self.part, (PROCEDURE, CONTEXT, f"{TEMPLATES}/{kind}_template.md"))
        resources = tuple(Resource(part.path) for part in (procedure, context, template))
        return Bundle(primer_of(procedure.content), procedure, context, template, resources)

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
            hint += f"; existing templates: {', '.join(self._templates()) or 'none'}"
        raise errors.DocumentNotFoundError(problem, hint=hint)

    def _templates(self) -> list[str]:
        """Return the sorted names of the templates."""
        folders = [os.path.join(self._folder, place, TEMPLATES) for place in _PLACES]
        return sorted({entry.name for folder in folders for entry in _entries(folder)})


def primer_of(procedure: str) -> str:
    """Return the first line of the procedure about when to write code, without marks of emphasis.

    :param procedure: text of the operating procedure.
    """
    lines = (line for line in procedure.splitlines() if any(words in line for words in _PRIMERS))
    return next(lines, FALLBACK_PRIMER).replace("**", "").strip()


def scaffold(folder: Path) -> Scaffolded:
    """Write the files of a new ``directive/`` folder; existing files stay unchanged.

    :param folder: folder of the project.
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
        there = [path for path in older if os.path.lexists(folder / path)]
        if there or not _write_new(folder / new, source.read_bytes(), new):
            kept += there or [new]
        else:
            made.append(new)
    return Scaffolded(tuple(made), tuple(kept))


def _write_new(target: Path, data: bytes, name: str) -> bool:
    """Write a new file in one step; return ``False`` if the name is taken.

    :param name: name of the file for messages.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with Folder.opened(target.parent) as folder:
            return folder.create(target.name, data)
    except FileExistsError:
        raise errors.UnreadableDocumentError(f"{name!r} cannot be written: not a directory") from None
    except OSError as error:
        problem = (error.strerror or "unknown system error").lower()
        raise errors.UnreadableDocumentError(f"{name!r} cannot be written: {problem}") from None


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """Return the visible entries of a folder with printable names; empty if it cannot be read."""
    with suppress(OSError), os.scandir(folder) as entries:
        return [entry for entry in entries if entry.name[0] != "." and not UNSPEAKABLE.search(entry.name)]
    return []


def _outside(path: str) -> errors.OutsideRootError:
    hint = f"use a path below it, e.g. reference/{CONTEXT}"
    return errors.OutsideRootError(f"{path!r} lies outside {NAME}/", hint=hint)
