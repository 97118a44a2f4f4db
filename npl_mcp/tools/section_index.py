"""Answers with the section tree of documents, within a budget, for programs or for models."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

from npl_index.answer.forms import partial_note
from npl_index.answer.marks import change_marks
from npl_index.answer.outline import OutlineNode, in_folders, outline
from npl_index.answer.outline_text import OutlineText, fold, opening
from npl_index.answer.values import Written
from npl_index.library.documents import DocumentRef
from npl_index.library.references import document_name
from npl_index.markdown.sections import SectionTree
from npl_index.markdown.state import Deadline
from npl_index.markdown.traits import NO_TRAITS
from npl_index.ranking.indexing import ParsedDocument
from npl_index.selectors.filters import SectionFilter
from npl_index.selectors.writing import qualified
from npl_index.tokens.counting import TokenCounter, count_tokens
from npl_mcp.app.app import App, Gathered
from npl_mcp.tools.contract.responses import Reply, as_dict, encode

DEFAULT_BUDGET = 1_000
"""Tokens of an outline as text, and of one of several documents."""

_MAX_LINES = 8
_MAX_FILES = 8
_MAX_TRIES = 4


@dataclass(frozen=True, slots=True)
class IndexReply:
    """The section tree of a document, or of each document of a set.

    :param changed: selectors of sections that have changed since the caller read them.
    :param file: path of the document below its root, or the requested name of a set.
    :param path: the same as ``file``.
    :param item: requested item.
    :param sections: top sections; for a set, one node of level 0 for each document.
    :param total_sections: number of headings in all documents.
    :param filtered_sections: number of headings that match the filter.
    :param total_tokens: tokens of all documents.
    :param token_counter: name of the token counter.
    :param version: version of the document, if it has one.
    :param unreadable: files of a set that were left out, with the reasons.
    :param title: title in the document's front matter.
    :param warnings: lines with doubtful fences, after which sections may be wrong.
    :param partial: true if the call did not wait until all files were indexed.
    :param missing_files: number of files that are not indexed yet; a later call has them.
    :param unfold: argument that shows the headings hidden by the budget.
    :param digest: digest of a file that may be changed; send it as ``expect`` to change only this state.
    """

    changed: tuple[str, ...] | None = field(default=None, kw_only=True)
    file: str
    path: str
    item: str | None
    sections: tuple[OutlineNode, ...]
    total_sections: int
    filtered_sections: int
    total_tokens: int
    token_counter: str
    version: str | None
    unreadable: tuple[str, ...] | None
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
    app: App, ref: DocumentRef, gathered: Gathered, request: IndexRequest
) -> IndexReply | Written[IndexReply]:
    """Return the section tree of documents."""
    name, clock, counter = gathered.file, gathered.clock, gathered.counter
    depth, budget = request.depth, request.limit(gathered.several)
    if depth is None and gathered.several and request.conditions.traits == NO_TRAITS:
        depth = 0
    documents: list[OutlineNode] = []
    warnings: list[str] = []
    total = matching = tokens = 0
    for number in gathered.collection.meeting(request.conditions.fields).nonzero()[0].tolist():
        indexed = gathered.collection.documents[number]
        tree = indexed.tree
        file = gathered.files[number]
        node, found = outline(
            tree,
            gathered.counts(number),
            request.conditions.traits,
            name=file if gathered.several else None,
            selector=partial(_selector, indexed, file),
            depth=depth,
            digests=not gathered.several and gathered.digests,
        )
        headings = gathered.collection.headings(number)
        total += headings
        matching += headings if found is None else found
        tokens += node.token_count
        if tree.doubtful_fences:
            warnings.append(_warning(tree, f"{file}: " if gathered.several else ""))
        if found or request.conditions.traits == NO_TRAITS:
            documents.append(node)
    text = OutlineText(
        documents=documents,
        several=gathered.several,
        titled=not gathered.several and gathered.collection.documents[0].tree.title is not None,
        version=None if gathered.several else gathered.collection.documents[0].tree.sections[0].version,
        unfolding=None if gathered.several else "a higher depth shows them",
    )
    reply = IndexReply(
        changed=gathered.changed,
        file=name,
        path=name,
        item=ref.item,
        sections=text.nodes,
        total_sections=total,
        filtered_sections=matching,
        total_tokens=tokens,
        token_counter=counter.name,
        version=text.version,
        unreadable=gathered.unreadable or None,
        title=(not gathered.several and gathered.collection.documents[0].tree.sections[0].heading) or None,
        warnings=tuple(warnings) or None,
        partial=True if gathered.missing else None,
        missing_files=gathered.missing or None,
        digest=_digest(app, ref, gathered),
    )
    if not request.as_text:
        return reply if budget is None else _folded(reply, gathered.several, budget, counter, clock)
    marks = change_marks(reply.changed or ())
    budget = budget and max(1, budget - counter.upper_bound(counter.count(marks)))
    written, nodes = replace(text, remarks=_remarks(reply)).write(budget, counter, clock)
    return Written(replace(reply, sections=nodes), marks + written)


def _digest(app: App, ref: DocumentRef, gathered: Gathered) -> str | None:
    """Return the digest of a file whose sections may be changed; ``None`` for other documents."""
    if not app.settings.write or gathered.several or not app.documents.is_file(ref):
        return None
    return app.state.editor.noted(gathered.collection.documents[0].document.data)


def _selector(indexed: ParsedDocument, file: str, section: int) -> str:
    return qualified(document_name(file), indexed.step(section))


def _warning(tree: SectionTree, lead: str) -> str:
    """Return a warning with the lines of doubtful fences."""
    lines = tree.doubtful_fences
    named = ", ".join(str(line + 1) for line in lines[:_MAX_LINES])
    more = f" and {len(lines) - _MAX_LINES} more" if len(lines) > _MAX_LINES else ""
    return f"{lead}check the fences in lines {named}{more}: not closed, or misplaced"


def _remarks(reply: IndexReply) -> tuple[str, ...]:
    """Return the fields besides the sections as lines of text."""
    result = [] if reply.missing_files is None else [partial_note(reply.missing_files)]
    for what, texts in (("left out", reply.unreadable or ()), ("warning", reply.warnings or ())):
        result += [f"{what}: {' '.join(text.split())}" for text in texts[:_MAX_FILES]]
        if len(texts) > _MAX_FILES:
            result.append(f"{what}: {len(texts) - _MAX_FILES} more")
    if reply.digest is not None:
        result.append(f"digest: {reply.digest}")
    if not reply.total_sections:
        result.append(f"no headings, {reply.total_tokens} tokens")
    elif not reply.filtered_sections:
        result.append("no heading matches the filter")
    return tuple(result)


def _folded(
    reply: IndexReply, several: bool, budget: int, counter: TokenCounter, clock: Deadline
) -> IndexReply:
    """Fold sections until the whole answer, as it is sent, fits a budget."""
    count = partial(count_tokens, counter=counter, clock=clock)

    def cost_of(reply: IndexReply) -> int:
        return counter.upper_bound(count(_sent(reply)))

    everything = cost_of(reply) if len(reply.sections) <= budget else 0
    if 0 < everything <= budget:
        return reply
    nodes = in_folders(reply.sections) if several else reply.sections
    unfold = f"{opening(nodes)}token_budget={everything} shows all"
    frame = replace(reply, sections=(), unfold=unfold)
    if 2 * cost_of(frame) > budget:
        remarks = len(reply.unreadable or ()) + len(reply.warnings or ())
        unfold += f", with {remarks} remarks" if remarks else ""
        frame = replace(frame, unreadable=None, warnings=None, unfold=unfold)
    used = count(_sent(frame))
    spare = 0

    def cost(node: OutlineNode, _: int) -> int:
        return count(encode(as_dict(replace(node, children=()))) + ",")

    for _ in range(_MAX_TRIES):
        room = budget - spare
        folded = fold(nodes, cost, lambda tokens: counter.upper_bound(used + tokens) <= room)  # noqa: B023
        result = replace(frame, sections=folded.nodes)
        over = cost_of(result) - budget
        if over <= 0:
            return result
        spare += over  # the counts of parts may add up to less than the count of the whole
    return frame


def _sent(reply: IndexReply) -> str:
    return encode(as_dict(Reply(data=reply)))
