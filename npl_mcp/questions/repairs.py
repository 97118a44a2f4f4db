"""Repairs of documents with missed questions. Each repair is tried on the index before it is proposed.

There are three kinds, the smallest first: words of the questions that a page answers become keywords in its
front matter, which count for all its sections; a long section is split at the paragraph with the words of the
question; a heading gets missing words. A repair is kept if no question loses its answer and a missed one
gains its own. Keywords are also kept if they only bring a question closer to its answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from npl_index.errors import InvalidRequestError
from npl_index.library.documents import DocumentRef
from npl_index.library.references import document_name
from npl_index.markdown.front_matter import divide, texts_of, values, with_values
from npl_index.markdown.links import slug
from npl_index.markdown.sections import Section, SectionTree, digest_of, parse_sections
from npl_index.ranking.analysis import extract_keywords, terms
from npl_mcp.app.app import App
from npl_mcp.app.section_edits import Target
from npl_mcp.browsing.relations import Relations, place_of
from npl_mcp.questions.files import Question
from npl_mcp.questions.proposing import linked
from npl_mcp.questions.running import Asked, Outcome, answered
from npl_mcp.questions.trial import Trial
from npl_mcp.stores.base.errors import ConflictError

MAX_KEYWORDS = 40
"""Keywords of a page; the index counts the first 1,024 characters of a page's names."""

COMMON = 0.25
"""Share of the documents above which a term is common."""

MAX_SENTENCES = 100
"""Sentences around links that repairs must not harm."""

MIN_SPLIT = 1_000
"""Characters of the shortest section that may be split."""

_HEADING_WORDS, _MAX_HEADING_WORDS = 4, 6
_MAX_LEVEL = 6
_FIELD = "keywords"
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_PROSE = re.compile(r"[^\s#|>\-*+<]")
_ADDED = re.compile(r"(#+ [^()]*) \(([^()]*)\)")
_UNSAFE = re.compile(r"[\[\]{}\",:#&*!|>'%@`]")


@dataclass(frozen=True, slots=True)
class Repair:
    """A change of one file.

    :param file: name of the file in answers.
    :param kind: kind of the repair.
    :param before: text to replace; the whole front matter for keywords.
    :param after: new text.
    :param gained: questions that are held only with the repair.
    :param closer: questions with a better rank, but still not held.
    :param lost: questions that are held only without the repair.
    :param digest: digest of the file before all repairs.
    """

    file: str
    kind: Literal["keywords", "split", "heading"]
    before: str
    after: str
    gained: tuple[str, ...] = ()
    closer: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    digest: str = ""

    def apply(self, text: str) -> str:
        """Return the text of a file with the repair.

        :raises InvalidRequestError: the text lacks an earlier repair.
        """
        if self.before not in text:
            problem = f"a change of {self.file} needs another change that was not chosen"
            raise InvalidRequestError(problem, parameter="fix", hint="choose the changes above it as well")
        return text.replace(self.before, self.after, 1)


class _Search:
    """A copy of the documents with the repairs so far, and the outcomes of all questions.

    :param trial: copy of the documents.
    :param questions: questions to repair.
    :param others: further questions, which must not lose their answers.
    :param anchors: anchors of all links; their headings are not changed.
    :param common: terms of many documents; as keywords they would lift a page for any question.
    """

    def __init__(
        self,
        trial: Trial,
        questions: Sequence[Question],
        others: Sequence[Question],
        anchors: Collection[str],
        common: Set[str],
    ) -> None:
        self.trial, self.anchors, self.common = trial, anchors, common
        self.asked = [answered(trial.app, question) for question in (*questions, *others)]
        self._ours = len(questions)

    def of(self, file: str) -> list[Asked]:
        """Return the questions that a file answers; the first of several right sections counts."""
        return [asked for asked in self.asked[: self._ours] if asked.places and asked.places[0][1] == file]

    def missed(self, file: str) -> list[Asked]:
        """Return the questions that a file answers but that are not held."""
        return [asked for asked in self.of(file) if not asked.outcome.held and not asked.outcome.wrong]

    def files(self) -> list[str]:
        """Return the files with missed questions; those with most of them come first."""
        every = {asked.places[0][1] for asked in self.asked[: self._ours] if asked.places}
        return sorted(filter(self.missed, every), key=lambda file: (-len(self.missed(file)), file))

    def tried(self, path: str, repair: Repair, missed: Question | None) -> Repair | None:
        """Return a repair with its effects and keep it in the copy; ``None`` if it does not help.

        :param path: absolute path of the file.
        :param missed: question whose first answer the repair has to mend; ``None`` for keywords.
        """
        data = self.trial.read(path)
        self.trial.write(path, repair.apply(data.decode("utf-8-sig")).encode())
        if missed is not None and not answered(self.trial.app, missed).outcome.passed:
            self.trial.write(path, data)
            return None
        asked = [answered(self.trial.app, former.outcome.question) for former in self.asked]
        pairs = [(a.outcome, b.outcome) for a, b in zip(self.asked, asked, strict=True)]
        gained = tuple(b.question.text for a, b in pairs if b.passed and not a.passed)
        lost = tuple(b.question.text for a, b in pairs if a.passed and not b.passed)
        closer = tuple(b.question.text for a, b in pairs if not b.held and _rank(b) < _rank(a))
        if lost or not (gained or closer):
            self.trial.write(path, data)
            return None
        self.asked = asked
        return replace(repair, gained=gained, closer=closer)


def propose(
    app: App, questions: Sequence[Question], ref: DocumentRef, others: Sequence[Question] = ()
) -> Iterator[Repair]:
    """Yield repairs for missed questions; each is tried together with those before it.

    :param questions: questions to repair.
    :param ref: documents to repair.
    :param others: questions that repairs must not harm. Sentences around links among the documents
        join them: they stand for questions that no file has.
    """
    relations = Relations(app, app.gather(ref))
    sentences = [question for _, question, _ in linked(relations)]
    others = (*others, *sentences[:: len(sentences) // MAX_SENTENCES + 1])
    founds = zip(relations.gathered.files, relations.gathered.founds, strict=True)
    paths = {file: place_of(found) for file, found in founds}
    anchors = {link.anchor.lower() for number in relations.documents for link in relations.references(number)}
    texts = (relations.parsed(number).tree.source for number in relations.documents)
    holders = Counter(chain.from_iterable(set(terms(text)) for text in texts))
    many = max(2, COMMON * len(relations.documents))
    common = {term for term, count in holders.items() if count > many}
    with Trial.of(app, ref) as trial:
        search = _Search(trial, questions, others, anchors, common)
        for file in search.files():
            path, digest = paths[file], digest_of(trial.read(paths[file]))
            for repair, missed in _candidates(search, file, path):
                found = search.tried(path, repair, missed)
                if found is not None:
                    yield replace(found, digest=digest)


def _candidates(search: _Search, file: str, path: str) -> Iterator[tuple[Repair, Question | None]]:
    """Yield possible repairs of a file, each for its present text, with the question that needs it."""

    def text() -> str:
        return search.trial.read(path).decode("utf-8-sig")

    repair = _add_keywords(search, file, text())
    if repair is not None:
        yield repair, None
    for make in (_split_section, _extend_heading):
        for missed in [asked.outcome.question.text for asked in search.missed(file)]:
            now = next(
                (asked for asked in search.missed(file) if asked.outcome.question.text == missed), None
            )
            repair = now and make(search, now, text())
            if now is not None and repair is not None:
                yield repair, now.outcome.question


def _rank(outcome: Outcome) -> float:
    return outcome.rank or float("inf")


def _add_keywords(search: _Search, file: str, text: str) -> Repair | None:
    """Add the words of the questions that a page answers to its keywords, except common words."""
    front, _ = divide(text)
    known = texts_of(front.partition("\n")[2], (_FIELD,)) if front else []
    keywords = (extract_keywords(asked.outcome.question.text).written for asked in search.of(file))
    rare = (word for found in keywords for word in found if search.common.isdisjoint(word.terms))
    written = [word.shown.lower() for word in rare]
    words = [*known, *(" ".join(_UNSAFE.sub(" ", word).split()) for word in written)]
    named = list(dict.fromkeys(filter(None, words)))[: max(MAX_KEYWORDS, len(known))]
    if named == known:
        return None
    end = "\r\n" if "\r\n" in text else "\n"
    line = f"{_FIELD}: [{', '.join(named)}]{end}"
    if not front:
        return Repair(file, "keywords", "", f"---{end}{line}---{end}")
    if _FIELD in values(front):
        return Repair(file, "keywords", front, with_values(front, {_FIELD: ", ".join(named)}))
    closing = front.rstrip().rfind("\n") + 1
    return Repair(file, "keywords", front, front[:closing] + line + front[closing:])


def _split_section(_: _Search, asked: Asked, text: str) -> Repair | None:
    """Insert a heading before the paragraph of a long section with most words of a question."""
    tree, section = _right_section(asked, text)
    own = range(section.heading_lines.stop, section.own.stop)
    if not 0 < section.level < _MAX_LEVEL or sum(len(tree.line(number)) for number in own) < MIN_SPLIT:
        return None
    words = extract_keywords(asked.outcome.question.text).written
    wanted = {term for word in words for term in word.terms}
    best, most, fenced = -1, 1, False
    for number in own[2:]:
        line = tree.line(number)
        fenced ^= _FENCE.match(line) is not None
        if fenced or tree.line(number - 1).strip() or not _PROSE.match(line):
            continue
        stop = next((at for at in range(number, own.stop) if not tree.line(at).strip()), own.stop)
        held = len(wanted.intersection(terms("\n".join(map(tree.line, range(number, stop))))))
        if held > most and text.count(line) == 1:
            best, most = number, held
    if best < 0:
        return None
    line, end = tree.line(best), "\r\n" if "\r\n" in text else "\n"
    title = " ".join(word.shown for word in words[:_HEADING_WORDS])
    heading = f"{'#' * (section.level + 1)} {title[:1].upper()}{title[1:]}"
    return Repair(asked.places[0][1], "split", line, f"{heading}{end}{end}{line}")


def _extend_heading(search: _Search, asked: Asked, text: str) -> Repair | None:
    """Add missing words of a question to the heading of the right section, in brackets.

    Selectors of the heading without these words still select it.
    """
    tree, section = _right_section(asked, text)
    line, file = tree.line(section.heading_lines.start), asked.places[0][1]
    alone = f"\n{text}\n".replace("\r", "").count(f"\n{line}\n") == 1
    if not section.level or not line.startswith("#") or not alone or slug(section.name) in search.anchors:
        return None
    known = set(terms(section.name))
    written = extract_keywords(asked.outcome.question.text).written
    words = [word.shown for word in written if known.isdisjoint(word.terms)][:_HEADING_WORDS]
    added = _ADDED.fullmatch(line.rstrip(" #"))
    bare, inside = (added[1], added[2].split(", ")) if added else (line.rstrip(" #"), [])
    if not words or len(inside) + len(words) > _MAX_HEADING_WORDS:
        return None
    after = f"{bare} ({', '.join([*inside, *words])})"
    return Repair(file, "heading", line, after)


def _right_section(asked: Asked, text: str) -> tuple[SectionTree, Section]:
    """Return the first right section of a question in the present text of its file."""
    _, file, index = asked.places[0]
    tree = parse_sections(text.encode(), document_name(file).rpartition("/")[2])
    return tree, tree.sections[index]


def write_repairs(app: App, repairs: Sequence[Repair]) -> None:
    """Write repairs to the files.

    :raises NotAllowedError: a file may not be changed.
    :raises ConflictError: a file has changed since the repairs were proposed.
    :raises StorageError: a file cannot be written.
    """
    for file in dict.fromkeys(repair.file for repair in repairs):
        own = [repair for repair in repairs if repair.file == file]
        target = Target.of(app, DocumentRef(file=file))
        folder, name = target.place()

        def edit(data: bytes, own: Sequence[Repair] = own, file: str = file) -> bytes:
            if digest_of(data) != own[0].digest:
                raise ConflictError(f"{file} has changed since it was read", hint="run the test again")
            text = data.decode("utf-8-sig")
            for repair in own:
                text = repair.apply(text)
            mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
            return mark + text.encode()

        folder.change(name, target.label, edit)
