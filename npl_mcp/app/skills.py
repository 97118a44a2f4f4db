"""Agent skills below the roots: folders with a ``SKILL.md``, the digests of their files, and their problems.

The format is that of https://agentskills.io/specification; SEP-2640 of the Model Context Protocol defines how
servers serve skills.
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
from npl_index.library.documents import DocumentRef, Fingerprint, Found, Library
from npl_index.library.files import read_below
from npl_index.library.references import MARKDOWN_SUFFIXES, has_suffix
from npl_index.library.roots import Roots
from npl_index.markdown.front_matter import MAX_YAML, find_front_matter, typed_values, with_line_feeds
from npl_index.markdown.links import references
from npl_mcp.config.settings import skills_folder

SKILL = "SKILL.md"
SCHEME = "skill"

MAX_FILES, MAX_BYTES = 512, 16 << 20
"""Limits of one skill in SEP-2640."""

MAX_LINES = 500
"""Lines of a ``SKILL.md`` that the format recommends; longer texts belong in further files."""

MAX_SIMILARITY = 80
"""Similarity in percent from which two descriptions do not distinguish their skills."""

_NAME = re.compile(r"(?!.*--)[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?")
_MAX_DESCRIPTION = 1024
_BUNDLED = "npl"


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A file of a skill.

    :param path: path below the folder of the skill.
    :param found: location of the file.
    :param size: size in bytes.
    """

    path: str
    found: Found
    size: int

    @property
    def digest(self) -> str:
        """SHA-256 of its content, in the form of SEP-2640."""
        state = Fingerprint.of(self.found.absolute, _status(self.found))
        return _digest(self.found.root.path, self.found.path, state)

    @property
    def media_type(self) -> str:
        """Its media type, by its name."""
        if has_suffix(self.path, MARKDOWN_SUFFIXES):
            return "text/markdown"
        return mimetypes.guess_type(self.path)[0] or "application/octet-stream"

    def read(self) -> bytes:
        """Return the content of the file.

        :raises OSError: the file cannot be read.
        """
        return read_below(self.found.root.path, self.found.path, MAX_BYTES)[0]


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill.

    :param place: path of its folder below its root, a part of its address.
    :param fields: its front matter as JSON.
    :param files: its files, ``SKILL.md`` first.
    :param problems: lines with the reasons why it is not served; empty for a valid skill.
    """

    place: str
    fields: Mapping[str, Any]
    files: tuple[SkillFile, ...]
    problems: tuple[tuple[int, str], ...]

    @property
    def is_bundled(self) -> bool:
        """Whether it is part of this program."""
        return self.place.startswith(f"{_BUNDLED}/")

    @property
    def name(self) -> str:
        """The name of the skill, which is that of its folder."""
        return self.place.rpartition("/")[2]

    def uri(self, path: str = SKILL) -> str:
        """Return the address of one of its files."""
        return f"{SCHEME}://{quote(self.place)}/{quote(path)}"


def skills(library: Library) -> tuple[Skill, ...]:
    """Return the skills below the user's roots, and the bundled ones with other names."""
    found: dict[str, Skill] = {}
    with suppress(NPLError):  # the roots have no Markdown
        for skill in _skills_among(library.find(DocumentRef()) if library.searched else ()):
            place = skill.place
            if place in found:  # in another root
                place = f"{skill.files[0].found.root.label}/{place}"
            found[place] = replace(skill, place=place)
    bundled = Root(str(skills_folder()), _BUNDLED)
    walk = Roots([bundled], library.limits).walk(os.path.realpath(bundled.path), None, (".md",))
    names = {skill.name for skill in found.values()}
    for skill in _skills_among((main for _, main in walk), f"{_BUNDLED}/"):
        if skill.name not in names:
            found[skill.place] = skill
    return tuple(sorted(found.values(), key=lambda skill: skill.place))


def served(library: Library) -> tuple[Skill, ...]:
    """Return the skills without problems."""
    return tuple(skill for skill in skills(library) if not skill.problems)


def _skills_among(documents: Iterable[Found], lead: str = "") -> Iterator[Skill]:
    """Yield the skills whose ``SKILL.md`` is among some documents.

    :param lead: prefix of their places.
    """
    for main in documents:
        inside, _, name = main.path.rpartition("/")
        if name != SKILL:
            continue
        start = f"{inside}/" if inside else ""
        paths = _regular_files(posixpath.join(main.root.path, inside))
        own = [SKILL, *(path for path in paths if path != SKILL)]
        with suppress(OSError):  # removed in the meantime
            founds = [replace(main, path=start + path) for path in own]
            sizes = [_status(found).st_size for found in founds]
            files = tuple(map(SkillFile, own, founds, sizes))
            place = lead + (inside or posixpath.basename(main.root.path))
            fields, problems = _read_fields(files, posixpath.basename(place))
            yield Skill(place, fields, files, tuple(problems))


def _regular_files(folder: str) -> Iterator[str]:
    """Yield the sorted paths of the regular files below a folder, without hidden files and links."""
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            whole = posixpath.join(path, name)
            if not name.startswith(".") and not os.path.islink(whole) and os.path.isfile(whole):  # noqa: PTH113, PTH114
                yield os.path.relpath(whole, folder).replace(os.sep, "/")


def _status(found: Found) -> os.stat_result:
    return os.stat(found.absolute, follow_symlinks=False)  # noqa: PTH116


@lru_cache(4096)
def _digest(root: str, path: str, _: Fingerprint) -> str:
    return f"sha256:{sha256(read_below(root, path, MAX_BYTES)[0]).hexdigest()}"


def _read_fields(files: Sequence[SkillFile], folder: str) -> tuple[dict[str, Any], list[tuple[int, str]]]:
    """Return the front matter of a skill, and the reasons why it is not served."""
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
        return {}, [(1, f"{SKILL} has no front matter: add name and description")]
    problems = []
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        problems.append((2, "name has to be 1 to 64 lower-case letters, digits and single hyphens"))
    elif name != folder:
        problems.append((2, f"name is {name!r}, but the folder is {folder!r}: make them equal"))
    if not isinstance(description, str) or not 0 < len(description.strip()) <= _MAX_DESCRIPTION:
        problems.append((2, f"description has to be a text of 1 to {_MAX_DESCRIPTION:,} characters"))
    if len(files) > MAX_FILES or sum(file.size for file in files) > MAX_BYTES:
        problems.append((1, f"clients accept at most {MAX_FILES} files and {MAX_BYTES >> 20} MiB of a skill"))
    return fields, problems


def check(library: Library) -> Iterator[tuple[str, int, str]]:
    """Yield the problems of the skills below the user's roots, each with file and line."""
    every = [skill for skill in skills(library) if not skill.is_bundled]
    for skill in every:
        file = f"{skill.place}/{SKILL}"
        yield from ((file, line, problem) for line, problem in skill.problems)
        present = {posixpath.normpath(each.path) for each in skill.files}
        folders = {posixpath.dirname(path) for path in present}
        for each in skill.files:
            if not has_suffix(each.path, MARKDOWN_SUFFIXES):
                continue
            text = with_line_feeds(each.read().decode("utf-8", "replace"))
            for link in references(text):
                target = posixpath.normpath(posixpath.join(posixpath.dirname(each.path), link.path))
                if link.path and target not in present and target not in folders:
                    yield f"{skill.place}/{each.path}", link.line + 1, f"the skill has no file {link.path!r}"
            lines = text.count("\n")
            if each.path == SKILL and lines > MAX_LINES:
                yield file, 1, f"{lines:,} lines: move parts to further files; {MAX_LINES} lines are enough"
    names = Counter(skill.name for skill in every)
    for skill in every:
        if names[skill.name] > 1:
            yield f"{skill.place}/{SKILL}", 2, f"{names[skill.name]} skills have the name {skill.name!r}"
    yield from _similar([skill for skill in every if not skill.problems])


def _similar(every: Sequence[Skill]) -> Iterator[tuple[str, int, str]]:
    from rapidfuzz import fuzz, utils  # slow imports, which only this check needs

    for skill, other in combinations(every, 2):
        texts = skill.fields["description"], other.fields["description"]
        if fuzz.token_set_ratio(*texts, processor=utils.default_process) >= MAX_SIMILARITY:
            problem = f"the description is nearly that of {other.place}: say when to use which skill"
            yield f"{skill.place}/{SKILL}", 3, problem


def file_at(library: Library, uri: str) -> SkillFile:
    """Return the file of a skill at an address without its scheme.

    :raises DocumentNotFoundError: no skill has such a file.
    """
    for skill in served(library):
        for file in skill.files:
            if uri == f"{skill.place}/{file.path}":
                return file
    raise DocumentNotFoundError(f"no skill has a file {uri[:200]!r}")
