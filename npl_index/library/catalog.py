"""Kinds of NPL items and the ordered places of their files.

An item name has dots for folders: ``pumps.panel.group-chat`` is
``pumps/panel/group-chat.md`` in the first place of its kind that has the file. The
order of places is: the agent folders of the client, the environment, the
project (``./.npl``), the user (``~/.npl``), the system, the bundled corpus.

One table below defines all kinds; this module does not access the file system.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path

from npl_index.errors import InvalidRequestError


@dataclass(frozen=True, slots=True)
class Root:
    """A folder below which files may be read.

    :param path: absolute path of the folder.
    :param label: the root's name for callers, in place of the path.
    :param npl: its files are NPL, so fences of equal length nest.
    """

    path: str
    label: str
    npl: bool = False


@dataclass(frozen=True, slots=True)
class ItemFolder:
    """A folder of a root with items of one kind.

    :param root: the root.
    :param folder: path below the root, ``/`` between segments, ``""`` for the root itself.
    """

    root: Root
    folder: str


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of item.

    :param name: the kind, as ``resource_type`` spells it.
    :param alias: its short name on the command line.
    :param flag: name of the flag that lists loaded items, ``None`` if the kind has none.
    :param places: folders of its items; the first with a file wins.
    :param patches: folders of its patches, which go before an item's text; the first with a file wins.
    :param suffix: file name suffix of its items.
    :param only: name of the kind's item, if it has exactly one.
    :param folders: folders of its items in the layouts of NPL, below any root.
    """

    name: str
    alias: str
    flag: str | None
    places: tuple[ItemFolder, ...]
    patches: tuple[ItemFolder, ...] = ()
    suffix: str = ".md"
    only: str | None = None
    folders: tuple[str, ...] = ()

    def readings(self, text: str) -> Iterator[str]:
        """Yield the item names that a text may mean: the text, and its reading as a path in NPL's folders.

        ``core/prompts/sqlite-guide.md`` means the prompt ``sqlite-guide`` in any place of prompts.
        """
        yield text
        for folder in self.folders:
            if text.startswith(f"{folder}/"):
                yield text[len(folder) + 1 :].removesuffix(self.suffix)


@dataclass(frozen=True, slots=True)
class Catalog:
    """All kinds, in the order in which an item name without a kind is looked up."""

    kinds: tuple[Kind, ...]

    def kind(self, name: str) -> Kind:
        """Return the kind with this name or short name.

        :raises InvalidRequestError: no kind has the name; the hint lists all kinds.
        """
        for kind in self.kinds:
            if name in (kind.name, kind.alias):
                return kind
        known = ", ".join(kind.name for kind in self.kinds)
        raise InvalidRequestError(
            f"{name!r} is not a kind of item", parameter="resource_type", hint=f"use one of {known}"
        )

    @property
    def init(self) -> Kind:
        """The kind of the core reference, which is the default document."""
        return next(kind for kind in self.kinds if kind.only is not None)

    def roots(self) -> Iterator[Root]:
        """Yield the root of every place, in order; a root that several places share is repeated."""
        for kind in self.kinds:
            for place in (*kind.places, *kind.patches):
                yield place.root


@dataclass(frozen=True, slots=True)
class _KindRow:
    """One line of the table of kinds.

    :param flag: the kind's part of the flag name ``npl.<flag>.loaded``.
    :param variable: name of the environment variable with a folder of this kind's items.
    :param inside: folder below the variable's value.
    :param folders: folders below each NPL root, in order.
    :param bundled: folder of the bundled corpus.
    """

    name: str
    alias: str
    flag: str | None
    variable: str | None
    inside: str
    folders: tuple[str, ...]
    bundled: str
    patched: bool = False
    themed: bool = False
    suffix: str = ".md"
    only: str | None = None


#: Suffix of patches: files that go before an item's text and are not items.
PATCH_SUFFIX = ".patch.md"

_MAX_READINGS = 64
_HOME = "NPL_HOME"
_TABLE = (
    _KindRow("component", "c", "def", _HOME, "npl", ("npl",), "npl", patched=True),
    _KindRow("meta", "m", "meta", "NPL_META", "", ("meta",), "meta", patched=True),
    _KindRow("style", "s", "style", "NPL_STYLE_GUIDE", "", ("conventions",), "conventions", True, True),
    _KindRow("spec", "spec", "spec", _HOME, "core/specifications",
         ("specifications", "core/specifications"), "specifications"),
    _KindRow("persona", "persona", "persona", "NPL_PERSONA_DIR", "", ("personas",), "personas"),
    _KindRow("user-persona", "user-persona", "user-persona", "NPL_USER_PERSONA_DIR", "",
         ("user-personas",), "user-personas"),
    _KindRow("prd", "prd", "prd", None, "", ("prds",), "prds"),
    _KindRow("story", "story", "story", None, "", ("user-stories",), "user-stories"),
    _KindRow("prompt", "prompt", "prompt", _HOME, "core/prompts", ("prompts", "core/prompts"), "prompts"),
    _KindRow("workflow", "workflow", "workflow", "NPL_WORKFLOW_DIR", "", ("workflows",), "workflows"),
    _KindRow("agent", "agent", None, _HOME, "core/agents", ("core/agents",), "agents"),
    _KindRow("schema", "schema", None, _HOME, "core/schema", ("core/schema",), "schema", suffix=".sql"),
    _KindRow("init", "init", None, _HOME, "", ("",), "", only="npl"),
)  # fmt: skip

#: Flag names in the order in which a flag header lists them.
FLAGS = tuple(f"npl.{row.flag}.loaded" for row in _TABLE if row.flag is not None)

_DEFAULT_THEME = "default"


@dataclass(frozen=True, slots=True)
class _Roots:
    """The roots of one configuration: by environment variable, the NPL hierarchy, and the bundled corpus."""

    variables: Mapping[str, Root]
    hierarchy: tuple[Root, ...]
    bundled: Root | None
    agents: tuple[Root, ...]
    project: Root


def places(
    *,
    cwd: Path,
    home: Path | None,
    system: Path | None,
    bundled: Path | None,
    theme: str = _DEFAULT_THEME,
    **variables: str | None,
) -> Catalog:
    """Return the catalog of one configuration.

    :param cwd: the project folder; relative values below start from it.
    :param home: the user's home folder, if there is one.
    :param system: the system's NPL folder, such as ``/etc/npl``.
    :param bundled: folder of the bundled corpus.
    :param theme: folder of style guides tried before ``default``.
    :param variables: values of environment variables, by their names in lower case: ``npl_home``,
        ``npl_meta``, ``npl_style_guide``, ``npl_persona_dir``, ``npl_user_persona_dir``,
        ``npl_workflow_dir``. Unset and empty are the same.
    :raises InvalidRequestError: the theme is not a plain folder name.
    :raises TypeError: there is no such variable.
    """
    if not theme or theme.startswith(".") or "/" in theme or "\\" in theme:
        raise InvalidRequestError(f"{theme!r} is not a folder name", parameter="theme")
    values = {name.upper(): value for name, value in variables.items()}
    if unknown := values.keys() - {row.variable for row in _TABLE}:
        raise TypeError(f"no items lie where {min(unknown)} says")
    hierarchy = [(cwd / ".npl", "project")]
    agents = [(cwd / ".claude" / "agents", "project agents")]
    if home is not None:
        hierarchy.append((home / ".npl", "user"))
        agents.append((home / ".claude" / "agents", "user agents"))
    if system is not None:
        hierarchy.append((system, "system"))
    roots = _Roots(
        variables={name: Root(str(cwd / value), name, npl=True) for name, value in values.items() if value},
        hierarchy=tuple(Root(str(path), label, npl=True) for path, label in hierarchy),
        bundled=Root(str(bundled), "bundled", npl=True) if bundled is not None else None,
        agents=tuple(Root(str(path), label, npl=True) for path, label in agents),
        project=Root(str(cwd), "working directory"),
    )
    return Catalog(tuple(_kind(row, roots, theme) for row in _TABLE))


def _kind(row: _KindRow, roots: _Roots, theme: str) -> Kind:
    """Return the kind of one table row, with the configured roots."""
    found = [ItemFolder(root, "") for root in roots.agents] if row.name == "agent" else []
    named = roots.variables.get(row.variable or "")
    if named is not None:
        found.append(ItemFolder(named, row.inside))
    found += [ItemFolder(root, folder) for folder in row.folders for root in roots.hierarchy]
    if row.only is not None:
        found.append(ItemFolder(roots.project, ""))
    if roots.bundled is not None:
        found.append(ItemFolder(roots.bundled, row.bundled))
    patches = [ItemFolder(root, folder) for folder in row.folders for root in roots.hierarchy]
    if row.themed:
        themes = dict.fromkeys((theme, _DEFAULT_THEME))
        found = [_below(place, name) for name in themes for place in found]
        patches = [place for base in patches for place in (*(_below(base, name) for name in themes), base)]
    return Kind(
        name=row.name,
        alias=row.alias,
        flag=f"npl.{row.flag}.loaded" if row.flag is not None else None,
        places=tuple(found),
        patches=tuple(patches) if row.patched else (),
        suffix=row.suffix,
        only=row.only,
        folders=tuple(folder for folder in dict.fromkeys((row.inside, *row.folders)) if folder),
    )


def _below(place: ItemFolder, folder: str) -> ItemFolder:
    return ItemFolder(place.root, f"{place.folder}/{folder}" if place.folder else folder)


def item_paths(item: str, suffix: str) -> tuple[str, ...]:
    """Return the paths that an item name may mean, most likely first.

    A dot means a slash, or is part of a name: ``m1.persona`` means ``m1/persona.md`` or ``m1.persona.md``.

    :param suffix: suffix of the path, ``.md`` for most kinds.
    """
    if "" in item.replace("/", ".").split(".") or f"{item}.md".endswith(PATCH_SUFFIX):
        return ()
    first, *rest = item.split(".")
    readings = islice(product("/.", repeat=len(rest)), _MAX_READINGS)
    return tuple(first + "".join(map("".join, zip(marks, rest, strict=True))) + suffix for marks in readings)
