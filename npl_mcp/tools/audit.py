"""What people look at: an answer with what it took and left, and questions whose right sections they label.

The page Ask calls these tools by name. The one for chat windows is listed for clients that show pages there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le

from npl_index.answer.auditing import Audit, AuditRequest, audit
from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import Form, Json, Markdown
from npl_index.answer.suggestions import Place
from npl_index.answer.tailoring import TailorRequest
from npl_index.answer.values import Written
from npl_index.errors import InvalidRequestError, MissingRequestError
from npl_index.library.documents import DocumentRef
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.selection import select_in
from npl_mcp.core.app import App
from npl_mcp.core.waiting import waits
from npl_mcp.stores.labels import LabelledQuestion, RightSection
from npl_mcp.tools.npl import Count, File, Format, Item, Kind, companions, found_in
from npl_mcp.tools.parameters import ShortName
from npl_mcp.tools.responses import ENVELOPE
from npl_mcp.tools.spec import ToolSpec

MOST_ROWS = 1_000
"""Rows of a page; the page Ask shows 200."""

MOST_RIGHT = 256
"""Sections that answer one question."""

Rows = Annotated[int, Ge(1), Le(MOST_ROWS)]


@waits
async def npl_audit(
    app: App,
    context: Annotated[str | None, "As for npl_load_tailored, like all up to format"] = None,
    topics: list[str] | None = None,
    selectors: list[str] | None = None,
    token_budget: Count | None = None,
    file: File = None,
    resource_type: Kind = None,
    item: Item = None,
    depth: Count | None = None,
    exclude: list[str] | None = None,
    format: Format = None,
    open: Annotated[list[str] | None, "Files whose sections are shown, beside those with a match"] = None,
    matching: Annotated[bool, "Only files with a match"] = False,
    section: Annotated[str | None, "Selector of a section to show whole"] = None,
    matches: Annotated[bool, "List all matching sections as well"] = False,
    offset: Count = 0,
    limit: Rows = 200,
) -> Audit:
    """Answer as npl_load_tailored does, and say of every section what became of it.

    :returns: an answer and what it was made from.
    :raises NPLError: as :func:`~npl_mcp.tools.npl.npl_load_tailored` does.
    """
    ref = DocumentRef.parse(file, resource_type, item)
    request = TailorRequest.parse(
        context=context,
        topics=topics,
        selectors=selectors,
        token_budget=token_budget,
        depth=depth,
        exclude=exclude,
        default_budget=app.settings.token_budget,
    )
    asked = AuditRequest(tuple(open or ()), matching, section, offset, limit, matches)
    return await _audited(app, ref, request, asked, format)


async def _audited(
    app: App, ref: DocumentRef, request: TailorRequest, asked: AuditRequest, format: str | None
) -> Audit:
    forms: dict[str, Form] = {"json": Json(*ENVELOPE), "markdown": Markdown()}

    async def answer() -> Audit:
        async with found_in(app, ref, request) as (wanted, documents):
            return audit(
                wanted,
                asked,
                documents,
                forms,
                app.form(format),
                weights=app.settings.weights,
                companions=companions(app),
            )

    return await app.unchanging(answer)


@waits
async def npl_ask(
    app: App,
    context: Annotated[str | None, "The question"] = None,
    topics: list[str] | None = None,
    selectors: list[str] | None = None,
    token_budget: Count | None = None,
    file: File = None,
    format: Format = None,
    open: Annotated[list[str] | None, "Files shown unfolded"] = None,
    matching: bool = False,
    section: Annotated[str | None, "Selector of a section shown whole"] = None,
    offset: Count = 0,
) -> Written[Audit]:
    """Load the sections a task needs, as npl_load_tailored does, and show a person what was taken and left.

    :returns: the answer, and what became of every section.
    :raises NPLError: as :func:`~npl_mcp.tools.npl.npl_load_tailored` does.
    """
    ref = DocumentRef.parse(file)
    request = TailorRequest.parse(
        context=context,
        topics=topics,
        selectors=selectors,
        token_budget=token_budget,
        default_budget=app.settings.token_budget,
    )
    asked = AuditRequest(tuple(open or ()), matching, section, offset)
    shown = await _audited(app, ref, request, asked, format)
    return Written(shown, shown.answers[shown.form].text)


@dataclass(frozen=True, slots=True)
class LabelReply:
    """A question that was saved.

    :param file: where it was saved; ``python -m benchmarks.relevance FILE`` asks it.
    :param questions: how many that file has now.
    """

    file: str
    questions: int


@waits
async def npl_label(
    app: App,
    right: Annotated[list[str], "Selectors of the sections that answer the question"],
    name: Annotated[ShortName, "Of the list of questions: letters, digits, - and _"] = "questions",
    context: Annotated[str | None, "As it was asked"] = None,
    topics: list[str] | None = None,
    selectors: Annotated[list[str] | None, "They may name further documents"] = None,
    file: File = None,
    resource_type: Kind = None,
    item: Item = None,
) -> LabelReply:
    """Save a question with the sections that are right, so that the ranking can be measured with it.

    :returns: a question that was saved.
    :raises MissingRequestError: no question, or no section.
    :raises InvalidRequestError: a section does not lie in a file.
    :raises SectionNotFoundError: a selector selects nothing.
    """
    question = " ".join([context or "", *(topics or ())]).strip()
    if not question:
        raise MissingRequestError(
            "there is no question to save", parameter="context", hint="give context or topics"
        )
    if not right or len(right) > MOST_RIGHT:
        raise InvalidRequestError(
            f"{len(right)} sections are right", parameter="right", hint=f"give 1 to {MOST_RIGHT} selectors"
        )
    ref = DocumentRef.parse(file, resource_type, item)
    request = TailorRequest.parse(context=question, selectors=selectors)

    async def sections() -> tuple[RightSection, ...]:
        async with found_in(app, ref, request) as (_, documents):
            scope = documents.scope()
            found = (one for text in right for one in select_in(scope, compile_selector(text)))
            places = dict.fromkeys((one.tree, one.head) for one in found)
            return tuple(_right_section(documents, place) for place in places)

    labelled = LabelledQuestion(question, await app.unchanging(sections))
    path, questions = app.stores.labels.add(name, labelled)
    return LabelReply(path, questions)


def _right_section(documents: DocumentSet, place: Place) -> RightSection:
    """Return where a section stands: the folder, the file below it, and the line of the heading."""
    indexed = documents.collection.documents[place[0]]
    path, absolute = indexed.document.path, indexed.document.fingerprint.path
    folder = absolute.removesuffix(f"/{path}")
    if folder == absolute or not absolute.startswith("/"):
        raise InvalidRequestError(
            f"{documents.path(place[0])!r} is no file", parameter="right", hint="label sections of files"
        )
    section = indexed.tree.sections[place[1]]
    if not section.level:
        return RightSection(folder, path, heading=section.name)
    return RightSection(folder, path, line=section.heading_lines.start + 1)


TOOLS = (
    ToolSpec(npl_audit, lane="heavy", listed=False),
    ToolSpec(npl_ask, lane="heavy", app="ui://npl/ask", title="Ask"),
    ToolSpec(npl_label, read_only=False, idempotent=False, lane="heavy", listed=False),
)
