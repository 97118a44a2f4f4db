"""Repairs of documents that miss questions: each is tried on the index before it is proposed.

Three kinds, the smallest first: words of the questions that a page answers become keywords in its front
matter, which count for all its sections; a long section is split where the words of the question stand; a
heading gets the words that it lacks. A repair is kept if no question loses its answer by it. The second and
the third kind have to bring a missed question into its first answer as well.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from npl_index.errors import InvalidRequestError
from npl_index.library.documents import DocumentRef
from npl_index.library.references import document_name
from npl_index.markdown.digests import digest_of
from npl_index.markdown.front_matter import divide, texts_of, values, with_values
from npl_index.markdown.links import slug
from npl_index.markdown.sections import Section, SectionTree, parse_sections
from npl_index.ranking.analysis import extract_keywords, terms
from npl_index.selectors.writing import qualified, steps_of
from npl_mcp.core.app import App
from npl_mcp.core.relations import Relations, place_of
from npl_mcp.core.section_edits import Target
from npl_mcp.questions.files import question_files, save_question
from npl_mcp.questions.format import Question
from npl_mcp.questions.proposing import linked
from npl_mcp.questions.running import Asked, Outcome, answered
from npl_mcp.questions.trial import Trial
from npl_mcp.stores.base.errors import ConflictError
from npl_mcp.tools.responses import as_dict

MOST_KEYWORDS = 40
"""Words that a page gets; the index counts the first 1,024 characters of a page's names."""

MOST_SENTENCES = 100
"""Sentences around links that no repair may harm."""

LONG = 1_000
"""Characters of a section that may be split."""

_HEADING_WORDS, _MOST_HEADING_WORDS = 3, 5
_DEEPEST = 6
_FIELD = "keywords"
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_PROSE = re.compile(r"[^\s#|>\-*+<]")
_ADDED = re.compile(r"(#+ [^()]*) \(([^()]*)\)")
_UNSAFE = re.compile(r"[\[\]{}\",:#&*!|>'%@`]")


@dataclass(frozen=True, slots=True)
class Repair:
    """A change of one file.

    :param file: its name in answers.
    :param kind: what it changes.
    :param before: what stands there; of front matter all of it.
    :param after: what stands there afterwards.
    :param gained: questions that are held with it and not without.
    :param closer: questions that it brings closer to their first answer.
    :param lost: questions that are held without it and not with it.
    :param digest: of the file, before any repair.
    :param renamed: selectors of questions that it changes, old and new.
    """

    file: str
    kind: Literal["keywords", "split", "heading"]
    before: str
    after: str
    gained: tuple[str, ...] = ()
    closer: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    digest: str = ""
    renamed: tuple[tuple[str, str], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return its fields as JSON holds them."""
        found: dict[str, Any] = as_dict(self)
        return found

    def apply(self, text: str) -> str:
        """Return a file with the change.

        :raises InvalidRequestError: it lacks an earlier change.
        """
        if self.before not in text:
            problem = f"a change of {self.file} builds on one that was not chosen"
            raise InvalidRequestError(problem, parameter="fix", hint="choose the changes above it as well")
        return text.replace(self.before, self.after, 1)


class _Search:
    """A copy with the repairs so far, and what its answers hold.

    :param trial: the copy.
    :param questions: those to be repaired.
    :param others: further questions, which must not lose their sections.
    :param anchors: of all links; headings with these are not changed.
    """

    def __init__(
        self,
        trial: Trial,
        questions: Sequence[Question],
        others: Sequence[Question],
        anchors: Collection[str],
    ) -> None:
        self.trial, self.anchors = trial, anchors
        self.asked = [answered(trial.app, one) for one in (*questions, *others)]
        self._ours = len(questions)

    def of(self, file: str) -> list[Asked]:
        """Return the questions that a file answers; the first of several sections counts."""
        return [one for one in self.asked[: self._ours] if one.places and one.places[0][1] == file]

    def missed(self, file: str) -> list[Asked]:
        """Return the questions that a file answers and that are not held."""
        return [one for one in self.of(file) if not one.outcome.held and not one.outcome.wrong]

    def files(self) -> list[str]:
        """Return the files that answer questions, those that miss most first."""
        every = {one.places[0][1] for one in self.asked[: self._ours] if one.places}
        return sorted(every, key=lambda file: (-len(self.missed(file)), file))

    def tried(self, path: str, repair: Repair, missed: Question | None) -> Repair | None:
        """Return a repair with its effects if it helps; the copy then keeps it.

        :param path: absolute path of the file.
        :param missed: the question that it has to bring into its first answer.
        """
        data, new = self.trial.read(path), dict(repair.renamed)

        def again(question: Question) -> Asked:
            answers = tuple(new.get(answer, answer) for answer in question.answers)
            return answered(self.trial.app, replace(question, answers=answers))

        self.trial.write(path, repair.apply(data.decode("utf-8-sig")).encode())
        if missed is not None and not again(missed).outcome.passed:
            self.trial.write(path, data)
            return None
        asked = [again(one.outcome.question) for one in self.asked]
        pairs = [(a.outcome, b.outcome) for a, b in zip(self.asked, asked, strict=True)]
        gained = tuple(b.question.text for a, b in pairs if b.passed and not a.passed)
        lost = tuple(b.question.text for a, b in pairs if a.passed and not b.passed)
        closer = tuple(b.question.text for a, b in pairs if not b.held and _rank(b) < _rank(a))
        # Words of questions that a page answers help others about it, which nobody has written down.
        if lost:
            self.trial.write(path, data)
            return None
        self.asked = asked
        return replace(repair, gained=gained, closer=closer)


def propose(
    app: App, questions: Sequence[Question], ref: DocumentRef, others: Sequence[Question] = ()
) -> Iterator[Repair]:
    """Yield repairs for missed questions; each is tried together with those before it.

    :param others: questions that are not repaired, and that no repair may harm. Sentences around links among
        the documents are others as well: they speak for questions that nobody has written down.
    """
    relations = Relations(app, app.gather(ref))
    sentences = [question for _, question, _ in linked(relations)]
    others = (*others, *sentences[:: len(sentences) // MOST_SENTENCES + 1])
    founds = zip(relations.gathered.files, relations.gathered.founds, strict=True)
    paths = {file: place_of(found) for file, found in founds}
    anchors = {one.anchor.lower() for number in relations.documents for one in relations.references(number)}
    with Trial.of(app, ref) as trial:
        search = _Search(trial, questions, others, anchors)
        for file in search.files():
            path, digest = paths[file], digest_of(trial.read(paths[file]))
            for repair, missed in _candidates(search, file, path):
                found = search.tried(path, repair, missed)
                if found is not None:
                    yield replace(found, digest=digest)


def _candidates(search: _Search, file: str, path: str) -> Iterator[tuple[Repair, Question | None]]:
    """Yield repairs of a file, each made for its present state, with the question that needs it."""

    def text() -> str:
        return search.trial.read(path).decode("utf-8-sig")

    repair = _keywords(file, text(), [one.outcome.question for one in search.of(file)])
    if repair is not None:
        yield repair, None
    for make in (_split, _heading):
        for missed in [one.outcome.question.text for one in search.missed(file)]:
            now = next((one for one in search.missed(file) if one.outcome.question.text == missed), None)
            repair = now and make(search, now, text())
            if now is not None and repair is not None:
                yield repair, now.outcome.question


def _rank(outcome: Outcome) -> float:
    return outcome.rank or float("inf")


def _keywords(file: str, text: str, questions: Sequence[Question]) -> Repair | None:
    """Give a page the words of the questions that it answers."""
    front, _ = divide(text)
    known = texts_of(front.partition("\n")[2], (_FIELD,)) if front else []
    written = [word.shown.lower() for one in questions for word in extract_keywords(one.text).written]
    words = [*known, *(" ".join(_UNSAFE.sub(" ", word).split()) for word in written)]
    named = list(dict.fromkeys(filter(None, words)))[: max(MOST_KEYWORDS, len(known))]
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


def _split(_: _Search, asked: Asked, text: str) -> Repair | None:
    """Put a heading before the paragraph of a long section that has most words of a question."""
    tree, section = _section(asked, text)
    own = range(section.heading_lines.stop, section.own.stop)
    if not 0 < section.level < _DEEPEST or sum(len(tree.line(number)) for number in own) < LONG:
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


def _heading(search: _Search, asked: Asked, text: str) -> Repair | None:
    """Give the heading of the right section the words of a question that it lacks."""
    tree, section = _section(asked, text)
    line, file = tree.line(section.heading_lines.start), asked.places[0][1]
    alone = f"\n{text}\n".replace("\r", "").count(f"\n{line}\n") == 1
    if not section.level or not line.startswith("#") or not alone or slug(section.name) in search.anchors:
        return None
    known = set(terms(section.name))
    written = extract_keywords(asked.outcome.question.text).written
    words = [one.shown for one in written if known.isdisjoint(one.terms)][:_HEADING_WORDS]
    added = _ADDED.fullmatch(line.rstrip(" #"))
    bare, inside = (added[1], added[2].split(", ")) if added else (line.rstrip(" #"), [])
    if not words or len(inside) + len(words) > _MOST_HEADING_WORDS:
        return None
    after = f"{bare} ({', '.join([*inside, *words])})"
    steps = steps_of(parse_sections(text.replace(line, after, 1).encode(), tree.name))
    below = tree.subtree(section.index)
    renamed = {
        selector: qualified(document_name(file), steps[index])
        for one in search.asked
        for selector, where, index in one.places
        if where == file and index in below and section.name.lower() in selector.lower()
    }
    return Repair(file, "heading", line, after, renamed=tuple(renamed.items()))


def _section(asked: Asked, text: str) -> tuple[SectionTree, Section]:
    """Return the first right section of a question in the present text of its file."""
    _, file, index = asked.places[0]
    tree = parse_sections(text.encode(), document_name(file).rpartition("/")[2])
    return tree, tree.sections[index]


def write_repairs(app: App, repairs: Sequence[Repair]) -> None:
    """Write repairs into the files, and their new selectors into the question files.

    :raises NotAllowedError: a file must not be changed.
    :raises ConflictError: a file has changed since the repairs were proposed.
    :raises StorageError: a file cannot be written.
    """
    for file in dict.fromkeys(one.file for one in repairs):
        own = [one for one in repairs if one.file == file]
        target = Target.of(app, DocumentRef(file=file))
        folder, name = target.place(app)

        def edit(data: bytes, own: Sequence[Repair] = own, file: str = file) -> bytes:
            if digest_of(data) != own[0].digest:
                raise ConflictError(f"{file} has changed since it was read", hint="run the test again")
            text = data.decode("utf-8-sig")
            for repair in own:
                text = repair.apply(text)
            mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
            return mark + text.encode()

        folder.change(name, target.label, edit)
    renamed = dict(pair for one in repairs for pair in one.renamed)

    def now(selector: str) -> str:
        while selector in renamed:
            selector = renamed[selector]
        return selector

    for questions in question_files(app) if renamed else ():
        for question in questions.questions:
            answers = tuple(map(now, question.answers))
            if answers != question.answers:
                save_question(app, questions.name, replace(question, answers=answers), question.line)
