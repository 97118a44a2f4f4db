"""Agent skills below the roots: folders with a ``SKILL.md``, the digests of their files, and their problems.

The format is that of https://agentskills.io/specification; SEP-2640 of the Model Context Protocol says how a
server serves them.
"""

from __future__ import annotations

import mimetypes
import os
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from itertools import combinations
from typing import Any
from urllib.parse import quote

from npl_index.errors import DocumentNotFoundError, NPLError
from npl_index.library.catalog import Root
from npl_index.library.documents import Document, DocumentRef, Fingerprint, Found, Library
from npl_index.library.files import read_below
from npl_index.library.references import MARKDOWN_SUFFIXES, has_suffix, near_names
from npl_index.library.roots import Roots
from npl_index.markdown.front_matter import MAX_YAML, find_front_matter, typed_values
from npl_index.markdown.links import references
from npl_index.markdown.newlines import with_line_feeds
from npl_mcp.config.settings import skills_folder

SKILL = "SKILL.md"
SCHEME = "skill"

MOST_FILES, MOST_BYTES = 512, 16 << 20
"""Limits of one skill in SEP-2640."""

MOST_LINES = 500
"""Lines of a ``SKILL.md`` that the format recommends at most; the rest belongs in further files."""

ALIKE = 80
"""Similarity in percent from which two descriptions leave open which skill is meant."""

_NAME = re.compile(r"(?!.*--)[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?")
_MOST_DESCRIPTION = 1024
_BUNDLED = "npl"


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A file of a skill.

    :param path: below the skill's folder.
    :param found: where it is.
    :param size: in bytes.
    """

    path: str
    found: Found
    size: int

    @property
    def digest(self) -> str:
        """SHA-256 of its bytes, as SEP-2640 writes it."""
        state = Fingerprint.of(self.found.absolute, _status(self.found))
        return _digest(self.found.root.path, self.found.path, state)

    @property
    def media_type(self) -> str:
        """Its type, by its name."""
        kind = (
            "text/markdown"
            if has_suffix(self.path, MARKDOWN_SUFFIXES)
            else mimetypes.guess_type(self.path)[0]
        )
        return kind or "application/octet-stream"

    def read(self) -> bytes:
        """Return its bytes.

        :raises OSError: it cannot be read.
        """
        return read_below(self.found.root.path, self.found.path, MOST_BYTES)[0]


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill.

    :param place: path of its folder below its root, which leads to it in addresses.
    :param fields: its front matter, as JSON can hold it.
    :param files: ``SKILL.md`` first.
    :param problems: why it is not served, with lines; nothing for a sound one.
    """

    place: str
    fields: Mapping[str, Any]
    files: tuple[SkillFile, ...]
    problems: tuple[tuple[int, str], ...]

    @property
    def is_bundled(self) -> bool:
        """It comes with this program."""
        return self.place.startswith(f"{_BUNDLED}/")

    @property
    def name(self) -> str:
        """The name of its folder, which is the skill's."""
        return self.place.rpartition("/")[2]

    def uri(self, path: str = SKILL) -> str:
        """Return the address of one of its files."""
        return f"{SCHEME}://{quote(self.place)}/{quote(path)}"


def skills(library: Library) -> tuple[Skill, ...]:
    """Return the skills below the user's roots, and the bundled one unless these have one of its name."""
    found: dict[str, Skill] = {}
    with suppress(NPLError):  # no Markdown at all
        for one in _made(library.find(DocumentRef()) if library.searched else ()):
            place = one.place
            if place in found:  # in another root
                place = f"{one.files[0].found.root.label}/{place}"
            found[place] = replace(one, place=place)
    bundled = Root(str(skills_folder()), _BUNDLED)
    walk = Roots([bundled], library.limits).walk(os.path.realpath(bundled.path), None, (".md",))
    names = {one.name for one in found.values()}
    for one in _made((main for _, main in walk), f"{_BUNDLED}/"):
        if one.name not in names:
            found[one.place] = one
    return tuple(sorted(found.values(), key=lambda one: one.place))


def served(library: Library) -> tuple[Skill, ...]:
    """Return the skills without problems."""
    return tuple(one for one in skills(library) if not one.problems)


def _made(documents: Iterable[Found], lead: str = "") -> Iterator[Skill]:
    """Yield the skills whose ``SKILL.md`` is among some documents.

    :param lead: what precedes their places.
    """
    for main in documents:
        inside, _, name = main.path.rpartition("/")
        if name != SKILL:
            continue
        start = f"{inside}/" if inside else ""
        own = [SKILL, *(path for path in _files(posixpath.join(main.root.path, inside)) if path != SKILL)]
        with suppress(OSError):  # removed in the meantime
            founds = [replace(main, path=start + path) for path in own]
            sizes = [_status(found).st_size for found in founds]
            files = tuple(map(SkillFile, own, founds, sizes))
            place = lead + (inside or posixpath.basename(main.root.path))
            fields, problems = _read(files, posixpath.basename(place))
            yield Skill(place, fields, files, tuple(problems))


def _files(folder: str) -> Iterator[str]:
    """Yield the paths of the regular files below a folder, without hidden ones and links, sorted."""
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        for name in sorted(names):
            whole = posixpath.join(path, name)
            if not name.startswith(".") and not os.path.islink(whole) and os.path.isfile(whole):  # noqa: PTH113, PTH114
                yield os.path.relpath(whole, folder).replace(os.sep, "/")


def _status(found: Found) -> os.stat_result:
    return os.stat(found.absolute, follow_symlinks=False)  # noqa: PTH116


@lru_cache(4096)
def _digest(root: str, path: str, _: Fingerprint) -> str:
    return f"sha256:{sha256(read_below(root, path, MOST_BYTES)[0]).hexdigest()}"


def _read(files: Sequence[SkillFile], folder: str) -> tuple[dict[str, Any], list[tuple[int, str]]]:
    """Return the front matter of a skill, and what keeps it from being served."""
    try:
        text = with_line_feeds(files[0].read().decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError):
        return {}, [(1, f"{SKILL} cannot be read as UTF-8")]
    _, front = find_front_matter(text)
    if len(front) > MAX_YAML:
        return {}, [(1, f"the front matter has more than {MAX_YAML:,} characters")]
    try:
        fields = typed_values(front)
    except ValueError as error:
        return {}, [(error.args[0] + 1, "the front matter is not YAML with values of JSON")]
    if not isinstance(fields, dict) or not all(isinstance(key, str) for key in fields):
        return {}, [(1, f"{SKILL} begins without front matter: give name and description")]
    problems = []
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        problems.append((2, "name has to be 1 to 64 lower-case letters, digits and single hyphens"))
    elif name != folder:
        problems.append((2, f"name is {name!r}, and the folder {folder!r}: make them equal"))
    if not isinstance(description, str) or not 0 < len(description.strip()) <= _MOST_DESCRIPTION:
        problems.append((2, f"description has to be a text of 1 to {_MOST_DESCRIPTION:,} characters"))
    if len(files) > MOST_FILES or sum(one.size for one in files) > MOST_BYTES:
        problems.append(
            (1, f"clients accept at most {MOST_FILES} files and {MOST_BYTES >> 20} MiB of a skill")
        )
    return fields, problems


def check(library: Library) -> Iterator[tuple[str, int, str]]:
    """Yield file, line and problem of the skills below the user's roots."""
    every = [one for one in skills(library) if not one.is_bundled]
    for one in every:
        file = f"{one.place}/{SKILL}"
        yield from ((file, line, problem) for line, problem in one.problems)
        there = {posixpath.normpath(each.path) for each in one.files}
        folders = {posixpath.dirname(path) for path in there}
        for each in one.files:
            if not has_suffix(each.path, MARKDOWN_SUFFIXES):
                continue
            text = with_line_feeds(each.read().decode("utf-8", "replace"))
            for link in references(text):
                target = posixpath.normpath(posixpath.join(posixpath.dirname(each.path), link.path))
                if link.path and target not in there and target not in folders:
                    yield f"{one.place}/{each.path}", link.line + 1, f"no file of the skill is {link.path!r}"
            lines = text.count("\n")
            if each.path == SKILL and lines > MOST_LINES:
                yield file, 1, f"{lines:,} lines: move parts to further files, {MOST_LINES} are enough"
    names = Counter(one.name for one in every)
    for one in every:
        if names[one.name] > 1:
            yield f"{one.place}/{SKILL}", 2, f"{names[one.name]} skills are called {one.name!r}"
    yield from _alike([one for one in every if not one.problems])


def _alike(every: Sequence[Skill]) -> Iterator[tuple[str, int, str]]:
    from rapidfuzz import fuzz, utils  # only this check needs them, and they are slow to import

    for one, other in combinations(every, 2):
        texts = one.fields["description"], other.fields["description"]
        alike = fuzz.token_set_ratio(*texts, processor=utils.default_process)
        if alike >= ALIKE:
            problem = f"the description is nearly that of {other.place}: say when which one is meant"
            yield f"{one.place}/{SKILL}", 3, problem


class SkillDocuments:
    """Skills as documents: ``skill:NAME``, or the address of a skill, is all Markdown of it.

    :param library: finds and reads their files.
    """

    SCHEME = SCHEME

    def __init__(self, library: Library) -> None:
        self._library = library

    def find(self, ref: DocumentRef) -> tuple[Found, ...]:
        """Find the Markdown of a skill.

        :raises DocumentNotFoundError: no skill is called so; carries similar names.
        """
        found = self._called((ref.file or "").partition(":")[2])
        if not found:
            near = near_names(ref.file or "", (f"{SCHEME}:{one.name}" for one in served(self._library)))
            raise DocumentNotFoundError(f"there is no skill {ref.file!r}", near=near)
        return found

    def find_called(self, name: str) -> tuple[Found, ...]:
        """Find the ``SKILL.md`` of a skill with a name."""
        return self._called(name)[:1]

    def _called(self, name: str) -> tuple[Found, ...]:
        wanted = name.removeprefix("//").removesuffix(f"/{SKILL}")
        for one in served(self._library):
            if wanted in (one.name, one.place):
                return tuple(each.found for each in one.files if has_suffix(each.path, MARKDOWN_SUFFIXES))
        return ()

    def is_set(self, ref: DocumentRef) -> bool:
        """Return whether a skill has several Markdown files."""
        return len(self._called((ref.file or "").partition(":")[2])) > 1

    def holds(self, text: str) -> bool:  # noqa: ARG002
        """Return ``False``: no name has a comma."""
        return False

    def aliases(self, found: Found) -> tuple[str, ...]:  # noqa: ARG002
        """Return no further names: the files are those of the library."""
        return ()

    def stat(self, found: Found) -> Fingerprint:
        """Return the state of a file."""
        return self._library.stat(found)

    def read(self, found: Found) -> Document:
        """Read a file."""
        return self._library.read(found)

    def apart(self) -> None:
        """Return no reader for other processes: skills are small."""
        return


def file_at(library: Library, uri: str) -> SkillFile:
    """Return the file of a skill at an address without its scheme.

    :raises DocumentNotFoundError: no skill has it.
    """
    for one in served(library):
        for each in one.files:
            if uri == f"{one.place}/{each.path}":
                return each
    raise DocumentNotFoundError(f"no skill has a file {uri[:200]!r}")
