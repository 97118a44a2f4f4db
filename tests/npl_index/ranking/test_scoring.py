"""Ranking, scores and the cut."""

import logging
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Plus

from benchmarks.relevance.indexed import indexed_collection
from npl_index.choices import Weights
from npl_index.ranking.analysis import terms
from npl_index.ranking.collection import Collection, KnownCollection
from npl_index.ranking.features import FEATURE_WEIGHTS, Feature
from npl_index.ranking.indexing import index_document
from npl_index.ranking.keywords import extract_keywords
from npl_index.ranking.scoring import DEFAULT_WEIGHTS, SCORE_CUTOFF, Hit, Query, rank
from npl_index.ranking.topics import OTHER_FORM
from npl_index.selectors.filters import SectionFilter, TraitFilter
from tests.conftest import case_text, cases
from tests.npl_index.conftest import collection, document, lines_run

GUIDE = case_text("texts/packages.md")


ONE = collection(GUIDE)


def ask(
    context: str = "",
    *topics: str,
    among: Collection = ONE,
    weights: Weights = DEFAULT_WEIGHTS,
    score_cutoff: float = SCORE_CUTOFF,
) -> list[Hit]:
    """Rank sections for a context and topics."""
    query = Query(extract_keywords(context), topics)
    return rank(among, query, weights=weights, score_cutoff=score_cutoff).hits


def names(hits: list[Hit], among: Collection = ONE) -> list[str]:
    return [among.documents[hit.document].tree.sections[hit.section].name for hit in hits]


FIRST = cases("npl_index/ranking/scoring")["first"]


@pytest.mark.parametrize(("context", "expected"), FIRST.values(), ids=FIRST)
def test_the_best_section_comes_first(context: str, expected: str) -> None:
    assert names(ask(context))[0] == expected


def test_nothing_in_common() -> None:
    assert ask("zymurgy quux") == []
    assert ask("") == []
    assert ask("", "") == []


def test_topics_exact_partial_fuzzy() -> None:
    """The topic that is the heading beats one that is a part of it, and that one that is merely alike."""
    among = collection("# T\n\n## Fence\n\nx\n\n## Fence Types\n\ny\n\n## Other\n\nz\n")
    hits = ask("", "fence types", among=among)
    parts = {name: hit.score.topic for name, hit in zip(names(hits, among), hits, strict=True)}
    assert parts["Fence Types"] == 1
    assert 0.5 < parts["Fence"] < 1
    assert "Other" not in parts
    alike = ask("", "fence tipes", among=among)[0]
    assert names([alike], among) == ["Fence Types"]
    assert 0 < alike.score.topic <= 0.5


@pytest.mark.parametrize(
    "topic", ["table formatting", "TABLE FORMATTING", "Tables, formatted", "table-formatting"]
)
def test_topics_ignore_case_and_form(topic: str) -> None:
    """A topic matches its heading in any case, inflection and punctuation."""
    best = ask("", topic)[0]
    assert names([best]) == ["Table Formatting"]
    assert best.score.topic >= 0.9


FORMS = cases("npl_index/ranking/scoring")["forms"]
"""Two forms of a heading that have the same stem."""


@pytest.mark.parametrize("kind", ["file", "folder", "nested"])
@pytest.mark.parametrize("pair", FORMS)
def test_the_form_that_was_written_comes_first(pair: tuple[str, str], kind: str) -> None:
    """Its section wins in any order, with any texts, as a topic and as a context."""
    texts = ("Nothing here.", "About {0}: {0} and {1} and {1}, {1} with {0}, and {1} again.")
    for written, other in (pair, pair[::-1]):
        for first, second in product(texts, repeat=2):
            mark = "###" if kind == "nested" else "##"
            parts = [
                f"## {written}\n\n{first.format(written, other)}\n\n",
                f"{mark} {other}\n\n{second.format(written, other)}\n",
            ]
            files = [f"# {n}\n\n{part}" for n, part in zip("AB", parts, strict=True)]
            among = collection(*(files if kind == "folder" else ["# G\n\n" + "".join(parts)]))
            for wanted in (written, other):
                best = ask("", wanted.upper(), among=among)[0]
                assert names([best], among) == [wanted]
                assert best.score.topic == 1
                assert names(ask(wanted.lower(), among=among)[:1], among) == [wanted]
            fits = {hit.score.topic for hit in ask("", written, among=among)}
            assert fits >= {1, OTHER_FORM}


def test_topics_match_contents_too() -> None:
    assert names(ask("", "colon"))[0] == "Definition List"


queries = st.lists(st.sampled_from([*GUIDE.split(), "zymurgy", "formating", "📅"]), min_size=1, max_size=12)
topic_lists = st.lists(
    st.sampled_from(["formatting", "agent", "definition list", "tabel", "数据库"]), max_size=3
)
shares = st.floats(0, 1)


@given(queries, topic_lists, st.builds(Weights, name=shares, content=shares, topic=shares))
def test_scores_are_ordered_shares(words: list[str], topics: list[str], weights: Weights) -> None:
    """Totals fall with the rank, down to the cutoff's share; every part lies between 0 and 1."""
    hits = ask(" ".join(words), *topics, weights=weights)
    totals = [hit.score.total for hit in hits]
    assert totals == sorted(totals, reverse=True)
    assert all(SCORE_CUTOFF * totals[0] <= total + 1e-9 <= 1 + 1e-8 for total in totals)
    assert all(0 <= part <= 1 + 1e-9 for hit in hits for part in hit.score)
    assert len({(hit.document, hit.section) for hit in hits}) == len(hits)
    assert hits == ask(" ".join(words), *topics, weights=weights)


def test_the_best_total_is_the_weighted_sum() -> None:
    """The best hit's total is 0.4 name + 0.3 content + 0.3 topic; without topics the others share theirs."""
    score = ask("align the columns of a table", "table formatting")[0].score
    assert score.total == pytest.approx(0.4 * score.name + 0.3 * score.content + 0.3 * score.topic)
    score = ask("align the columns of a table")[0].score
    assert score.total == pytest.approx((0.4 * score.name + 0.3 * score.content) / 0.7)


def test_weights_change_the_order() -> None:
    """With the weight on headings or on texts alone, another section comes first."""
    among = collection("# T\n\n## Cache\n\nnothing here\n\n## Other\n\ncache cache cache of a cache\n")
    by_name = ask("cache", among=among, weights=Weights(name=1, content=0.01, topic=0))
    by_text = ask("cache", among=among, weights=Weights(name=0.01, content=1, topic=0))
    assert names(by_name, among)[0] == "Cache"
    assert names(by_text, among)[0] == "Other"


def test_the_cutoff() -> None:
    """Hits below that share of the best total are left out; 0 keeps all."""
    everything = ask("prompt tables of an agent definition", score_cutoff=0)
    above = ask("prompt tables of an agent definition", score_cutoff=0.7)
    best = everything[0].score.total
    assert above == [hit for hit in everything if hit.score.total >= 0.7 * best]
    assert 0 < len(above) < len(everything)


def test_a_score_means_the_same_for_every_question() -> None:
    """The content part says which share of the question the section holds, however little the others hold."""
    question = "how is an agent declared"
    (best, *_), (worse, *_) = ask(question), ask(f"{question} by kafka brokers in zookeeper")
    assert (best.document, best.section) == (worse.document, worse.section)
    assert best.score.content == 1
    assert worse.score.content < 0.5


def test_equal_sections_keep_their_order() -> None:
    """Sections that say the same come in the order of documents and sections."""
    among = collection(*["# T\n\n## Same\n\nalpha beta\n\n## Same\n\nalpha beta\n"] * 2)
    places = [(hit.document, hit.section) for hit in ask("alpha", among=among)]
    assert places == [(0, 2), (0, 3), (1, 2), (1, 3)]


PAGES = [
    "# Caching\n\nHow results are kept.\n\n## Usage\n\nSet the size.\n\n## Notes\n\nKept results expire.\n",
    "# Routing\n\nHow requests travel.\n\n## Usage\n\nSet the table.\n\n## Notes\n\nRequests are logged.\n",
    "# Logging\n\nWhat is written.\n\n## Usage\n\nSet the level.\n\n## Notes\n\nFiles rotate.\n",
]


@pytest.mark.parametrize("joined", [False, True], ids=["three files", "one file"])
def test_generic_headings_are_told_apart_by_their_page(*, joined: bool) -> None:
    """The answer is the section "Usage" of the named page, in a file of its own or in a part of one."""
    among = collection("\n".join(PAGES)) if joined else collection(*PAGES)
    best = ask("usage of routing", among=among)[0]
    indexed = among.documents[best.document]
    section = indexed.tree.sections[best.section]
    assert section.name == "Usage"
    assert "table" in indexed.tree.text(section.own)


MANUAL = case_text("npl_index/ranking/scoring/manual.md")
BEHIND_A_PROXY = "install packages behind a proxy"


@pytest.mark.parametrize("context", [BEHIND_A_PROXY, "remove packages from mirrors", "the guide to mirrors"])
def test_titles_have_the_scores_of_rank_bm25(context: str) -> None:
    """Headings and paths are a corpus of ``BM25Plus``, in a file and in a folder; gains are their scores."""
    for files in ([MANUAL], [MANUAL, "# Text\n\nOf packages, guides, and a proxy.\n"]):
        among = collection(*files)
        query = Query(extract_keywords(context))
        asked = [word for word, _ in query.keywords.weights]
        titles: dict[tuple[int, int], list[str]] = {}
        for number, indexed in enumerate(among.documents):
            for section in indexed.tree.sections:
                title, above = [f"part{number}"], section
                title += terms(section.name) if section.level else []
                while above.parent is not None:
                    above = indexed.tree.sections[above.parent]
                    title += terms(above.name) if above.level else []
                titles[number, section.index] = [word for word in title if word in asked]
        titles = {place: title for place, title in titles.items() if title}
        model = BM25Plus(list(titles.values()), b=0, delta=0)
        expected = dict(zip(titles, model.get_scores(asked), strict=True))
        ranking = rank(among, query, score_cutoff=0)
        gains = dict(zip([hit.place for hit in ranking.hits], ranking.gains["title"], strict=True))
        assert max(gains.values()) > 0
        scale = max(gains.values()) / max(expected.values())
        assert gains == pytest.approx({place: scale * expected.get(place, 0) for place in gains})


@given(queries, topic_lists)
def test_the_gains_by_the_features_add_up_to_the_order(words: list[str], topics: list[str]) -> None:
    ranking = rank(ONE, Query(extract_keywords(" ".join(words)), topics), score_cutoff=0)
    sums = [max(0.0, sum(gains)) for gains in zip(*ranking.gains.values(), strict=True)]
    assert sums == pytest.approx(sorted(sums, reverse=True))
    assert sums[:1] == pytest.approx([hit.score.total for hit in ranking.hits[:1]])
    assert len(sums) == len(ranking.hits)


@pytest.mark.parametrize("dropped", FEATURE_WEIGHTS, ids=lambda feature: feature.name)
def test_a_dropped_feature_has_no_gain(dropped: Feature) -> None:
    query = Query(extract_keywords("table formatting"), ("agent",))
    kept = rank(ONE, query, features=[feature for feature in FEATURE_WEIGHTS if feature is not dropped])
    assert kept.hits
    assert dropped.name not in kept.gains


@pytest.mark.parametrize(("most", "hits"), [(0, 0), (None, 1)])
def test_no_section_has_no_words(most: int | None, hits: int) -> None:
    """A maximum of 0 words is a condition, not the lack of one."""
    words = SectionFilter(TraitFilter(max_word_count=most))
    query = Query(extract_keywords("resuming the pump"))
    assert len(rank(collection("# Keys\n\nResuming the pump.\n"), query, among=words).hits) == hits


def test_one_file_is_ranked_alike_from_memory_and_from_the_index() -> None:
    part = document("part0.md", MANUAL)
    kept = indexed_collection([part])
    for context in (BEHIND_A_PROXY, "remove packages from mirrors"):
        assert ask(context, among=kept) == ask(context, among=index_document(part).collection)


def test_many_documents_at_once() -> None:
    """Ranking a large collection in blocks agrees with each file's own order."""
    filler = [
        f"# Page {n}\n\n" + "".join(f"## Part {i}\n\nword{n} other{i}\n\n" for i in range(50))
        for n in range(60)
    ]
    among = collection(*filler, GUIDE)
    hits = ask("how is an agent declared between corner marks with name and type and alignment", among=among)
    assert names(hits, among)[0] == "Agent Declaration"


def test_the_first_question_about_a_page_takes_no_step_for_each_of_its_words() -> None:
    """The first question weighs all postings of a page at once."""
    ask("kettle")  # what is known of English is loaded

    def steps(words: int) -> int:
        among = collection("# T\n\n## Rows\n\nkettle " + " ".join(f"plant{n}" for n in range(words)))
        return lines_run(lambda: ask("kettle", among=among))

    assert steps(4_000) < 2 * steps(40)


def test_scoring_is_logged_for_debugging(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        ask("agent declaration")
    assert not caplog.records
    with caplog.at_level(logging.DEBUG):
        ask("agent declaration")
    assert {record.name for record in caplog.records} >= {
        "npl_index.ranking.keywords",
        "npl_index.ranking.scoring",
    }


IDENTIFIERS = cases("npl_index/ranking/scoring")["identifiers"]


@pytest.mark.parametrize(("context", "others", "right", "expected"), IDENTIFIERS.values(), ids=IDENTIFIERS)
def test_an_exact_identifier_comes_first(context: str, others: list[str], right: str, expected: str) -> None:
    """It comes before its parts and before similar identifiers."""
    among = collection(*others, right)
    assert names(ask(context, among=among), among)[0] == expected


def test_an_exact_heading_wins() -> None:
    among = collection(
        "# Build\n\nLibrary mode, library mode.\n\n## Notes on library mode\n\nThe library mode.\n",
        "# Guide\n\nText.\n\n## Library Mode\n\nShort.\n",
    )
    assert names(ask("library mode", among=among), among)[0] == "Library Mode"
    assert names(ask("", "library mode", among=among), among)[0] == "Library Mode"


def test_topics_in_order() -> None:
    """A heading equal to the topic beats one that contains it, and that beats one spelt alike."""
    text = "# T\n\n## Risk List\n\nrisk, risks\n\n## Risk\n\nNot yet.\n\n## Rusk\n\nrisks, risk and risks\n"
    among = collection(text)
    hits = ask("", "risks", among=among)
    assert names(hits, among) == ["Risk", "Risk List", "Rusk"]
    assert [hit.score.total for hit in hits] == sorted({hit.score.total for hit in hits}, reverse=True)


def test_a_topic_of_stop_words() -> None:
    among = collection("# T\n\n## How To\n\nSteps.\n\n## Who\n\nPeople.\n")
    assert names(ask("", "how to", among=among), among) == ["How To"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("shape", "parts"), cases("npl_index/ranking/scoring")["an_identifier_finds_the_document_that_holds_it"]
)
def test_an_identifier_finds_the_document_that_holds_it(shape: str, parts: str) -> None:
    """It stands once in a long text, while other headings have its parts and its number.

    A heading that is the question, such as "ERR 107", comes first, of course.
    """
    filling = "Other things are told here, at some length. " * 9
    texts = [
        f"# {parts} {100 + n * 7 % 400}\n\n{parts} and {parts} of {100 + n * 7 % 400}. {parts}.\n\n"
        f"## Notes {n}\n\n{filling} See {shape.format(100 + n)} as well. {filling}\n"
        for n in range(400)
    ]
    collection = KnownCollection(
        [index_document(document(f"docs/page{n}.md", text)) for n, text in enumerate(texts)]
    )
    questions = ("{}", "what does {} do", "how is {} configured")
    questions = questions[2:] if "-" in shape else questions
    for number, question in product((7, 50, 203, 350, 390), questions):
        query = Query(extract_keywords(question.format(shape.format(100 + number))))
        assert rank(collection, query).hits[0].document == number


SUBJECTS = ("kettles", "lanterns", "saddles", "violins", "anchors", "looms")


def shop(*, without: str = "") -> Collection:
    """Index a page for each subject; all but one have a section for trouble."""
    trouble = "## Troubleshooting\n\nRepair them.\n"
    pages = (
        f"# {name.title()}\n\nAll about {name}.\n\n## Stains\n\nRub them.\n\n{trouble * (name != without)}"
        for name in SUBJECTS
    )
    return collection(*pages, "# Customs\n\n## Tariff codes\n\nNine digits.\n")


@pytest.mark.parametrize("subject", SUBJECTS)
def test_an_unspecific_topic_leaves_the_choice_to_the_context(subject: str) -> None:
    """A heading of many pages gains little: the page of the context comes first, whether it has it or not."""
    for among in (shop(), shop(without=subject)):
        for topics in ((), ("Troubleshooting",)):
            best = ask(f"remove stains from {subject}", *topics, among=among)[0]
            assert among.documents[best.document].tree.sections[1].name == subject.title()


def test_a_topic_that_is_one_heading_wins() -> None:
    """A rare heading as a topic comes first, although the context is about other sections."""
    among = shop()
    context = "remove stains from kettles and lanterns, repair all about them"
    assert names(ask(context, "Tariff codes", among=among)[:1], among) == ["Tariff codes"]


@pytest.mark.parametrize(
    ("topic", "part"), [("allow_nets", ".NET"), ("node.js", "Place"), ("max_workers", "Worker")]
)
def test_a_part_of_an_identifier_is_no_topic(topic: str, part: str) -> None:
    """A heading that is a part of the identifier does not fit; one that contains it does."""
    among = collection(
        f"# T\n\n## {part}\n\nOther matters.\n\n## The setting {topic}\n\nHow.\n\n## Login\n\nBy IP.\n"
    )
    hits = ask("login", topic, among=among)
    fits = {name: hit.score.topic for name, hit in zip(names(hits, among), hits, strict=True)}
    assert fits.get(part, 0) <= 0.5
    assert fits[f"The setting {topic}"] >= 0.6
