"""The section tree of documents as an answer: within a budget, for programs or for models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from npl_index.answer.folding import fold
from npl_index.answer.forms import partial_note
from npl_index.answer.outline import OutlineNode, outline
from npl_index.answer.outline_text import OutlineText
from npl_index.answer.values import Written
from npl_index.library.documents import DocumentRef
from npl_index.library.references import document_name
from npl_index.markdown.sections import SectionTree
from npl_index.markdown.state import Deadline
from npl_index.markdown.traits import TraitFilter
from npl_index.ranking.indexing import ParsedDocument
from npl_index.selectors.writing import qualified
from npl_index.tokens.counting import TokenCounter, count_tokens
from npl_mcp.core.app import App, Gathered
from npl_mcp.core.section_edits import may_edit
from npl_mcp.tools.responses import Reply, as_dict, encode

_LINES_NAMED = 8
_FILES_NAMED = 8
_TRIES = 4


@dataclass(frozen=True, slots=True)
class IndexReply:
    """The section tree of a document, or of each document of a set.

    :param file: the document's path below its root, or what was asked for.
    :param path: the same.
    :param item: the item asked for.
    :param sections: top sections; for a set, one node of level 0 for each document.
    :param total_sections: headings in all documents.
    :param filtered_sections: headings that match the filter.
    :param total_tokens: tokens of all documents, whole.
    :param token_counter: how tokens were counted.
    :param version: of the document, where it says one.
    :param unreadable: files of a set that were left out, and why.
    :param title: of the document, in its front matter.
    :param warnings: lines where a fence looks wrong, so that sections may be read wrong.
    :param partial: the answer is made from a part of the set, because the call did not wait for the rest.
    :param missing_files: how many files are not indexed yet; ask again for them.
    :param unfold: what shows the headings that the budget hides.
    :param digest: of a file, where sections may be changed; as ``expect`` it lets only that state be changed.
    """

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
    """What of the section tree is asked for.

    :param conditions: sections that do not match are left out, but for the ancestors of those that do.
    :param depth: levels of headings; ``None`` for all of a document, and none of a set.
    :param budget: tokens of the whole answer; ``None`` for no limit.
    :param as_text: one line a heading instead of fields.
    """

    conditions: TraitFilter
    depth: int | None
    budget: int | None
    as_text: bool


def section_index(
    app: App, ref: DocumentRef, gathered: Gathered, request: IndexRequest
) -> IndexReply | Written[IndexReply]:
    """Return the section tree of documents."""
    name = app.name_of(ref, gathered)
    clock = Deadline(name, gathered.until)
    counter, counts = app.counting(gathered.collection, clock)
    depth = request.depth
    if depth is None and gathered.several and request.conditions == TraitFilter():
        depth = 0
    documents: list[OutlineNode] = []
    warnings: list[str] = []
    total = matching = tokens = 0
    for number, indexed in enumerate(gathered.collection.documents):
        tree = indexed.tree
        file = gathered.files[number]
        node, found = outline(
            tree,
            counts(number),
            request.conditions,
            name=file if gathered.several else None,
            selector=partial(_selector, indexed, file),
            depth=depth,
            digests=not gathered.several and may_edit(app, ref),
        )
        headings = gathered.collection.headings(number)
        total += headings
        matching += headings if found is None else found
        tokens += node.token_count
        if tree.doubtful_fences:
            warnings.append(_warning(tree, f"{file}: " if gathered.several else ""))
        if found or request.conditions == TraitFilter():
            documents.append(node)
    text = OutlineText(
        documents=documents,
        several=gathered.several,
        titled=not gathered.several and gathered.collection.documents[0].tree.title is not None,
        version=None if gathered.several else gathered.collection.documents[0].tree.sections[0].version,
        unfolding=None if gathered.several else "a higher depth shows them",
    )
    reply = IndexReply(
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
        return reply if request.budget is None else _within(reply, request.budget, counter, clock)
    written, nodes = replace(text, remarks=_remarks(reply)).write(request.budget, counter, clock)
    return Written(replace(reply, sections=nodes), written)


def _digest(app: App, ref: DocumentRef, gathered: Gathered) -> str | None:
    """Return the digest of the one file, where its sections may be changed."""
    if not app.settings.write or gathered.several or not app.documents.is_file(ref):
        return None
    return app.state.editor.noted(gathered.collection.documents[0].document.data)


def _selector(indexed: ParsedDocument, file: str, section: int) -> str:
    return qualified(document_name(file), indexed.step(section))


def _warning(tree: SectionTree, lead: str) -> str:
    """Name the lines of a document where a fence looks wrong."""
    lines = tree.doubtful_fences
    named = ", ".join(str(line + 1) for line in lines[:_LINES_NAMED])
    more = f" and {len(lines) - _LINES_NAMED} more" if len(lines) > _LINES_NAMED else ""
    return f"{lead}look at the fences of lines {named}{more}: not closed, or not where they should be"


def _remarks(reply: IndexReply) -> tuple[str, ...]:
    """Return what the fields beside the sections say, as lines of text."""
    result = [] if reply.missing_files is None else [partial_note(reply.missing_files)]
    for what, texts in (("left out", reply.unreadable or ()), ("warning", reply.warnings or ())):
        result += [f"{what}: {' '.join(text.split())}" for text in texts[:_FILES_NAMED]]
        if len(texts) > _FILES_NAMED:
            result.append(f"{what}: {len(texts) - _FILES_NAMED} more")
    if reply.digest is not None:
        result.append(f"digest: {reply.digest}")
    if not reply.total_sections:
        result.append(f"no headings, {reply.total_tokens} tokens")
    elif not reply.filtered_sections:
        result.append("no heading matches the filter")
    return tuple(result)


def _within(reply: IndexReply, budget: int, counter: TokenCounter, clock: Deadline) -> IndexReply:
    """Fold what does not fit into a budget for the whole answer as it is sent."""
    count = partial(count_tokens, counter=counter, clock=clock)

    def cost_of(reply: IndexReply) -> int:
        return counter.upper_bound(count(_sent(reply)))

    everything = cost_of(reply)
    if everything <= budget:
        return reply
    unfold = f"token_budget={everything} shows all"
    frame = replace(reply, sections=(), unfold=unfold)
    if 2 * cost_of(frame) > budget:
        remarks = len(reply.unreadable or ()) + len(reply.warnings or ())
        unfold += f", with {remarks} remarks" if remarks else ""
        frame = replace(frame, unreadable=None, warnings=None, unfold=unfold)
    used = count(_sent(frame))
    spare = 0

    def cost(node: OutlineNode, _: int) -> int:
        return count(encode(as_dict(replace(node, children=()))) + ",")

    for _ in range(_TRIES):
        room = budget - spare
        folded = fold(reply.sections, cost, lambda tokens: counter.upper_bound(used + tokens) <= room)  # noqa: B023
        result = replace(frame, sections=folded.nodes)
        over = cost_of(result) - budget
        if over <= 0:
            return result
        spare += over  # counts of parts may add up to less than that of the whole
    return frame


def _sent(reply: IndexReply) -> str:
    return encode(as_dict(Reply(data=reply)))
