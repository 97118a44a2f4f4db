"""Edits of a section of a Markdown file below a root of the user, and new files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from npl_index.errors import InvalidRequestError, SectionNotFoundError
from npl_index.library.documents import DocumentFile, DocumentRef
from npl_index.library.references import MARKDOWN_SUFFIXES, document_name, has_suffix, path_ends, plain_name
from npl_index.library.roots import as_named, below_root, outside, refuse_questions
from npl_index.markdown.sections import SectionTree, digest_of, section_digest
from npl_index.selectors.grammar import Selector, compile_selector
from npl_index.selectors.matching import Scope
from npl_index.selectors.selection import heads_in
from npl_index.selectors.writing import narrowed, qualified, steps_of
from npl_index.tokens.sections import trimmed_text
from npl_mcp.app.context import Context
from npl_mcp.app.file_view import lies_in, may_write, npl_folders, real_paths
from npl_mcp.app.schemes import SCHEMES, refuse_removed
from npl_mcp.documents.editor import MAX_SECTION_TEXT, SectionEdit, bytes_of, parse_digest, read_sections
from npl_mcp.documents.folders import SharedFolder, is_hidden
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.errors import NotAllowedError

Operation = Literal["replace", "append", "prepend", "delete", "create"]

_MAX_LISTED = 10

_HOW_TO_WRITE = "start the server with --write, NPL_WRITE=1, or write = true in the user's npl.toml"


@dataclass(frozen=True, slots=True)
class EditedSection:
    """An edited section, the parent of a deleted section, or a new file.

    :param file: path of its file below the root.
    :param selector: selector of the section after the edit; ``append`` with it restores a deleted section.
    :param tokens: tokens of the section after the edit, with its subsections.
    :param tokens_before: tokens of the section before the edit.
    :param removed: headings of removed subsections; the heading of a deleted section comes first.
    :param lines: former line numbers of a deleted section.
    :param unchanged: true if the section already had this content, so that nothing was written.
    :param digest: digest of the section; send it as ``expect`` to change only this state.
    """

    file: str
    selector: str
    tokens: int
    tokens_before: int
    removed: tuple[str, ...] | None
    lines: str | None
    unchanged: bool | None
    digest: str


def update_section(
    app: Context, file: str, operation: str, selector: str, content: str, expect: str | None
) -> EditedSection:
    """Edit a section and write the file, or create a file.

    :param file: name of one file below a root of the user.
    :param operation: one of :data:`Operation`.
    :param selector: selector of one section of the file; not used for a new file.
    :param content: new text; not used to delete a section.
    :param expect: digest of the section; only this state is changed. Required for deletion: only a caller
        that has read a section can restore it.
    :raises NotAllowedError: the settings do not allow edits, or not of this file.
    :raises InvalidRequestError: an argument is invalid, or the content is invalid at this place.
    :raises SelectorSyntaxError: the selector is not valid.
    :raises DocumentNotFoundError: the file does not exist.
    :raises DocumentError: the file cannot be read.
    :raises SectionNotFoundError: no section or several sections match.
    :raises ConflictError: the section has changed, or another program is writing the file.
    :raises AlreadyExistsError: a file with the name of the new one exists.
    :raises TooLargeError: the file would be too large.
    :raises StorageError: the file cannot be written.
    """
    check_write(app)
    if operation == "delete":
        checks.text(expect or "", "expect", hint="give the digest from the answer that you read")
    else:
        checks.text(content, "content", MAX_SECTION_TEXT, "give a text; operation delete removes a section")
    if operation == "create":
        return _create_file(app, file, content)
    wanted = _single_section(compile_selector(checks.text(selector, "selector")), operation)
    target = Target.of(app, DocumentRef(file=file))
    edit = target.edit(wanted, operation, content, expect)
    folder, name = target.place()
    new = folder.change(name, target.label, edit)
    before, after = edit.before, edit.after
    own = wanted.depth == 0
    index = _representative(after, edit.index)  # the edit may have added a title
    deleted = before.sections[edit.edited].whole
    return EditedSection(
        file=target.label,
        selector=narrowed(target.selectors(after, [index])[0], own=own),
        tokens=_section_tokens(app, after, index, own=own),
        tokens_before=_section_tokens(app, before, edit.index, own=own),
        removed=edit.removed,
        lines=f"{deleted.start + 1}-{deleted.stop}" if edit.edited != edit.index else None,
        unchanged=True if new == edit.data else None,
        digest=digest_of(bytes_of(after, index, new, whole=not own)),
    )


def _create_file(app: Context, file: str, content: str) -> EditedSection:
    target = Target.new(app, file)
    data = (content if content.endswith(("\n", "\r")) else f"{content}\n").encode()
    tree = target.read(data)
    folder, name = target.place()
    folder.create(name, target.label, data)
    index = _representative(tree, 0)
    (selector,), digest = target.selectors(tree, [index]), digest_of(bytes_of(tree, index, data))
    tokens = _section_tokens(app, tree, index)
    return EditedSection(target.label, selector, tokens, 0, None, None, None, digest)


@dataclass(frozen=True, slots=True)
class Target:
    """A file that may be edited.

    :param app: context of the call.
    :param file: location of the file.
    :param label: name of the file in answers.
    :param aliases: other names of the file in selectors.
    """

    app: Context
    file: DocumentFile
    label: str
    aliases: tuple[str, ...]

    @classmethod
    def of(cls, app: Context, ref: DocumentRef) -> Target:
        """Find the file of a reference."""
        locations = app.documents.find(ref)
        labels = app.documents.names(locations[:_MAX_LISTED])
        if len(locations) > 1:
            problem, hint = f"{ref.file!r} names {len(locations):,} files", f"name one: {', '.join(labels)}"
            raise InvalidRequestError(problem, parameter="file", hint=hint)
        check_writable(app, locations[0], labels[0])
        return cls(app, locations[0], labels[0], app.documents.aliases(ref, locations)[0])

    @classmethod
    def new(cls, app: Context, file: str) -> Target:
        """Return the target for a new file: below the first root that contains its folder.

        Links to folders are followed, as in reading, while they stay below the root.
        """
        clean = os.path.normpath(plain_name(DocumentRef(file=file).file or ""))
        refuse_removed(clean)
        _check_scheme(clean.partition(":")[0], file)
        refuse_questions(clean, file)
        if not has_suffix(clean, MARKDOWN_SUFFIXES):
            hint = f"names end in {', '.join(MARKDOWN_SUFFIXES)}"
            raise InvalidRequestError(f"{file!r} is not Markdown", parameter="file", hint=hint)
        given, places = real_paths(app.settings.roots), []
        for root, path in app.library.roots.spelled(clean):
            spelled, path = path, as_named(root.path, path)
            with suppress(OSError):
                real, below = below_root(root.path, os.path.dirname(path))  # noqa: PTH120
                located = DocumentFile(root, f"{below}/{os.path.basename(path)}".lstrip("/"), root.label)  # noqa: PTH119
                # A label selects the root.
                places.append((spelled == clean, real not in given, not Path(real, below).is_dir(), located))
        if not places:
            raise outside(file)
        *_, located = min(places, key=lambda place: place[:3])
        (label,) = app.documents.names([located])
        check_writable(app, located, label)
        if located.path.count("/") > app.settings.limits.max_depth:
            raise InvalidRequestError("the path has too many folders to be searched", parameter="file")
        return cls(app, located, label, ())

    def place(self) -> tuple[SharedFolder, str]:
        """Return the file's folder, and its name in it."""
        below, _, name = self.file.path.rpartition("/")
        return SharedFolder(self.file.root.path, below, self.app.settings.limits.max_bytes), name

    def read(self, data: bytes) -> SectionTree:
        """Parse the sections of a content, with the time limit of the settings."""
        name, until = document_name(self.label).rpartition("/")[2], self.app.clock(self.label).moment
        return read_sections(data, name, until)

    def edit(self, wanted: Selector, operation: str, content: str, expect: str | None = None) -> SectionEdit:
        """Return the edit of the section that a selector selects."""
        find, whole = partial(self.section, wanted), wanted.depth is None
        return SectionEdit(self.label, self.read, find, operation, content, parse_digest(expect), whole=whole)

    def selectors(self, tree: SectionTree, sections: Sequence[int]) -> tuple[str, ...]:
        """Return the shortest selectors of some sections of a content."""
        steps = steps_of(tree)
        return tuple(qualified(document_name(self.label), steps[index]) for index in sections)

    def section(self, selector: Selector, tree: SectionTree) -> int:
        """Return the one section that a selector selects.

        :raises DocumentTimeoutError: the deadline has passed.
        :raises SectionNotFoundError: no section or several sections match; ``near`` has valid selectors.
        """
        addresses = [(document_name(self.label), self.label, *self.aliases)]
        clock = self.app.clock(self.label)
        scope = Scope([tree], [tuple(path_ends(self.label))], clock, addresses)
        heads = heads_in(scope, selector)
        sections = list(dict.fromkeys(_representative(tree, index) for _, index in heads))
        last = selector.steps[-1].name
        near = self.selectors(tree, sections[:_MAX_LISTED])
        if len(sections) > 1:
            problem = f"{len(sections)} sections of {self.label} match {selector.text!r}"
            raise SectionNotFoundError(problem, near=near, hint=f"give one: {', '.join(near)}")
        if last is not None and not scope.called(heads, last):
            problem = f"{selector.text!r} has only the beginning of a name"
            raise SectionNotFoundError(problem, near=near, hint=f"write {near[0]} if you mean that section")
        return sections[0]


def check_write(app: Context) -> None:
    """Check that the settings allow edits.

    :raises NotAllowedError: they do not.
    """
    if not app.settings.write:
        raise NotAllowedError("this server does not change files", hint=_HOW_TO_WRITE)


def own_section(app: Context, file: str, selector: str) -> dict[str, str]:
    """Return the own text of a section of a file that may be changed.

    :returns: ``file``, its name; ``content``, heading and text without subsections; ``digest`` of that.
    :raises NotAllowedError: the settings do not allow edits, or not of this file.
    :raises SectionNotFoundError: no section or several sections match.
    """
    check_write(app)
    target = Target.of(app, DocumentRef(file=file))
    tree = target.read(app.documents.read(target.file).data)
    wanted = compile_selector(checks.text(selector, "selector"))
    index = target.section(wanted, tree)
    text = trimmed_text(tree, tree.sections[index].own).strip("\n")
    return {"file": target.label, "content": text, "digest": section_digest(tree, index, whole=False)}


def _single_section(selector: Selector, operation: str) -> Selector:
    """Return a selector of one section.

    :raises InvalidRequestError: it selects several sections, or a part that no heading bounds.
    """
    is_part = selector.depth is not None if operation == "delete" else bool(selector.depth)
    if not (selector.until or selector.lines is not None or is_part):
        return selector
    problem = "a range has several sections" if selector.until else "[lines=…] or [depth=…] selects a part"
    hint = "select one section, which includes its subsections"
    raise InvalidRequestError(f"{problem}: {selector.text!r}", parameter="selector", hint=hint)


def _check_scheme(scheme: str, label: str) -> None:
    """Check that a scheme is that of files.

    :raises NotAllowedError: the documents need another tool, which the hint names.
    """
    if scheme in SCHEMES:
        raise NotAllowedError(f"{label!r} cannot be changed as a file", hint=SCHEMES[scheme].changed_by)


def is_writable(app: Context, file: DocumentFile, label: str) -> bool:
    """Return whether the settings allow edits of a file; see :func:`check_writable`."""
    with suppress(NotAllowedError):
        check_write(app)
        check_writable(app, file, label)
        return True
    return False


def check_writable(app: Context, file: DocumentFile, label: str) -> None:
    """Check that a file is below a root of the user, where the settings allow edits, and not in a folder with
    settings of programs.

    The roots of the server count: those of a token only restrict its owner's view.

    :raises NotAllowedError: the file may not be changed.
    """
    _check_scheme(file.root.scheme, label)
    settings = app.state.settings
    given = () if settings.cloned_roots else real_paths(settings.roots)
    inside = [root for root in given if lies_in(file.absolute, [root])]
    if not inside:
        problem = f"{label!r} is not below a root that the user gave"
        hint = "set its folder by --root, NPL_ROOTS, or root in the user's npl.toml"
        if settings.cloned_roots:
            hint += "; a project's npl.toml cannot allow it"
        raise NotAllowedError(problem, hint=hint)
    if isinstance(settings.write, tuple) and not may_write(settings, file.absolute):
        hint = f"files may be changed below {', '.join(settings.write)}"
        raise NotAllowedError(f"{label!r} is not below a folder of --write", hint=hint)
    below = [Path(file.absolute).relative_to(root).parts for root in inside]
    if all(map(is_hidden, below)) or lies_in(file.absolute, npl_folders(settings)):
        hint = "change it in an editor"
        raise NotAllowedError(f"{label!r} lies in a hidden folder or one of NPL's prompts", hint=hint)


def _section_tokens(app: Context, tree: SectionTree, index: int, *, own: bool = False) -> int:
    section = tree.sections[index]
    return app.counter.count(trimmed_text(tree, section.own if own else section.whole))


def _representative(tree: SectionTree, index: int) -> int:
    """Return a section; for a whole document with a title, the title's section."""
    return index or tree.title or 0
