"""Change requests: Markdown files in the folders of projects, read and changed by section and by field.

The files are the only truth; caches are checked against their fingerprints. A change is made in memory, under
the folder's lock, and replaces the file in one step. If another program wrote in between, the change is
applied to the new text, unless the same section changed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Literal, get_args

from npl_index.errors import UnreadableDocumentError
from npl_index.library.documents import read_document
from npl_index.markdown.front_matter import with_line_feeds, with_values
from npl_index.markdown.sections import SectionTree, digest_of
from npl_mcp.documents import answers, editor
from npl_mcp.documents import format as form
from npl_mcp.documents.answers import Improvement, RequestRow
from npl_mcp.documents.folders import SharedFolder, is_hidden, printable
from npl_mcp.documents.paths import Outline
from npl_mcp.documents.projects import Project, Projects, keep_number, next_number
from npl_mcp.documents.tickets import FACETS, Ticket, listing, matching, read_ticket
from npl_mcp.stores.base import checks, errors
from npl_mcp.stores.base.paging import Page, Slice
from npl_mcp.stores.base.values import fill

Operation = Literal["list", "get", "update", "replace", "append", "prepend"]
UpdateMode = editor.Edit
Mode = Literal["full", "attributes", "metadata"]
ATTRIBUTES = (*form.NEW, "implementationDate", "implementationNotes")
"""Attributes that :meth:`ChangeRequests.update_attributes` accepts."""

_UNREADABLE = "Unreadable"
_FIELDS = tuple(field.name for field in fields(answers.ChangeRequest))[2:-4]
_METADATA = (*form.DEFAULTS, "phaseEpic", "dateCreated", "lastModified")


class ChangeRequests:
    """The change requests of all projects that a caller may see.

    :param projects: projects of the caller.
    """

    def __init__(self, projects: Projects) -> None:
        self.projects = projects

    def get(self, code: str | None, key: str, mode: str) -> answers.ChangeRequest:
        """Return a change request.

        :param mode: one of :data:`Mode`.
        """
        project, ticket, data = self._load_request(code, key)
        values = ticket.values(*(_METADATA if mode == "metadata" else _FIELDS))
        if mode != "metadata":
            known = ("code", "title", *_FIELDS)
            others = {name: value for name, value in ticket.fields.items() if name not in known}
            values["other"] = others or None
        if mode != "attributes":
            values["path"] = _answer_path(project, ticket.name)
        if mode == "full":
            values["content"] = with_line_feeds(form.divide(data)[1].decode("utf-8")).strip("\n")
        return fill(answers.ChangeRequest, values, code=ticket.key, digest=digest_of(data))

    def sections(self, code: str | None, key: str) -> answers.ChangeSections:
        """List the sections of a change request."""
        _, ticket, data = self._load_request(code, key)
        outline = Outline(editor.read_sections(data, ticket.key))
        sizes = {path: len(outline.content(at)) for at, path in outline.short.items()}
        rows = tuple(map(answers.SectionRow, sizes, sizes.values()))
        return answers.ChangeSections(ticket.key, ticket.title, rows, digest=digest_of(data))

    def section(self, code: str | None, key: str, path: str) -> answers.ChangeSections:
        """Return the content of a section."""
        _, ticket, data = self._load_request(code, key)
        outline = Outline(editor.read_sections(data, ticket.key))
        index = outline.find(path, ticket.key)
        digest = digest_of(editor.bytes_of(outline.tree, index, data))
        address, text = outline.addresses[index], outline.content(index)
        return answers.ChangeSections(ticket.key, section=address, content=text, digest=digest)

    def edit_section(
        self, code: str | None, key: str, path: str, how: str, content: str, expect: str | None = None
    ) -> answers.ChangeSections:
        """Change a section.

        :param how: one of :data:`UpdateMode`.
        :param expect: digest of the section or of the file; only this state is changed.
        """
        text = checks.text(content, "content", editor.MAX_SECTION_TEXT)
        checks.choice(how, "operation", get_args(UpdateMode))
        project, ticket = self.find(code, key)
        digest = editor.parse_digest(expect)

        def read(data: bytes) -> SectionTree:
            return editor.read_sections(data, ticket.key)

        def find(tree: SectionTree) -> int:
            return Outline(tree).find(path, ticket.key, whole=how == "replace")

        section = editor.SectionEdit(ticket.key, read, find, how, text, digest)

        def edit(_: Ticket, data: bytes) -> bytes:
            new = section(data)
            return data if new == data else _with_fields(new, {"lastModified": form.now()}, add=False)

        self._change(project, ticket, edit)
        result = {"key": ticket.key, "operation": how, "chars": len(text.strip())}
        address, digest = Outline(section.after).addresses[section.index], digest_of(section.written)
        return fill(answers.ChangeSections, result, section=address, removed=section.removed, digest=digest)

    def create(self, code: str | None, kind: str, data: Mapping[str, object]) -> RequestRow:
        """Create a change request.

        :param kind: one of :data:`~npl_mcp.documents.format.TYPES`.
        :param data: input for :meth:`~npl_mcp.documents.format.Draft.parse`.
        """
        draft = form.Draft.parse(kind, data)
        project = self.projects.find(code)
        _check_visible(project.folder)
        with project.folder.locked("the change request", make=True) as folder:
            number = next_number(project, folder, listing(project.folder, project.code))
            key = form.ChangeKey(project.code, number).of(project.code)
            name = f"{key}-{form.slug(draft.title, kind)}{form.SUFFIX}"
            # Stored first: if the process is killed now, a number is skipped, but none is used twice.
            keep_number(project, number)
            if not folder.create(name, draft.text(key).encode()):
                raise errors.AlreadyExistsError(f"{name!r} already exists", hint="try again")
        about = {"type": kind, "priority": draft.values["priority"], "dateCreated": draft.made}
        first = {"key": key, "title": draft.title, "status": form.DEFAULTS["status"]} | about
        path, sections = _answer_path(project, name), draft.headings()
        return fill(RequestRow, first, path=path, sections=sections)

    def update_status(self, code: str | None, key: str, status: str, expect: str | None = None) -> RequestRow:
        """Set the status; every order of statuses is allowed.

        :param expect: digest of the file; only this state is changed.
        """
        checks.choice(status, "status", form.STATUSES)
        before, digest = self._set(code, key, {"status": status}, expect)
        change = f"{before.text('status')} → {status}"
        return before.row(status=status, change=change, digest=digest)

    def update_attributes(
        self, code: str | None, key: str, attributes: Mapping[str, object], expect: str | None = None
    ) -> RequestRow:
        """Set attributes; an empty text clears an attribute, ``None`` leaves it unchanged.

        :param expect: digest of the file; only this state is changed.
        """
        changes = {
            name: form.check_field(form.choose(name, "attributes", ATTRIBUTES), value, f"attributes.{name}")
            for name, value in attributes.items()
            if value is not None
        }
        before, digest = self._set(code, key, changes, expect)
        updated = {name: value for name, value in changes.items() if before.text(name) != value}
        return before.row("status", updated=updated, digest=digest)

    def _set(
        self, code: str | None, key: str, changes: Mapping[str, str], expect: str | None
    ) -> tuple[Ticket, str]:
        """Set fields of the front matter; return the former change request and its new digest."""

        def edit(before: Ticket, data: bytes) -> bytes:
            same = {name for name in before.fields if before.text(name) == changes.get(name)}
            return _with_fields(data, {name: changes[name] for name in changes if name not in same})

        before, new = self._change(*self.find(code, key), edit, expect)
        return before, digest_of(new)

    def delete(self, code: str | None, key: str, expect: str | None = None) -> RequestRow:
        """Remove a change request's file.

        :param expect: digest of the file; only this state is removed.
        """
        project, ticket = self.find(code, key)

        def edit(*_: object) -> None:
            keep_number(project, max(known.number for known in (ticket, *self.tickets(project))))

        before, _ = self._change(project, ticket, edit, expect)
        return before.row("status", "type", path=_answer_path(project, before.name))

    def list(self, code: str | None, filters: Mapping[str, object] | None, part: Slice) -> Page[RequestRow]:
        """List a project's change requests, highest number first."""
        project = self.projects.find(code)
        files = listing(project.folder, project.code)
        same = Counter(ticket.number for ticket in files.tickets)
        chosen = matching(files.tickets, filters or {})
        rows = [ticket.row(*FACETS) for ticket in chosen]
        for at, ticket in enumerate(chosen):
            if (number := same[ticket.number]) > 1:
                path, problem = _answer_path(project, ticket.name), f"{number} files have this code"
                rows[at] = replace(rows[at], path=path, problem=problem)
        # Unreadable files pass no filter.
        for name, problem in () if filters else files.unreadable.items():
            title, path = printable(name[: -len(form.SUFFIX)]), _answer_path(project, name)
            known = (form.key_in(title), title, _UNREADABLE, "", "")
            rows.append(RequestRow(*known, path=path, problem=problem))
        return part.cut(rows)

    def suggest(self, code: str | None, key: str) -> answers.Suggestions:
        """Return suggestions for a change request."""
        project, ticket, data = self._load_request(code, key)
        body = form.divide(data)[1].decode("utf-8")
        return answers.Suggestions(ticket.key, ticket.title, suggestions(ticket, body, project.code))

    def list_projects(self) -> tuple[answers.ProjectInfo, ...]:
        """List the projects, that of the working directory first."""
        hidden: dict[str, Any] = {"ticketsPath": None, "startNumber": None, "repository": None}
        projects = self.projects.all()
        return tuple(replace(project.info, crs=len(self.tickets(project)), **hidden) for project in projects)

    def project_info(self, code: str) -> answers.ProjectInfo:
        """Describe a project."""
        project = self.projects.find(code)
        return replace(project.info, crs=len(self.tickets(project)))

    def tickets(self, project: Project) -> tuple[Ticket, ...]:
        """Return a project's change requests, highest number first."""
        return listing(project.folder, project.code).tickets

    def find(self, code: str | None, key: str, parameter: str = "key") -> tuple[Project, Ticket]:
        """Find a change request by the code in its front matter; its file's name does not count.

        :param parameter: name of the tool's parameter, for messages.
        :raises ChangeNotFoundError: no change request has the key.
        :raises ConflictError: several files have the code.
        :raises UnreadableDocumentError: its file cannot be read.
        """
        wanted = form.ChangeKey.parse(key, parameter)
        project = self.projects.find(code, wanted)
        code, number = wanted.code or project.code, wanted.number
        key = wanted.of(code)
        files = listing(project.folder, project.code)
        matches = [ticket for ticket in files.tickets if (ticket.code, ticket.number) == (code, number)]
        if len(matches) > 1:
            raise ambiguous_key(matches)
        if matches:
            return project, matches[0]
        for name, problem in files.unreadable.items():
            if re.match(rf"{code}-0*{number}(?![0-9])", name, re.IGNORECASE):
                raise UnreadableDocumentError(f"{key}: {printable(name)} cannot be read: {problem}")
        hint = "list_crs lists the keys"
        raise errors.ChangeNotFoundError(f"CR '{key}' not found in project '{project.code}'", hint=hint)

    def _load_request(self, code: str | None, key: str) -> tuple[Project, Ticket, bytes]:
        """Find and read a change request."""
        project, ticket = self.find(code, key)
        read = read_document(project.folder.file(ticket.name), project.folder.max_bytes)
        return project, _current(ticket, read.data), read.data

    def _change(
        self,
        project: Project,
        ticket: Ticket,
        edit: Callable[[Ticket, bytes], bytes | None],
        expect: str | None = None,
    ) -> tuple[Ticket, bytes]:
        """Change a file; repeat the edit if another program wrote to it in between.

        :param edit: returns the new content, or ``None`` to remove the file.
        :param expect: digest of the file; only this state is changed.
        :returns: the former change request and the new content.
        """
        _check_visible(project.folder)
        digest, before = editor.parse_digest(expect), ticket

        def check(data: bytes) -> bytes | None:
            nonlocal before
            before = _current(ticket, data)
            editor.check_state(ticket.key, digest, data)
            new = edit(before, data)
            if new is not None and read_ticket(ticket.name, new, ticket.state) is None:
                raise errors.TooLargeError(f"the front matter of {ticket.key} would be too long")
            return new

        new = project.folder.change(ticket.name, ticket.key, check)
        return before, new


def _with_fields(data: bytes, values: Mapping[str, str], *, add: bool = True) -> bytes:
    """Return a file with new values in its front matter.

    :param add: whether to add absent fields.
    """
    front, body = form.divide(data)
    return with_values(front, values, add=add, bare=form.DATES).encode() + body


def ambiguous_key(tickets: Sequence[Ticket]) -> errors.ConflictError:
    """Return the error for several files with the same code."""
    key = form.ChangeKey(None, tickets[0].number).of(tickets[0].code)
    names = checks.name_list([printable(ticket.name) for ticket in tickets])
    hint = "keep one of them; change the code in the front matter of the others, or remove them"
    return errors.ConflictError(f"{len(tickets)} files have the code {key}: {names}", hint=hint)


def _check_visible(folder: SharedFolder) -> None:
    """Check that a folder is not hidden: programs keep their settings in hidden folders.

    :raises NotAllowedError: the folder or one above it is hidden.
    """
    if is_hidden(folder.below.split("/")):
        hint = "name a folder that is not hidden in the project's configuration"
        raise errors.NotAllowedError("change requests in a hidden folder cannot be changed", hint=hint)


def _current(ticket: Ticket, data: bytes) -> Ticket:
    """Return the present state of a change request.

    :raises ConflictError: the file is no longer this change request.
    """
    present = read_ticket(ticket.name, data, ticket.state)
    if present is None or present.key != ticket.key:
        hint = "read it again, then try again"
        raise errors.ConflictError(f"{ticket.key} is being changed by another program", hint=hint)
    return present


def _answer_path(project: Project, name: str) -> str:
    return project.folder.file(printable(name)).path


_MIN_BODY = 200
"""Characters of a body; a shorter one needs more detail."""

_CRITERIA = "Add acceptance criteria: they say when the change is done."
_NOTES = "Set implementationNotes: the work done and its differences from the plan."


def suggestions(ticket: Ticket, body: str, code: str) -> tuple[Improvement, ...]:
    """Suggest improvements, the most urgent first.

    High: work cannot begin. Medium: a part is missing. Low: planning would be easier.

    :param body: Markdown of the change request without front matter.
    :param code: code of its project.
    """
    text = body.casefold()
    kind, status, priority = map(ticket.text, ("type", "status", "priority"))

    def lacks(*words: str) -> bool:
        return not any(word in text for word in words)

    is_short, is_bug = len(body.strip()) < _MIN_BODY, kind == "Bug Fix"
    is_unpaid = kind == "Technical Debt" and priority == "Low"
    is_undrawn = kind == "Architecture" and lacks("diagram", "mermaid")
    search = f'npl_load_tailored with file "cr:{code}"'
    related = f"Look for related change requests, e.g. by {search}, and set relatedTickets."
    rules = (
        ("High", is_short, "Describe the change in more detail: the text has only a few sentences."),
        ("High", is_bug and lacks("reproduc", "steps"), "Add steps that reproduce the bug."),
        ("High", is_bug and lacks("root cause"), "Name the root cause."),
        ("Medium", is_undrawn, "Add a diagram of the architecture."),
        ("Medium", status == "Proposed" and lacks("acceptance criteria"), _CRITERIA),
        ("Medium", status == "Implemented" and not ticket.text("implementationNotes"), _NOTES),
        ("Low", not ticket.text("phaseEpic"), "Set phaseEpic: it helps to plan the change."),
        ("Low", not ticket.text("relatedTickets"), related),
        ("Low", is_unpaid, "Check the priority: unpaid debt grows."),
    )
    return tuple(Improvement(rank, text) for rank, applies, text in rules if applies)
