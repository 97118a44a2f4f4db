"""The standing of a document by its own words: language, status, version and history; and the documents that
stand behind others for a question.

A language is recognized by its script (Bengali, Chinese, Greek, Hebrew, Hindi, Japanese, Korean, Thai) or,
where several share one, by letters and the commonest words (``data/languages.txt``). A version is a folder
such as ``v1``, ``1.2``, ``version-3.x`` or ``latest``. The counterpart of a page has the same path in another
version, or outside such folders.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime, timezone
from functools import cache, lru_cache
from math import inf
from typing import NamedTuple
from unicodedata import normalize

from npl_index.markdown.front_matter import MAX_YAML, field_values, fields
from npl_index.ranking.wordlists import data_lines, stop_words

SAMPLE = 2_000
"""Characters of a document by which its language is recognized."""

RETIRED = frozenset({"archived", "deprecated", "draft", "legacy", "obsolete", "retired", "superseded"})
"""Values of the field ``status`` of documents that stand behind others."""

RETIRED_FOLDERS = RETIRED | {"archive", "drafts"}
"""Names of folders whose documents stand behind others, also after an underscore."""

FIELDS = ("status", "stale_after", "deprecated", "draft", "archived")
"""Fields of front matter that give a status."""

_CODE = re.compile(r"^[ \t]*(```|~~~)(?s:.*?)(?:^[ \t]*\1|\Z)|`[^`\n]*`", re.MULTILINE)
# A name or an address has signs inside.
_WORD = re.compile(r"(?<![\w./:_<-])[^\W\d_]+(?:'[^\W\d_]+)?(?![\w/:_>-]|\.\w)")
_SCRIPT_SHARE = 0.15
_NONE = frozenset[str]()
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_ACTOR = re.compile(r"\w[\w.-]{0,40}(?=[:/])")  # the kind of an actor, before its name or version
_VERSION = re.compile(r"(?:versions?[-_])?v?(\d+(?:\.(?:\d+|x))*)(?:[-_.]?(?:x|lts|docs))?")
_CURRENT: tuple[float, ...] = (2,)
_ORDERS: Mapping[str, tuple[float, ...]] = {
    **dict.fromkeys(("stable", "latest", "current"), _CURRENT),
    **dict.fromkeys(("next", "main", "master", "nightly", "unreleased"), (0,)),
}
_DOCS = re.compile(r"(?:/website)?/(?:versioned_)?docs(?=/)")
_HISTORY = re.compile(
    r"(?i)/(?:(?:changelogs?|release[-_]notes|releases)/[^/]*|(?:changelog|changes|history|news"
    r"|release[-_ ]?notes|releases|whats[-_]?new)(?:[-_.]?v?\d[\w.-]*)?(?:\.\w+)?)\Z"
)
_LANGUAGE = re.compile(
    r"(?:/i18n)?[/._-]([a-z]{2})(?:[-_][A-Za-z]{2,4})?(?:/docusaurus-plugin-content-docs/current)?(?=/|\.\w+$)"
)
_ORIGINALS = ("", "/en", ".en", "/docs")
_ASKED_VERSION = re.compile(r"(?i)\b(?:v|versions? )(\d+(?:\.(?:\d+|x))*)\b|\b(\d+(?:\.(?:\d+|x))+)\b")
_ASKED_HISTORY = re.compile(
    r"(?i)\b(?:change ?logs?|release notes|what(?:'?s| is) new|what (?:has |was )?changed"
    r"|(?:when (?:was|were|did)|(?:which|what) (?:release|version))\b.{0,200}"
    r" (?:add|allow|change|deprecate|drop|fix|introduce|remove|rename|replace)(?:p?ed|d)?\b)"
)


class Standing(NamedTuple):
    """The standing of a document, by its own words.

    :param language: code of its language; empty if it is not recognized.
    :param status: its status if it is retired; empty otherwise.
    """

    language: str = ""
    status: str = ""


@cache
def _languages() -> tuple[Sequence[str], Mapping[str, frozenset[str]], Mapping[str, frozenset[str]]]:
    """Return the codes of languages, and those with a letter and those with a common word."""
    rows = {code: words for code, *words in map(str.split, data_lines("languages.txt")) if words[1:]}
    rows["en"] += stop_words()
    letters, words = dict[str, frozenset[str]](), dict[str, frozenset[str]]()
    for code, row in rows.items():
        for known, texts in (letters, row[0]), (words, row[1:]):
            for text in texts:
                known[text] = known.get(text, _NONE) | {code}
    return tuple(rows), letters, words


@cache
def _scripts() -> Mapping[str, re.Pattern[str]]:
    """Return the characters of scripts, by the codes of their languages."""
    rows = map(str.split, data_lines("languages.txt"))
    return {codes: re.compile(f"[{row[0]}]") for codes, *row in rows if not row[1:]}


def language_of(text: str) -> str:
    """Return the code of the language of a text; empty if it is too short or not recognized."""
    text = normalize("NFC", _CODE.sub(" ", text[:SAMPLE]))
    found = list(map(str.lower, _WORD.findall(text)))
    counts = Counter(found)
    codes, letters, words = _languages()
    points = Counter(dict.fromkeys(codes, 0))
    for word in words.keys() & counts.keys() if text.isascii() else counts:
        known = words.get(word, _NONE)
        if not word.isascii():
            known = known.union(*filter(None, map(letters.get, word)))
        for code in known:
            points[code] += counts[word]
    needed = _SCRIPT_SHARE * sum(map(len, found))
    for codes, script in () if text.isascii() else _scripts().items():
        if len(script.findall(text)) >= needed:
            best = max(codes.split(","), key=points.__getitem__)
            return best if best == codes or points[best] else ""
    (best, most), (_, second), *_ = points.most_common()
    return best if most > max(1, second) else ""


def status_of(fields: Iterable[tuple[str, str]]) -> str:
    """Return the status of a document by the fields of its front matter, folded; empty unless retired."""
    today = datetime.now(timezone.utc).date().isoformat()
    for name, value in fields:
        if name == "status" and value in RETIRED:
            return value
        if name in ("deprecated", "draft", "archived") and value in ("true", "yes"):
            return name
        if name == "stale_after" and (date := _DATE.match(value)) and date[0] <= today:
            return f"stale since {date[0]}"
    return ""


def status_in(front: str) -> str:
    """Return the status of a document by its front matter; empty unless it is retired."""
    folded = front.casefold()
    return status_of(field_values(front)) if any(name in folded for name in FIELDS) else ""


def standing_in(front: str) -> str:
    """Return the status of a retired document, and when it was last verified and generated, by what kind of
    actor, as the Open Knowledge Format writes it; empty without these fields.
    """
    told = [status_in(front)]
    for field in fields(f"---\n{front[:MAX_YAML]}", ("verified", "generated")):
        events = field.value if isinstance(field.value, list) else [field.value]
        dated = [event for event in events if isinstance(event, dict) and _DATE.match(str(event.get("at")))]
        for last in sorted(dated, key=lambda event: str(event["at"]))[-1:]:
            told.append(f"{field.name} {last['at'][:10]}")
            if actor := _ACTOR.match(str(last.get("by"))):
                told[-1] += f" by {actor[0]}"
    return "; ".join(filter(None, told))


class Versions(NamedTuple):
    """Versions of documents with the same path.

    :param older: documents with a newer counterpart.
    :param names: name of the version of each document in a version, or with a counterpart there.
    :param history: documents about changes.
    :param retired: name of the folder of each document in a folder of retired ones.
    :param translations: language of documents whose path has its code, as a folder or at the end of the
        name, if there is a counterpart without it.
    """

    older: frozenset[int]
    names: Mapping[int, str]
    history: frozenset[int]
    retired: Mapping[int, str]
    translations: Mapping[int, str]


class VersionedPage(NamedTuple):
    """A document of a version.

    :param path: its path without the version.
    :param order: order of the version.
    :param name: name of the version; a document outside of versions is the current one.
    """

    path: str
    order: tuple[float, ...] = _CURRENT
    name: str = ""


def versions_of(paths: Sequence[str]) -> Versions:
    """Return the versions of documents.

    :param paths: their paths below their roots, with a slash in front.
    """
    pages, present = [_version_in(path) for path in paths], set(paths)
    newest: dict[str, tuple[float, ...]] = {}
    for page in pages:
        newest[page.path] = max(page.order, newest.get(page.path, ()))
    versioned = {page.path for page in pages if page.name}
    names = {number: page.name or "current" for number, page in enumerate(pages) if page.path in versioned}
    older = frozenset(number for number, page in enumerate(pages) if page.order < newest[page.path])
    # The log of a folder with an index is about its changes.
    logs = {path.removesuffix("index.md") + "log.md" for path in paths if path.endswith("/index.md")}
    history = (number for number, path in enumerate(paths) if path in logs or _HISTORY.search(path))
    folders = (
        (number, part.lstrip("_")) for number, path in enumerate(paths) for part in path.split("/")[:-1]
    )
    retired = {number: part for number, part in folders if part.lower() in RETIRED_FOLDERS}
    translations = {
        number: code
        for number, path in enumerate(paths)
        for match in _LANGUAGE.finditer(path)
        if (code := match[1]) != "en"
        and not present.isdisjoint(path[: match.start()] + name + path[match.end() :] for name in _ORIGINALS)
    }
    return Versions(older, names, frozenset(history), retired, translations)


def _version_in(path: str) -> VersionedPage:
    """Return the page of a version with a path."""
    parts = _DOCS.sub("/docs", path).split("/")
    for at, name in enumerate(map(str.lower, parts[:-1])):
        match, order = _VERSION.fullmatch(name), _ORDERS.get(name)
        if match and ("." in name or not name.isdigit()):
            name = match[1]
            order = (1, *(inf if part == "x" else int(part) for part in name.split(".")))
        if order:
            return VersionedPage("/".join(parts[:at] + parts[at + 1 :]), order, name)
    return VersionedPage("/".join(parts))


def version_words(path: str) -> str:
    """Return the ways in which a question may name the version of a path, ``""`` without a number."""
    name = _version_in(path).name
    return f"version {name} v{name}" if name[:1].isdigit() else ""


def reasons(
    question: str, documents: Sequence[int], standings: Sequence[Standing], versions: Versions
) -> dict[int, str]:
    """Return the documents that stand behind others for a question, each with the reason in a word or two.

    :param documents: numbers of the documents.
    :param standings: the standing of each.
    :param versions: versions of all documents.
    """
    language = language_of(question) if versions.translations else ""
    if language not in {standing.language for standing in standings}:
        language = ""  # no page stands before others
    asked = _asked_versions(question, frozenset(versions.names.values()))
    asks_history, others = _asks_history(question, versions), frozenset(other_versions(question, versions))
    asked_words, behind = question.casefold(), dict[int, str]()
    for number, standing in zip(documents, standings, strict=True):
        version, is_history = versions.names.get(number, ""), number in versions.history
        status = standing.status or versions.retired.get(number, "")
        if status and not asks_history and status.casefold() not in asked_words:
            behind[number] = status
        elif language and standing.language not in ("", language):
            behind[number] = f"language {standing.language}"
        elif number in others:
            behind[number] = f"version {version}"
        elif is_history is not asks_history and (asks_history or not asked):
            behind[number] = "history" if is_history else "current"
        elif not language and standing.language and standing.language == versions.translations.get(number):
            behind[number] = "translation"
    return behind


def other_versions(question: str, versions: Versions) -> list[int]:
    """Return the documents of other versions than a question asks for; by default, those with a newer one."""
    asked = _asked_versions(question, frozenset(versions.names.values()))
    if asked:
        return [number for number, name in versions.names.items() if name not in asked]
    return [] if _asks_history(question, versions) else [*versions.older]


def _asks_history(question: str, versions: Versions) -> bool:
    return bool(versions.history) and _ASKED_HISTORY.search(question) is not None


@lru_cache(1)  # a ranking asks several times
def _asked_versions(question: str, known: Set[str]) -> Set[str]:
    """Return the known versions that a question names: the same, or else those with the same numbers."""
    named = {"".join(match) for match in _ASKED_VERSION.findall(question)}
    return named & known or {name for name in known for version in named if _agree(name, version)}


def _agree(*versions: str) -> bool:
    """Return whether the numbers of two versions are equal as far as both have them."""
    pairs = zip(*(version.split(".") for version in versions), strict=False)
    return all("x" in pair or pair[0] == pair[1] for pair in pairs)
