"""Load whole items: components, styles, prompts, agents.

Agents parse the text, the flag names and the flag header, so these keep the format of the command
``npl-load`` byte for byte::

    # Flag Update

    ```🏳️

    @npl.def.loaded+="a,b"


    ```


    ---
    # b:
    『(patch)
    text that goes in front of b
    』
    text of b


    * * *

    # a:
    text of a
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from hashlib import blake2b
from itertools import product, starmap
from typing import NamedTuple

from npl_index import errors
from npl_index.library.catalog import FLAGS, Kind
from npl_index.library.documents import Document, DocumentFile, Library
from npl_index.library.patterns import has_magic
from npl_index.library.references import check_name, near_names
from npl_index.markdown.front_matter import MAX_YAML, decoded, divide, values
from npl_index.markdown.preambles import BETWEEN, match_npl_header, name_and_version

_MAX_ITEMS = 256
_MAX_SKIP_CHARACTERS = 64 * 1024
_MAX_SKIP_PATTERNS = 64

#: Components in every agent's definition, whatever the agent declares.
ALWAYS_NEEDED = ("syntax", "agent", "fences", "directive", "formatting")

_DECLARATION = re.compile(
    r"""(?: npl-load \s+ c \s+
          | npl_load \( \s* (?: resource_type \s* = \s* )? ["'] c (?: omponents? )? ["'] \s* , \s*
            (?: items \s* = \s* )?
          | npl_load_components \( \s* (?: items \s* = \s* )?
        ) (["']) ([^"'\n]*) \1""",
    re.VERBOSE,
)
_WILDCARD = re.compile(r"[*?\[\]]")
_BEFORE_HEADER = re.compile(r"\s*(?:\* \* \*[ \t]*\n\s*)?")
_DECLARABLE = re.compile(r"[^\s/.{}<>()$|\\][^\s{}<>()$|\\]*")


@dataclass(frozen=True, slots=True)
class LoadedItem:
    """Origin of a loaded item.

    :param name: the item's name, as requested or as matched by a pattern.
    :param kind: name of its kind.
    :param root: label of its root.
    :param path: path below its root.
    :param version: version in its header or front matter, as written.
    :param digest: BLAKE2b of its text and of its patch's text, 16 bytes, in hex.
    :param patched: path of the patch before its text, if it has one.
    """

    name: str
    kind: str
    root: str
    path: str
    version: str | None
    digest: str
    patched: str | None


@dataclass(frozen=True, slots=True)
class MissingItem:
    """A requested name or pattern without a match.

    :param name: the name as requested.
    :param near: similar names that exist, best first.
    :param kind: name of its kind, in a request for several kinds.
    """

    name: str
    near: tuple[str, ...]
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """Whole items.

    :param content: the text of all items.
    :param flags: sorted item names joined by commas, by flag name; empty if nothing was loaded.
    :param items: origin of each item, in the order of ``content``.
    :param missing: names and patterns without a match.
    :param skipped: items omitted because of ``skip``.
    :param problems: errors of unusable items, if the load continued without them.
    :param header: header with the flags, if items of several kinds were requested.
    """

    content: str
    flags: Mapping[str, str]
    items: tuple[LoadedItem, ...]
    missing: tuple[MissingItem, ...] | None = None
    skipped: tuple[str, ...] | None = None
    problems: tuple[str, ...] | None = None
    header: str = ""


class Group(NamedTuple):
    """The items to load of a kind.

    :param kind: name or short name of the kind.
    :param items: names and patterns, separated by commas.
    :param skip: patterns of names to omit, separated by commas or blanks.
    """

    kind: str
    items: str | Iterable[str]
    skip: str | Iterable[str] | None = None


@dataclass
class _Load:
    """A load of items, each file once, in the order of first mention.

    :param problems: errors of unusable items; ``None`` raises the first.
    :param texts: loaded items with their texts.
    :param missing: names and patterns without a match.
    :param skipped: omitted names.
    :param taken: absolute paths of the loaded files.
    :param size: characters of the texts.
    """

    library: Library
    problems: list[str] | None = None
    texts: list[tuple[LoadedItem, str]] = field(default_factory=list)
    missing: list[MissingItem] = field(default_factory=list)
    skipped: dict[str, None] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    size: int = 0

    def add(self, kind: Kind, wanted: Iterable[str], skip: str | Iterable[str] | None = None) -> None:
        """Load the items of a kind.

        :param wanted: names and patterns.
        :raises DocumentTooLargeError: all items together exceed the limit.
        """
        is_skipped, files, absent = _skipping(skip), dict[str, DocumentFile](), list[str]()
        for name in wanted:
            if not has_magic(name) and is_skipped(name):
                self.skipped[name] = None
                continue
            with self._noting_problems():
                matches = self.library.find_items(kind, name)
                absent += [] if matches else [name]
                for match, file in sorted(matches.items()):
                    if is_skipped(match):
                        self.skipped[match] = None
                    elif file.absolute not in self.taken:
                        self.taken.add(file.absolute)
                        files[match] = file
        for name, file in files.items():
            with self._noting_problems():
                self.texts.append(_load_item(self.library, kind, name, file))
                self.size += len(self.texts[-1][1])
            if self.size > (most := self.library.limits.max_bytes):
                problem = f"the items are larger than {most:,} characters together"
                raise errors.DocumentTooLargeError(problem, hint="name fewer items")
        known = self.library.item_names(kind) if absent else ()
        label = None if self.problems is None else kind.name
        for name in absent:
            self.missing.append(MissingItem(name, near_names(_WILDCARD.sub("", name), known), label))

    @contextmanager
    def _noting_problems(self) -> Iterator[None]:
        try:
            yield
        except errors.NPLError as error:
            if self.problems is None:
                raise
            self.problems.append(str(error))

    def result(self) -> Loaded:
        """Return the loaded items."""
        names: dict[str | None, list[str]] = defaultdict(list)
        for item, _ in self.texts:
            names[self.library.catalog.kind(item.kind).flag_name].append(item.name)
        flags = {flag: ",".join(sorted(names[flag])) for flag in FLAGS if flag in names}
        return Loaded(
            content=BETWEEN.join(f"# {item.name}:\n{text}\n" for item, text in self.texts),
            flags=flags,
            items=tuple(item for item, _ in self.texts),
            missing=tuple(self.missing) or None,
            skipped=tuple(self.skipped) or None,
            problems=tuple(self.problems or ()) or None,
            header="" if self.problems is None else flag_header(flags),
        )


def load_groups(library: Library, groups: Iterable[Group]) -> Loaded:
    """Load items of several kinds, one group after the other; each item once.

    Unusable items are reported in ``problems``, and all others are loaded.
    """
    loading = _Load(library, [])
    for group in groups:
        loading.add(library.catalog.kind(group.kind), split_items(group.items), group.skip)
    return loading.result()


def load(
    library: Library, kind: str, items: str | Iterable[str], skip: str | Iterable[str] | None = None
) -> Loaded:
    """Load whole items of one kind, each once, in the order of first mention.

    :param kind: name or short name of the kind.
    :param items: names and patterns, separated by commas; ``syntax.*`` is one folder, ``**.*`` everything.
    :param skip: patterns of item names (:mod:`fnmatch`, case-sensitive), separated by commas or blanks.
    :raises MissingRequestError: ``items`` contains no name.
    """
    wanted, loading = split_items(items), _Load(library)
    if not wanted:
        hint = "name an item, or '*'"
        raise errors.MissingRequestError("'items' contains no name", parameter="items", hint=hint)
    loading.add(library.catalog.kind(kind), wanted, skip)
    return loading.result()


def load_raw(library: Library, kind: str, item: str | None = None) -> Loaded:
    """Load the bare text of one item, without a flag.

    :param item: its name; optional if the kind has only one item.
    :raises MissingRequestError: the name is missing, and the kind has many items.
    """
    of_kind = library.catalog.kind(kind)
    name = item if item is not None else of_kind.only
    if name is None:
        raise errors.MissingRequestError(f"the {of_kind.name} is not specified", parameter="item")
    described, text = _load_one(library, of_kind, name)
    return Loaded(content=text, flags={}, items=(described,))


def load_agent(library: Library, name: str, *, with_definition: bool = False) -> Loaded:
    """Load an agent, on request with the NPL definition that it needs.

    The definition contains the core reference, the components that every agent needs, and the components
    that this agent declares, each once. An agent declares components by a command (``npl-load c "a,b"``) or
    by a tool call (``npl_load("c", "a,b")``, ``npl_load_components("a,b")``).

    :param name: the agent's item name.
    """
    agents = library.catalog.kind("agent")
    agent, text = _load_one(library, agents, name)
    content = f"# agent:{name}:\n{text}"
    if not with_definition:
        return Loaded(content=content, flags={}, items=(agent,))
    components = library.catalog.kind("component")
    core, loading = library.catalog.init, _Load(library)
    loading.add(core, (core.only or "",))
    loading.add(components, dict.fromkeys((*ALWAYS_NEEDED, *declared_components(text))))
    titles = {core.name: "Core NPL Framework"}
    titled = ((titles.get(item.kind, f"Component: {item.name}"), body) for item, body in loading.texts)
    parts = [f"## {title}\n\n{body}" for title, body in titled]
    heading = f"# NPL Definition for {name}\n\nWhat the agent above relies on."
    content, loaded = "\n\n".join([f"{content}\n---", heading, *parts]) + "\n", loading.result()
    return replace(loaded, content=content, items=(agent, *loaded.items))


def flag_header(flags: Mapping[str, str]) -> str:
    """Return the header that lists the loaded items for an agent; ``""`` without any.

    :param flags: comma-joined names by flag name, from one or more loads.
    """
    lines = "".join(f'@{name}+="{flags[name]}"\n' for name in FLAGS if flags.get(name))
    return f"# Flag Update\n\n```🏳️\n\n{lines}\n\n```\n\n\n---\n" if lines else ""


def split_items(items: str | Iterable[str]) -> tuple[str, ...]:
    """Split names at commas, trim them, and drop empty and repeated names.

    :raises InvalidRequestError: there are more than 256 names, or one is not a valid name.
    """
    texts = [items] if isinstance(items, str) else items
    names = tuple(dict.fromkeys(name for text in texts for part in text.split(",") if (name := part.strip())))
    if len(names) > _MAX_ITEMS:
        hint = f"use at most {_MAX_ITEMS}, or a pattern"
        raise errors.InvalidRequestError(f"'items' has {len(names)} names", parameter="items", hint=hint)
    for name in names:
        check_name(name, "items")
    return names


def declared_components(text: str) -> tuple[str, ...]:
    """Return the components that a text declares, in order, without placeholders such as ``{name}``."""
    lists = (match[2].split(",") for match in _DECLARATION.finditer(text))
    names = dict.fromkeys(name.strip() for names in lists for name in names)
    usable = (name for name in names if _DECLARABLE.fullmatch(name) and ".." not in name)
    return tuple(name for name in usable if name.count("**") < 2)[:_MAX_ITEMS]


def _skipping(skip: str | Iterable[str] | None) -> Callable[[str], bool]:
    """Return the test for names to omit from a load: literal names and patterns."""
    text = skip if isinstance(skip, str) else " ".join(skip or ())
    if len(text) > _MAX_SKIP_CHARACTERS:
        hint = f"use at most {_MAX_SKIP_CHARACTERS:,}, or a pattern"
        raise errors.InvalidRequestError(f"'skip' has {len(text):,} characters", parameter="skip", hint=hint)
    parts = frozenset(part for part in re.split(r"[,\s]+", text) if part)
    patterns = list(filter(has_magic, parts))
    if len(patterns) > _MAX_SKIP_PATTERNS:
        hint = f"use at most {_MAX_SKIP_PATTERNS}"
        raise errors.InvalidRequestError(f"'skip' has {len(patterns)} patterns", parameter="skip", hint=hint)

    def is_skipped(name: str) -> bool:
        spellings = (name, name.replace("/", "."))
        pairs = product(spellings, patterns)
        return not parts.isdisjoint(spellings) or any(starmap(fnmatchcase, pairs))

    return is_skipped


def _load_item(library: Library, kind: Kind, name: str, file: DocumentFile) -> tuple[LoadedItem, str]:
    """Read an item and put its patch before its text."""
    document = library.read(file)
    text = text_of(document)
    patch = library.find_patch(kind, name)
    patched, digest = None, document.digest
    version = version_of(text)
    if patch is not None:
        addition = library.read(patch)
        patched = addition.path
        digest = blake2b((addition.digest + digest).encode(), digest_size=16).hexdigest()
        text = f"『(patch)\n{text_of(addition)}\n』\n{text}"
    return LoadedItem(name, kind.name, file.label, file.path, version, digest, patched), text


def _load_one(library: Library, kind: Kind, name: str) -> tuple[LoadedItem, str]:
    """Read the item with exactly this name.

    :raises DocumentNotFoundError: no item has the name; carries similar names.
    """
    check_name(name, "item")
    file = library.find_item(kind, name)
    if file is None:
        raise library.no_item(kind, name)
    return _load_item(library, kind, name, file)


def text_of(document: Document) -> str:
    """Return the text of a document with line feeds as line ends and without a byte order mark.

    :raises UnreadableDocumentError: the document is not UTF-8, or binary.
    """
    return decoded(document.data, repr(document.path))


def version_of(text: str) -> str | None:
    """Return the version in a text's ``npl-instructions`` header, or else in its front matter, as written.

    :param text: with line feeds as line ends.
    """
    front, rest = divide(text[: MAX_YAML + 8])
    before = _BEFORE_HEADER.match(rest)
    header = match_npl_header(text, len(front) + (before.end() if before else 0))
    if header is not None:
        return name_and_version(header[1])[1]
    value = values(front).get("version")
    return value if isinstance(value, str) and value else None
