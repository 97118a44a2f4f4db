"""Published sets of questions, which anybody can repeat: npl and FTS5 beside the figures of others.

Usage: ``python -m benchmarks.published locomo|contextual|xquad FOLDER [--every N] [--languages CODES]``

*FOLDER* is a checkout of the public repository of the set; nothing of it is shipped.

- ``locomo``: github.com/snap-research/locomo. Ten long conversations; each session is a file, all in one
  folder. Questions of category 5 have no answer: they are asked as absent ones.
- ``contextual``: github.com/anthropics/claude-cookbooks, ``skills/contextual-embeddings``. Chunks of code,
  each a file.
- ``xquad``: github.com/google-deepmind/xquad. Paragraphs, each a file, in twelve languages.

Each question is asked of ``search`` (a list of 20), of FTS5 (Porter stemmer, path 1.5, heading 4, text 1),
and once of ``npl_load_tailored`` with its defaults (*first answer*: the files with text in it). The figures
are the share of the right files among the first five, ten and twenty (*recall*), the share of questions with
one of them and with all of them, and the mean reciprocal rank of the first one. A figure of others stands
as they wrote it, with its source; what differs from our way stands below the table.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.common import best_counter, settings
from benchmarks.fulltext import STANDARD, FullText
from benchmarks.relevance.indexed import read_documents
from npl_index.answer.values import Written
from npl_mcp.app.app import App
from npl_mcp.tools.search import Hits
from tests.tools import npl_load_tailored, search

LIMIT = 20
DEPTHS = (5, 10, 20)
WEIGHTS = {"path": 1.5, "heading": 4.0, "body": 1.0}
LANGUAGES = ("ar", "de", "el", "en", "es", "hi", "ro", "ru", "th", "tr", "vi", "zh")


class Question(NamedTuple):
    """A question and the files that answer it.

    :param kind: its category, as the set counts them.
    """

    text: str
    files: frozenset[str]
    kind: int = 0


@dataclass(frozen=True)
class Claim:
    """Figures that others published.

    :param figures: by the name of the column.
    """

    who: str
    figures: Mapping[str, float]
    source: str


@dataclass(frozen=True)
class Group:
    """Questions with a table of their own.

    :param columns: the figures to print; none for questions without an answer.
    """

    title: str
    kinds: frozenset[int]
    columns: Sequence[str] = ()
    claims: Sequence[Claim] = ()


@dataclass(frozen=True)
class Published:
    """A set.

    :param texts: Markdown by path.
    :param remark: what is not comparable.
    """

    texts: Mapping[str, str]
    questions: Sequence[Question]
    groups: Sequence[Group]
    remark: str
    tokenizers: Sequence[str] = (STANDARD,)


ALL5, ALL10, ANY5, ANY10, MRR = "all@5", "all@10", "any@5", "any@10", "MRR"
RECALL5, RECALL10, RECALL20 = "recall@5", "recall@10", "recall@20"
_ISSUES = "https://github.com"
LOCOMO_CLAIMS = (
    Claim(
        "basic-memory 0.21.6, hybrid",
        {RECALL5: 0.733, RECALL10: 0.839, MRR: 0.619},
        f"{_ISSUES}/basicmachines-co/basic-memory/issues/950",
    ),
    Claim(
        "mem0 2.0.5",
        {RECALL5: 0.791, RECALL10: 0.891, MRR: 0.648},
        f"{_ISSUES}/basicmachines-co/basic-memory/issues/950",
    ),
    Claim(
        "uteke 0.17, fusion",
        {ANY5: 0.840, ANY10: 0.939, ALL5: 0.716, ALL10: 0.850},
        f"{_ISSUES}/codecoradev/uteke/pull/1212",
    ),
)
_GRAPH = f"{_ISSUES}/adoresever/graph-memory/issues/76"
LOCOMO_GROUPS = (
    Group(
        "LoCoMo, categories 1 to 4",
        frozenset((1, 2, 3, 4)),
        (RECALL5, RECALL10, MRR, ANY5, ANY10, ALL5, ALL10),
        LOCOMO_CLAIMS,
    ),
    Group(
        "LoCoMo, all five categories",
        frozenset((1, 2, 3, 4, 5)),
        (RECALL5, ALL5, ALL10),
        (
            Claim("graph-memory, sessions and messages", {ALL5: 0.829, ALL10: 0.902}, _GRAPH),
            Claim("deja-vu", {RECALL5: 0.780}, f"{_ISSUES}/vshulcz/deja-vu/pull/299"),
        ),
    ),
    Group(
        "LoCoMo, category 1: several sessions",
        frozenset([1]),
        (RECALL5, ALL5),
        (Claim("graph-memory, sessions and messages", {ALL5: 0.326}, _GRAPH),),
    ),
    Group("LoCoMo, category 5: without an answer", frozenset([5])),
)
_GUIDE = f"{_ISSUES}/anthropics/claude-cookbooks/blob/main/skills/contextual-embeddings/guide.ipynb"
CONTEXTUAL_CLAIMS = tuple(
    Claim(who, dict(zip((RECALL5, RECALL10, RECALL20), figures, strict=True)), _GUIDE)
    for who, figures in {
        "embeddings": (0.809, 0.872, 0.901),
        "contextual embeddings": (0.864, 0.928, 0.938),
        "contextual embeddings and BM25": (0.864, 0.932, 0.950),
        "the same with a reranker": (0.912, 0.948, 0.963),
    }.items()
)


def locomo(folder: Path, languages: Sequence[str]) -> Iterator[Published]:
    """Read LoCoMo."""
    del languages
    texts: dict[str, str] = {}
    questions: list[Question] = []
    for sample in json.loads((folder / "data" / "locomo10.json").read_text(encoding="utf-8")):
        talk, name = sample["conversation"], sample["sample_id"]
        for key in talk:
            if re.fullmatch(r"session_\d+", key):
                turns = "\n\n".join(f"**{turn['speaker']}**: {_said(turn)}" for turn in talk[key])
                head = f"# {talk['speaker_a']} and {talk['speaker_b']}, {talk[f'{key}_date_time']}"
                texts[f"{name}/{key}.md"] = f"{head}\n\n{turns}\n"
        for row in sample["qa"]:
            sessions = re.findall(r"D:?(\d+):\d+", " ".join(row["evidence"]))
            if sessions:
                files = frozenset(f"{name}/session_{number}.md" for number in sessions)
                questions.append(Question(row["question"], files, row["category"]))
    yield Published(
        texts,
        questions,
        LOCOMO_GROUPS,
        "Sessions are our files, their headings name speakers and date; others divide the conversations in"
        " other ways and say how in their source. Products also print the share of right answers of a"
        " model, which is not measured here. Questions of category 5 ask one speaker about what the other"
        " one said: their words stand in a session, and most systems count that session as right.",
    )


def _said(turn: Mapping[str, str]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['text']} (picture: {caption})" if caption else turn["text"]


def contextual(folder: Path, languages: Sequence[str]) -> Iterator[Published]:
    """Read the chunks of code and their questions."""
    del languages
    data = folder / "skills" / "contextual-embeddings" / "data"
    texts, names = {}, {}
    for document in json.loads((data / "codebase_chunks.json").read_text(encoding="utf-8")):
        for chunk in document["chunks"]:
            name = f"{chunk['chunk_id']}.md"
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", chunk["content"])), default=0))
            texts[name] = f"{fence}\n{chunk['content']}\n{fence}\n"
            names[document["original_uuid"], chunk["original_index"]] = name
    rows = map(json.loads, (data / "evaluation_set.jsonl").read_text(encoding="utf-8").splitlines())
    questions = [
        Question(row["query"], frozenset(names[uuid, at] for uuid, at in row["golden_chunk_uuids"]))
        for row in rows
    ]
    columns = (RECALL5, RECALL10, RECALL20, MRR)
    yield Published(
        texts,
        questions,
        [Group("Contextual retrieval, chunks of code", frozenset([0]), columns, CONTEXTUAL_CLAIMS)],
        "The chunks are theirs, cut by characters, without a heading and without the path of their file, both"
        " of which npl uses. Their contexts and rerankings are written by models.",
    )


def xquad(folder: Path, languages: Sequence[str]) -> Iterator[Published]:
    """Read the paragraphs and their questions, one set a language."""
    for language in languages:
        texts: dict[str, str] = {}
        questions: list[Question] = []
        source = (folder / f"xquad.{language}.json").read_text(encoding="utf-8")
        for article in json.loads(source)["data"]:
            for paragraph in article["paragraphs"]:
                name = f"paragraph-{len(texts):03}.md"
                texts[name] = f"{paragraph['context']}\n"
                questions += [Question(row["question"], frozenset([name])) for row in paragraph["qas"]]
        yield Published(
            texts,
            questions,
            [Group(f"XQuAD, {language}", frozenset([0]), (MRR, RECALL5))],
            "XQuAD measures answers of models within a known paragraph; to find it is our use. No"
            " figures of others are known for that.",
            tokenizers=(STANDARD, "trigram"),
        )


SETS: Mapping[str, Callable[[Path, Sequence[str]], Iterator[Published]]] = {
    "locomo": locomo,
    "contextual": contextual,
    "xquad": xquad,
}


def scores(lists: Sequence[Sequence[str]], questions: Sequence[Question]) -> dict[str, float]:
    """Return the mean figures of lists of files, best first."""
    rows = []
    for files, question in zip(lists, questions, strict=True):
        at = [number for number, file in enumerate(files) if file in question.files]
        row = {MRR: 1 / (at[0] + 1) if at else 0.0}
        for depth in DEPTHS:
            share = len(question.files.intersection(files[:depth])) / len(question.files)
            row |= {
                f"recall@{depth}": share,
                f"any@{depth}": float(share > 0),
                f"all@{depth}": float(share == 1),
            }
        rows.append(row)
    return {name: fmean(row[name] for row in rows) for name in rows[0]}


class Npl:
    """The files of sets in a folder, with npl over them.

    :param place: an empty folder.
    """

    def __init__(self, texts: Mapping[str, str], place: Path) -> None:
        self._docs = place / "docs"
        for name, text in texts.items():
            (self._docs / name).parent.mkdir(parents=True, exist_ok=True)
            (self._docs / name).write_text(text, encoding="utf-8")
        self._app = App(settings(self._docs, data_dir=place / "data"))
        self._count = best_counter().count
        while self._hits("anything at all").missing_files:
            pass  # they are being indexed

    def _hits(self, question: str) -> Hits:
        hits = search(self._app, query=question, limit=LIMIT)
        assert isinstance(hits, Hits)
        return hits

    def listed(self, question: str) -> list[str]:
        """Return the files that ``search`` lists."""
        return list(dict.fromkeys(hit.file for hit in self._hits(question).items if hit.file))

    def first(self, question: str) -> tuple[list[str], int]:
        """Return the files with text in the first answer, and its tokens."""
        answer = npl_load_tailored(self._app, context=question, format="markdown")
        assert isinstance(answer, Written)
        files = dict.fromkeys(section.file or answer.value.file for section in answer.value.sections)
        return [file for file in files if file], self._count(answer.text)

    def full_text(self, tokenizer: str) -> Callable[[str], list[str]]:
        """Return what asks FTS5."""
        sections = [
            (path, section.name if section.level else "", indexed.tree.text(section.own))
            for path, indexed in read_documents(self._docs).items()
            for section in indexed.tree.sections
        ]
        table = FullText(WEIGHTS, sections, tokenizer)

        def ask(question: str) -> list[str]:
            rows = table.find(question, LIMIT)
            return list(dict.fromkeys(sections[number][0] for number, _ in rows))

        return ask

    def close(self) -> None:
        """Close npl."""
        self._app.close()


def line(who: str, figures: Mapping[str, float], columns: Sequence[str], source: str) -> str:
    """Write a row of a table."""
    cells = [f"{figures[name]:.3f}".lstrip("0") if name in figures else "–" for name in columns]
    return f"| {' | '.join([who, *cells, source])} |"


def measure(published: Published, npl: Npl) -> Iterator[str]:
    """Ask the questions of a set, and yield the lines that are printed."""
    first = [npl.first(question.text) for question in published.questions]
    ways: dict[str, Callable[[str], list[str]]] = {"npl, `search`": npl.listed}
    ways |= {f"FTS5, {name}": npl.full_text(name) for name in published.tokenizers}
    found = {who: [ask(question.text) for question in published.questions] for who, ask in ways.items()}
    for group in published.groups:
        chosen = [
            number for number, question in enumerate(published.questions) if question.kind in group.kinds
        ]
        if not chosen:
            continue
        questions = [published.questions[number] for number in chosen]
        yield f"{group.title}: {len(questions)} questions, {len(published.texts)} files"
        tokens = fmean(first[number][1] for number in chosen)
        silent = fmean(not first[number][0] for number in chosen)
        answered = f"npl's first answer: {tokens:.0f} tokens, no text {silent:.3f}"
        if group.columns:
            yield f"| | {' | '.join(group.columns)} | source |"
            yield f"|:--|{'--:|' * len(group.columns)}:--|"
            for who, lists in found.items():
                figures = scores([lists[number] for number in chosen], questions)
                yield line(who, figures, group.columns, "this run")
            for claim in group.claims:
                yield line(claim.who, claim.figures, group.columns, claim.source)
            right = scores([first[number][0] for number in chosen], questions)
            answered += (
                f", text of a right file {right['any@20']:.3f}, of all right files {right['all@20']:.3f}"
            )
        yield f"{answered}\n"
    yield f"Not comparable: {published.remark}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.published", description=__doc__.split("\n")[0])
    parser.add_argument("set", choices=SETS, help="name of the set")
    parser.add_argument("folder", type=Path, help="checkout of its repository")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="ask every Nth question only")
    parser.add_argument("--languages", default=",".join(LANGUAGES), help="of xquad; by default %(default)s")
    given = parser.parse_args(arguments)
    for published in SETS[given.set](given.folder, given.languages.split(",")):
        with TemporaryDirectory() as place, closing(Npl(published.texts, Path(place))) as npl:
            chosen = replace(published, questions=published.questions[:: given.every])
            print(*measure(chosen, npl), sep="\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
