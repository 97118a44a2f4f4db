"""Answers with the section tree of documents, within a budget, for programs or for models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import partial_note
from npl_index.answer.marks import change_marks
from npl_index.answer.values import Written
from npl_index.library.documents import DocumentRef
from npl_index.library.references import document_name
from npl_index.markdown.sections import digest_of
from npl_index.outline.folding import File, Folders, Sections, Shown, fitted
from npl_index.outline.nodes import FolderNode, Node, OutlineNode, outline
from npl_index.outline.text import OutlineText
from npl_index.selectors.filters import NO_TRAITS, SectionFilter
from npl_index.selectors.labels import label
from npl_index.selectors.writing import qualified
from npl_index.tokens.estimated import estimator
from npl_mcp.app.context import Context
from npl_mcp.tools.contract.responses import Reply, as_dict, encode

DEFAULT_BUDGET = 1_000
"""Tokens of an outline as text, and of one of several documents."""

_MAX_LINES = 8
_MAX_FILES = 8
_MAX_FIELDS, _MAX_VALUES, _MAX_LETTERS = 6, 4, 40


@dataclass(frozen=True, slots=True)
class IndexReply:
    """The section tree of a document, or of each document of a set.

    :param indexed: remark on a tree of a part of the files.
    :param changed: selectors of sections that have changed since the caller read them.
    :param file: path of the document below its root, or the requested name of a set.
    :param path: the same as ``file``.
    :param item: requested item.
    :param sections: top sections; for a set, a node of level 0 for each document. A folder that stands for
        its files has only ``name``, the value of ``file`` that opens it, ``files``, ``token_count`` and
        ``more``.
    :param total_sections: number of headings in all documents.
    :param filtered_sections: number of headings that match the filter.
    :param total_tokens: tokens of all documents.
    :param token_counter: name of the token counter.
    :param version: version of the document, if it has one.
    :param status: what front matter says of the document: retired, verified, generated.
    :param fields: of a set, fields of front matter with the commonest values and their numbers of documents.
    :param unreadable: files of a set that were left out, with the reasons.
    :param not_served: numbers of documents below the roots that are not served, with the reasons.
    :param title: title in the document's front matter.
    :param warnings: lines with doubtful fences, after which sections may be wrong.
    :param partial: true if the call did not wait until all files were indexed.
    :param missing_files: number of files that are not indexed yet; a later call has them.
    :param unfold: number of what the budget hides, and the argument that shows it.
    :param digest: digest of a file that may be changed; send it as ``expect`` to change only this state.
    """

    indexed: str | None = field(default=None, kw_only=True)
    changed: tuple[str, ...] | None = field(default=None, kw_only=True)
    file: str
    path: str
    item: str | None
    sections: tuple[OutlineNode | FolderNode, ...]
    total_sections: int
    filtered_sections: int
    total_tokens: int
    token_counter: str
    version: str | None
    unreadable: tuple[str, ...] | None
    fields: Mapping[str, Mapping[str, int]] | None = None
    not_served: str | None = None
    status: str | None = None
    title: str | None = None
    warnings: tuple[str, ...] | None = None
    partial: bool | None = None
    missing_files: int | None = None
    unfold: str | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """A request for a section tree.

    :param conditions: conditions of sections; the ancestors of a match are in the tree as well.
    :param depth: levels of headings; ``None`` means all for a document and 0 for a set.
    :param budget: tokens of the whole answer; 0 for no limit. ``None`` means :data:`DEFAULT_BUDGET`, but no
        limit for a document as fields.
    :param as_text: whether a heading is a line instead of fields.
    """

    conditions: SectionFilter
    depth: int | None
    budget: int | None
    as_text: bool

    def limit(self, several: bool) -> int | None:
        """Return the tokens of the whole answer; ``None`` for no limit."""
        if self.budget is None:
            return DEFAULT_BUDGET if several or self.as_text else None
        return self.budget or None


def section_index(
    app: Context, ref: DocumentRef, gathered: DocumentSet, request: IndexRequest
) -> IndexReply | Written[IndexReply]:
    """Return the section tree of documents."""
    outlined, is_editable = _Outlined(app, gathered, request), gathered.digests and not gathered.several
    summaries, shown, document = outlined.summaries.values(), outlined.shown, outlined.document
    reply = IndexReply(
        indexed=partial_note(len(gathered.collection.documents), gathered.missing),
        changed=gathered.changed,
        file=gathered.file,
        path=gathered.file,
        item=ref.item,
        sections=(),
        total_sections=sum(summary.headings for summary in summaries),
        filtered_sections=sum(summary.matching for summary in summaries),
        total_tokens=sum(map(outlined.tokens, outlined.summaries)),
        token_counter=outlined.counter.name,
        version=document.version if document else None,
        unreadable=gathered.unreadable or None,
        fields=(gathered.several and _fields(gathered)) or None,
        not_served=gathered.not_served() or None,
        status=document.status if document else None,
        title=(document.heading if document else None) or None,
        warnings=outlined.warnings or None,
        partial=True if gathered.missing else None,
        missing_files=gathered.missing or None,
        digest=digest_of(gathered.document(0).document.data) if is_editable else None,
    )
    folders = outlined.folders()
    parts = Sections(document) if document else folders
    budget, form, counter = request.limit(gathered.several), Fields(reply), gathered.counter
    if not request.as_text:
        return form.reply(fitted(parts, form, budget, counter, gathered.clock))
    marks = (f"{reply.indexed}\n" if reply.indexed else "") + change_marks(reply.changed or ())
    text = OutlineText(
        document if shown else None,
        document is not None and gathered.tree(0).title is not None,
        folders.documents,
        _remarks(reply),
        "headings" if request.conditions.traits == NO_TRAITS else "matches",
    )
    budget = budget and max(1, budget - counter.upper_bound(counter.count(marks)))
    chosen = fitted(parts, text, budget, counter, gathered.clock)
    return Written(form.reply(chosen), marks + text.answer(chosen))


class _Outlined:
    """The documents of a request, as numbers and nodes.

    ``summaries`` has the numbers of each document that meets the conditions on front matter, by its place,
    ``shown`` the places of the documents with a node, and
    ``document`` is the node of a single one.
    """

    def __init__(self, app: Context, gathered: DocumentSet, request: IndexRequest) -> None:
        self._gathered, self._conditions, self._depth = gathered, request.conditions.traits, request.depth
        self._counts, self.counter = gathered.counts, gathered.counter
        every = request.conditions.traits == NO_TRAITS
        if gathered.several:
            # The index has estimated counts: exact ones of many files would take minutes.
            self.counter = estimator(app.settings.vocabulary)
            self._counts = app.counting(gathered.collection, gathered.clock, self.counter)
            self._depth = 0 if every and request.depth is None else request.depth
        collection = gathered.collection
        summaries = enumerate(collection.summaries(self._conditions, self.counter, gathered.clock))
        meets = collection.meeting(request.conditions.fields).tolist()
        self.summaries = {number: summary for number, summary in summaries if meets[number]}
        self.shown = [number for number, summary in self.summaries.items() if summary.matching or every]
        self.document = self._node(0) if self.summaries and not gathered.several else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings with the lines of doubtful fences."""
        files, doubtful = self._gathered.files, {at: part.doubtful for at, part in self.summaries.items()}
        leads = {at: f"{files[at]}: " if self._gathered.several else "" for at in doubtful}
        return tuple(_warning(lines, leads[at]) for at, lines in doubtful.items() if lines)

    def tokens(self, document: int) -> int:
        """Return the tokens of a document."""
        stored = self.summaries[document].tokens
        if stored is not None:
            return stored
        return self._counts(document).total(range(len(self._gathered.tree(document).sections)))

    def folders(self) -> Folders:
        """Return the shown documents of a set in their folders."""
        shown, locations = self.shown if self._gathered.several else [], self._gathered.locations
        roots = {document.root: f"{document.root.label}:" for document in locations}
        if len(roots) == 1 or any(root.scheme for root in roots):
            roots = dict.fromkeys(roots, "")
        files = []
        for number in shown:
            lead = roots[locations[number].root]
            name = lead + self._gathered.files[number].removeprefix(lead)
            files.append(File(name, len(lead), self.tokens(number), self.summaries[number].matching))
        patterns = not any(root.scheme for root in roots)
        return Folders(files, lambda at: self._node(shown[at]), patterns=patterns)

    def _node(self, document: int) -> OutlineNode:
        """Return the node of a document."""
        gathered, several = self._gathered, self._gathered.several
        file, indexed = gathered.files[document], gathered.collection.documents[document]
        return outline(
            indexed.tree,
            self._counts(document),
            self._conditions,
            name=file if several else None,
            selector=lambda section: qualified(document_name(file), indexed.step(section)),
            depth=self._depth,
            digests=not several and gathered.digests,
        )


@dataclass(frozen=True, slots=True)
class Fields:
    """The form of an outline as fields.

    :param frame: the reply without sections.
    """

    frame: IndexReply

    def reply(self, shown: Shown) -> IndexReply:
        """Return the reply with the shown sections."""
        frame, note = self.frame, shown.note
        remarks = len(frame.unreadable or ()) + len(frame.warnings or ()) + bool(frame.fields)
        if remarks and not shown.has_remarks:
            note = f"{note}, with {remarks} remarks"
            frame = replace(frame, unreadable=None, warnings=None, fields=None)
        return replace(frame, sections=tuple(shown.nodes), unfold=note)

    def answer(self, shown: Shown) -> str:
        """Return the answer as it is sent."""
        return encode(as_dict(Reply(data=self.reply(shown))))

    def line(self, node: Node, depth: int) -> str:  # noqa: ARG002
        """Return the fields of a node without its children."""
        return encode({**as_dict(node), "children": []}) + ","


def _fields(documents: DocumentSet) -> dict[str, dict[str, int]]:
    """Return the fields whose short values several documents share, commonest first."""
    fields: dict[str, dict[str, int]] = {}
    counts = documents.collection.value_counts()
    for (name, value), number in sorted(counts.items(), key=lambda count: (-count[1], count[0])):
        if value and max(len(name), len(value)) <= _MAX_LETTERS:
            values = fields.setdefault(name, {})
            if len(values) < _MAX_VALUES and value[:10] not in values:  # the day of a time
                values[value] = number
    return dict(islice(fields.items(), _MAX_FIELDS))


def _warning(lines: Sequence[int], lead: str) -> str:
    """Return a warning with the lines of doubtful fences."""
    named = ", ".join(str(line + 1) for line in lines[:_MAX_LINES])
    more = f" and {len(lines) - _MAX_LINES} more" if len(lines) > _MAX_LINES else ""
    return f"{lead}check the fences in lines {named}{more}: not closed, or misplaced"


def _remarks(reply: IndexReply) -> tuple[str, ...]:
    """Return the fields besides the sections as lines of text."""
    result: list[str] = []
    for what, texts in (("left out", reply.unreadable or ()), ("warning", reply.warnings or ())):
        result += [f"{what}: {' '.join(text.split())}" for text in texts[:_MAX_FILES]]
        if len(texts) > _MAX_FILES:
            result.append(f"{what}: {len(texts) - _MAX_FILES} more")
    fields = []
    for name, values in (reply.fields or {}).items():
        fields.append(f"{name} = {', '.join(f'{value} {number}' for value, number in values.items())}")
    if fields:
        result.append(label(f"front matter: {'; '.join(fields)}"))
    if reply.not_served is not None:
        result.append(f"not served: {reply.not_served}")
    if reply.digest is not None:
        result.append(f"digest: {reply.digest}")
    if not reply.total_sections:
        result.append(f"no headings, {reply.total_tokens} tokens")
    elif not reply.filtered_sections:
        result.append("no heading matches the filter")
    return tuple(result)
