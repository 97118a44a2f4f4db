"""The standing of a document by its own words: language, status, version and history; and the documents that
stand behind others for a question.

A language is recognized by its script (Bengali, Chinese, Greek, Hebrew, Hindi, Japanese, Korean, Thai) or,
where several share one, by letters and the commonest words (``data/languages.txt``). A version is
a folder such as ``v1``, ``1.2``, ``version-3.x`` or ``latest``. A counterpart of a page has the same path or
the same headings in another version or outside such folders.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from functools import cache
from operator import itemgetter
from typing import NamedTuple
from unicodedata import normalize

from npl_index.markdown.front_matter import field_values
from npl_index.ranking.analysis import terms
from npl_index.ranking.wordlists import RARE, commonness, data_lines, stop_words

SAMPLE = 6_000
"""Characters of a document by which its language is recognized."""

RETIRED = frozenset({"archived", "deprecated", "draft", "legacy", "obsolete", "retired", "superseded"})
"""Values of the field ``status`` of documents that stand behind others."""

FIELDS = ("status", "stale_after", "deprecated", "draft", "archived")
"""Fields of front matter that give a status."""

# A plain word, the commonest, is no code, which is known sooner.
_CODE = re.compile(
    r"^[ \t]*(```|~~~)(?s:.*?)(?:^[ \t]*\1|\Z)|`[^`\n]*`|<[^<>\n]*>|h(?<=\bh)ttps?:\S+"
    r"|(?a:\b(?![A-Za-z][a-z]*(?:[^\w./]|[./]\W|\Z))(?:\w+(?:[._/]\w+)+|\w*[a-z][A-Z]\w*))",
    re.MULTILINE,
)
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_SCRIPTS = (
    ("ja", re.compile("[\u3041-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7a3]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("ru uk bg", re.compile("[\u0400-\u04ff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("ar fa", re.compile("[\u0600-\u06ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("bn", re.compile("[\u0980-\u09ff]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
)
_SCRIPT_SHARE = 0.15
_MIN_WORDS = 1.5
_SHORT = 40
_VERSION = re.compile(r"(?:versions?[-_])?v?(\d+(?:\.(?:\d+|x))*)(?:[-_.]?(?:x|lts|docs))?", re.IGNORECASE)
_STABLE = ("stable", "latest", "current")
_NEXT = ("next", "main", "master", "nightly", "unreleased")
_VERSIONED = re.compile(
    r"(?i)/(?:versioned_docs/)?(?:version|v?\d+[.x/]|v\d|stable/|latest/|current/|next/|main/|master/)"
)
_HISTORY = re.compile(
    r"(?i)(?:changelog|changes|history|news|release[-_ ]?notes|releases|whats[-_]?new)(?:[-_.]?v?\d[\w.-]*)?"
)
_LANGUAGE_OF_PATH = re.compile(
    r"(?:/i18n)?[/._-]([a-z]{2})(?:[-_][A-Za-z]{2,4})?(?:/docusaurus-plugin-content-docs/current)?(?=/|\.\w+$)"
)
_ORIGINALS = ("", "/en", ".en", "/docs")
_HISTORY_FOLDERS = frozenset({"changelog", "changelogs", "release-notes", "release_notes", "releases"})
_ASKED_VERSION = re.compile(r"(?i)\b(?:v|versions? )(\d+(?:\.(?:\d+|x))*)\b|\b(\d+(?:\.(?:\d+|x))+)\b")
_ASKED_HISTORY = re.compile(
    r"(?i)\b(?:change ?logs?|release notes|what'?s new|what (?:has |was )?changed"
    r"|(?:when (?:was|were)|(?:which|what) (?:release|version))\b.{0,200}"
    r" (?:added|changed|deprecated|dropped|fixed|introduced|removed|renamed|replaced)"
    r"|when did\b.{0,200} (?:add|allow|change|deprecate|drop|fix|introduce|remove|rename|replace|support)"
    r"|(?:which|what) release\b.{0,20} (?:allowed|supported))\b"
)


class Standing(NamedTuple):
    """The standing of a document, by its own words.

    :param language: code of its language; empty if it is not recognized.
    :param status: its status if it is retired; empty otherwise.
    """

    language: str = ""
    status: str = ""


@cache
def _letters() -> Mapping[str, frozenset[str]]:
    """Return the letters of languages, by code."""
    return {code: frozenset(letters) for code, letters, *_ in map(str.split, data_lines("languages.txt"))}


@cache
def _common() -> Mapping[str, Sequence[str]]:
    """Return the languages of which a word is one of the commonest."""
    codes: dict[str, list[str]] = {}
    for code, _, *words in map(str.split, data_lines("languages.txt")):
        for word in dict.fromkeys(words):
            codes.setdefault(word, []).append(code)
    return codes


def language_of(text: str) -> str:
    """Return the code of the language of a text; empty if it is too short or not recognized."""
    text = normalize("NFC", _CODE.sub(" ", text[:SAMPLE]))
    words = [word.lower() for word in _WORD.findall(text)]
    counts = Counter(words)
    points: dict[str, float] = dict.fromkeys(_letters(), 0)
    for word in counts.keys() & _common().keys():
        for code in _common()[word]:
            points[code] += counts[word]
    for word in (word for word in counts if not word.isascii()):
        for code, letters in _letters().items():
            if not letters.isdisjoint(word) and code not in _common().get(word, ()):
                points[code] += counts[word]
    characters = sum(map(len, words)) or 1
    for codes, script in () if text.isascii() else _SCRIPTS:
        if len(script.findall(text)) >= _SCRIPT_SHARE * characters:
            best = max(codes.split(), key=lambda code: points.get(code, 0))
            return best if best == codes or points[best] else ""
    if len(words) <= _SHORT:  # a question may have few of these words, but other words of English
        points["en"] += sum(commonness(term) > RARE for term in terms(text)) / 2
        points["en"] += sum(counts[word] for word in stop_words() if "en" not in _common().get(word, ()))
    (best, most), (_, second), *_ = sorted(points.items(), key=itemgetter(1), reverse=True)
    return best if most >= _MIN_WORDS and most >= 1.2 * second else ""


def status_of(fields: Iterable[tuple[str, str]], now: datetime | None = None) -> str:
    """Return the status of a document by the fields of its front matter, folded; empty unless retired."""
    for name, value in fields:
        if name == "status" and value in RETIRED:
            return value
        if name in ("deprecated", "draft", "archived") and value in ("true", "yes"):
            return name
        if name == "stale_after" and _is_past(value, now or datetime.now(timezone.utc)):
            return f"stale since {value[:10]}"
    return ""


def status_in(front: str) -> str:
    """Return the status of a document by its front matter; empty unless it is retired."""
    folded = front.casefold()
    return status_of(field_values(front)) if any(name in folded for name in FIELDS) else ""


def _is_past(text: str, now: datetime) -> bool:
    try:
        moment = datetime.fromisoformat(text.upper().replace("Z", "+00:00"))
    except ValueError:
        return False
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)) < now


class VersionedPage(NamedTuple):
    """A document of a version.

    :param folder: the folder with the versions.
    :param path: path of the document in its version.
    :param order: order of the version.
    :param name: name of the version.
    """

    folder: str
    path: str
    order: tuple[int, ...]
    name: str


class Versions(NamedTuple):
    """Versions of documents with the same path.

    :param older: documents with a newer counterpart.
    :param names: name of the version of each versioned document.
    :param history: documents about changes.
    :param alone: documents of versions without a counterpart of the same path.
    :param translations: language of documents whose path has its code, as a folder or at the end of the
        name, if there is a counterpart without it.
    """

    older: frozenset[int]
    names: Mapping[int, str]
    history: frozenset[int]
    alone: Mapping[int, VersionedPage]
    translations: Mapping[int, str]

    def with_renamed(self, headings: Mapping[int, frozenset[str]]) -> Versions:
        """Return the versions with counterparts of the same headings, if no other page of a version has them.

        :param headings: different headings of the documents that are alone.
        """
        groups: dict[tuple[str, frozenset[str]], list[int]] = {}
        for number, titles in headings.items():
            if len(titles) > 1:
                groups.setdefault((self.alone[number].folder, titles), []).append(number)
        orders = {number: page.order for number, page in self.alone.items()}
        renamed = [group for group in groups.values() if len(set(map(orders.get, group))) == len(group) > 1]
        added = {number: self.alone[number].name for group in renamed for number in group}
        older = self.older.union(*(_older(group, self.alone) for group in renamed))
        return self._replace(older=older, names={**self.names, **added})


def versions_of(paths: Sequence[str]) -> Versions:
    """Return the versions of documents.

    :param paths: their paths below their roots, with a slash in front.
    """
    versioned = ((number, _version_in(path)) for number, path in enumerate(paths) if _VERSIONED.search(path))
    pages = {number: page for number, page in versioned if page is not None}
    names = {number: page.name for number, page in pages.items()}
    # A page outside of version folders is the current one, if a folder above it has versions.
    folders = {page.folder for page in pages.values()}
    for number, path in enumerate(paths if folders else ()):
        if number not in pages and (page := _current_in(path, folders)):
            pages[number] = page
    # Pages with the same path in several versions are counterparts.
    groups: dict[tuple[str, str], list[int]] = {}
    for number, page in pages.items():
        groups.setdefault(page[:2], []).append(number)
    several = [group for group in groups.values() if len(group) > 1]
    names |= {number: pages[number].name for group in several for number in group}
    single = [group[0] for group in groups.values() if len(group) == 1]
    folders = {pages[number].folder for number in single if number in names}
    alone = {number: pages[number] for number in single if pages[number].folder in folders}
    older = frozenset[int]().union(*(_older(group, pages) for group in several))
    return Versions(older, names, _histories(paths), alone, _translations(paths))


def _histories(paths: Sequence[str]) -> frozenset[int]:
    """Return the documents about changes; ``log.md`` is one if ``index.md`` lies next to it."""
    present = set(paths)
    return frozenset(
        number
        for number, path in enumerate(paths)
        if _is_history(path) or (path.endswith("/log.md") and f"{path[:-6]}index.md" in present)
    )


def _translations(paths: Sequence[str]) -> dict[int, str]:
    """Return the languages of translated documents."""
    present = set(paths)
    return {
        number: code
        for number, path in enumerate(paths)
        for match in _LANGUAGE_OF_PATH.finditer(path)
        if (code := match[1]) != "en"
        and not present.isdisjoint(path[: match.start()] + name + path[match.end() :] for name in _ORIGINALS)
    }


def _older(group: Sequence[int], pages: Mapping[int, VersionedPage]) -> set[int]:
    """Return the pages of a group that are older than the newest."""
    newest = max(pages[number].order for number in group)
    return {number for number in group if pages[number].order < newest}


_CURRENT = (2,)


def _current_in(path: str, folders: Collection[str]) -> VersionedPage | None:
    """Return a page outside of versions as one of the nearest folder with versions."""
    parts = _above_versions(path.split("/"))
    for at in range(len(parts) - 1, -1, -1):
        folder = "/".join(parts[:at])
        if folder in folders:
            return VersionedPage(folder, "/".join(parts[at:]), _CURRENT, "current")
    return None


def _version_in(path: str) -> VersionedPage | None:
    """Return the page of a version with a path."""
    parts = path.split("/")
    for at, part in enumerate(parts[:-1]):
        match, name = _VERSION.fullmatch(part), part.lower()
        if match and ("." in part or not part.isdigit()):
            name = match[1].lower()
            order = (1, *(int(part) if part.isdigit() else 1 << 30 for part in name.split(".")))
        elif name in _STABLE:
            order = _CURRENT
        elif name in _NEXT:
            order = (0,)
        else:
            continue
        folder = "/".join(_above_versions(parts[:at]))
        return VersionedPage(folder, "/".join(parts[at + 1 :]), order, name)
    return None


def _above_versions(parts: Sequence[str]) -> list[str]:
    """Return a path as that of current pages, which are in ``docs``, outside of ``website`` or in it."""
    path = "/".join("docs" if part == "versioned_docs" else part for part in parts)
    return path.replace("/website/docs", "/docs").split("/")


def version_words(path: str) -> str:
    """Return the ways in which a question may name the version of a path, ``""`` without a number."""
    page = _version_in(path)
    name = page.name if page else ""
    return f"version {name} v{name}" if name[:1].isdigit() else ""


def _is_history(path: str) -> bool:
    *folders, name = path.rsplit("/", 2)
    if len(folders) > 1 and folders[-1].lower() in _HISTORY_FOLDERS:
        return True
    return _HISTORY.fullmatch(name.rpartition(".")[0] or name) is not None


def reasons(
    question: str, documents: Sequence[int], standings: Sequence[Standing], versions: Versions
) -> dict[int, str]:
    """Return the documents that stand behind others for a question, each with the reason in a word or two.

    :param documents: numbers of the documents.
    :param standings: the standing of each.
    :param versions: versions of all documents.
    """
    language = language_of(question) if versions.translations else ""
    if all(standing.language != language for standing in standings):
        language = ""  # no page stands before others
    asked = _asked_versions(question, frozenset(versions.names.values()))
    asks_history = bool(versions.history) and _ASKED_HISTORY.search(question) is not None
    behind: dict[int, str] = {}
    for number, standing in zip(documents, standings, strict=True):
        version, is_history = versions.names.get(number, ""), number in versions.history
        if standing.status and not asks_history:
            behind[number] = standing.status
        elif language and standing.language and standing.language != language:
            behind[number] = f"language {standing.language}"
        elif version not in asked if asked and version else number in versions.older and not asks_history:
            behind[number] = f"version {version}"
        elif is_history is not asks_history and (asks_history or not asked):
            behind[number] = "history" if is_history else "current"
        elif not language and standing.language and standing.language == versions.translations.get(number):
            behind[number] = "translation"
    return behind


def _asked_versions(question: str, known: Collection[str]) -> Collection[str]:
    """Return the known versions that a question names: the same, or else those with the same numbers."""
    named = {"".join(match) for match in _ASKED_VERSION.findall(question)}
    return named.intersection(known) or {
        name for name in known if name[:1].isdigit() and any(_is_within(name, version) for version in named)
    }


def _is_within(version: str, other: str) -> bool:
    """Return whether the numbers of two versions are equal as far as both have them."""
    pairs = zip(version.split("."), other.split("."), strict=False)
    return all(one == another or "x" in (one, another) for one, another in pairs)
