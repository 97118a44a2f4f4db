"""A collection in four shards is ranked as one is: the same sections, order and scores, bit for bit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

import pytest

from benchmarks.shards import Shards
from npl_index.ranking.analysis import extract_keywords
from npl_index.ranking.indexing import Collection, IndexedDocument, index_document
from npl_index.ranking.scoring import Query, rank
from tests.npl_index.conftest import CORPUS, document
from tests.test_relevance import QUESTIONS

SENTENCE = (
    "copper tea boil kettle runtime water config environment specification kettle boil copper water tea"
    " config kettle environment boil runtime copper"
)

MOST_BYTES = 64 * 1024
"""What a shard sends for a question at most: twice eighty sections with their paths and some numbers."""

QUERIES = {
    "one term": ("fence",),
    "a common term": ("agent",),
    "misspelt": ("enviroment of the runtme",),
    "misspelt, and what is alike is in several shards": ("zyxwvuts",),
    "abbreviated": ("env spec conf",),
    "an identifier": ("what does max_retries_17 do",),
    "a flag": ("when is --force-17 given",),
    "words side by side": ("copper kettle on a copper kettle of tea",),
    "many words side by side, all of them in the one section of a shard": (SENTENCE,),
    "words side by side in one section alone": ("lonely heron",),
    "what says the same everywhere": ("twins of equal weight",),
    "more equal ones than are ranked": ("echo",),
    "the longest section alone": ("longest",),
    "long sections, of which not all are read": ("endless row of numbers",),
    "a heading": ("copper kettle 3",),
    "other letters": ("怎么设置数据库的连接池",),
    "nothing": ("qqqq",),
    "stop words": ("how to",),
    "a topic": ("", "table formatting"),
    "topics": ("what is an agent made of", "definition list", "agent declaration", "copper"),
    "a topic that is misspelt": ("", "tabel formating"),
    "a topic that nothing is called": ("kettle", "zebra crossing"),
}


def made(chance: Random, number: int) -> str:
    """Return a page whose words, and pairs of words, stand in others too."""
    words = ["kettle", "copper", "tea", "water", "boil", "runtime", "environment", "specification", "config"]
    lines = [f"# Page {number} of {chance.choice(words)}"]
    for part in range(chance.randint(1, 5)):
        lines += [f"{'#' * chance.randint(2, 4)} {chance.choice(words)} {chance.choice(words)} {part}", ""]
        body = [*chance.choices(words, k=12), f"max_retries_{chance.randint(1, 30)}", f"zyxwvut{part}"]
        chance.shuffle(body)
        lines += [f"{' '.join(body)}, or --force-{chance.randint(1, 30)}. 连接池 的 大小 {part}", ""]
    return "\n".join([*lines, "## Twins", "", "twins of equal weight", "", "## Echo", "", "echo", ""])


def indexed(path: str, text: str) -> IndexedDocument:
    """Index some text."""
    return index_document(document(path, text))


@pytest.fixture(scope="module")
def documents() -> list[IndexedDocument]:
    """The bundled prompts, and pages that are alike."""
    chance = Random(4)
    texts = {path.relative_to(CORPUS).as_posix(): path.read_text("utf-8") for path in CORPUS.rglob("*.md")}
    texts |= {f"made/{number:02}.md": made(chance, number) for number in range(90)}
    # More terms than are read of one section, and together more than are read of all.
    for name, size in (("longest", 70_000), ("long-a", 40_000), ("long-b", 30_000), ("long-c", 20_000)):
        texts[f"{name}.md"] = f"# {name} endless row\n\n{'endless row of numbers ' * (size // 3)}{name}\n"
    texts["heron.md"] = "# Birds\n\nA lonely heron.\n\n# More\n\n" + "## Lonely\n\nheron\n\n" * 3
    texts["solo.md"] = f"# Solo {SENTENCE}\n\n{SENTENCE}.\n"
    return [indexed(path, text) for path, text in sorted(texts.items())]


@pytest.fixture
def shards(documents: list[IndexedDocument]) -> Iterator[Shards]:
    """The documents in four shards: most, some, one, and none."""
    places = Random(7).choices(range(2), (5, 1), k=len(documents))
    places[[one.tree.name for one in documents].index("solo")] = 2
    found = Shards([[one for one, at in zip(documents, places, strict=True) if at == n] for n in range(4)])
    yield found
    found.close()


def compare(shards: Shards, documents: list[IndexedDocument]) -> None:
    """Ask both everything."""
    whole = Collection.build(sorted(documents, key=lambda one: one.document.fingerprint.path))
    labelled = [(json.loads(line)["query"],) for line in QUESTIONS.read_text("utf-8").splitlines()]
    assert shards.paths == [one.document.fingerprint.path for one in whole.documents]
    for context, *topics in (*QUERIES.values(), *labelled):
        query = Query(extract_keywords(context), tuple(topics))
        answer = shards.rank(query)
        assert answer.hits == rank(whole, query), context
        assert max(answer.sent) < MOST_BYTES


def test_shards_rank_as_one_collection(shards: Shards, documents: list[IndexedDocument]) -> None:
    """Of any sizes, one of them empty, for all kinds of questions."""
    compare(shards, documents)


def test_changes_in_shards_are_changes_of_all(shards: Shards, documents: list[IndexedDocument]) -> None:
    """Documents are edited, go, come and move; a shard becomes empty, and one that was empty is not."""
    kept = {one.document.fingerprint.path: one for one in documents}

    def change(number: int, gone: list[str], **come: str) -> None:
        fresh = [indexed(f"{name}.md", text) for name, text in come.items()]
        shards.change(number, gone, fresh)
        for path in gone:
            del kept[path]
        kept.update({one.document.fingerprint.path: one for one in fresh})

    held = [list(shard.paths) for shard in shards.collections]
    assert [len(paths) > 0 for paths in held] == [True, True, True, False]
    change(3, [], kettle="# Kettle\n\n## Table formatting\n\nA copper kettel, zyxwvuts, unheardof.\n")
    change(2, held[2])
    change(0, ["/docs/heron.md"])
    edited = {f"made/{number:02}": made(Random(number), number) for number in range(0, 90, 9)}
    for number in (0, 1):
        mine = {name: text for name, text in edited.items() if f"/docs/{name}.md" in held[number]}
        change(number, [f"/docs/{name}.md" for name in mine], **mine)
    (moved, *_) = held[1]
    shards.change(1, [moved], [])
    shards.change(3, [], [kept[moved]])
    compare(shards, list(kept.values()))
