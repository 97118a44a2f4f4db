"""Kinds of NPL items and the ordered places of their files.

An item name has dots for folders: ``pumps.panel.group-chat`` is
``pumps/panel/group-chat.md`` in the first place of its kind that has the file. The
order of places is: the agent folders of the client, the environment, the
project (``./.npl``), the user (``~/.npl``), the system, the bundled corpus.

One table below defines all kinds; this module does not access the file system.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from os.path import isabs
from pathlib import Path
from typing import NamedTuple

from npl_index.errors import InvalidRequestError


class Root(NamedTuple):
    """A folder with readable files.

    :param path: absolute path of the folder; for stored documents their scheme, ``:`` and possibly more.
    :param label: the root's name for callers, in place of the path.
    :param npl: its files are NPL, so fences of equal length nest.
    """

    path: str
    label: str
    npl: bool = False

    @property
    def scheme(self) -> str:
        """The scheme of stored documents, such as ``artifact``; empty for a folder."""
        return "" if isabs(self.path) else self.path.partition(":")[0]  # noqa: PTH117


class ItemFolder(NamedTuple):
    """A folder of a root with items of one kind.

    :param root: the root.
    :param folder: path below the root, ``/`` between segments, ``""`` for the root itself.
    """

    root: Root
    folder: str


class Kind(NamedTuple):
    """A kind of item.

    :param name: the kind, as ``resource_type`` spells it.
    :param alias: its short name on the command line.
    :param flag: the kind's part of the flag name ``npl.<flag>.loaded``, ``None`` without a flag.
    :param variable: environment variable with a folder of its items.
    :param inside: folder below the variable's value.
    :param folders: folders below each NPL root, in order.
    :param bundled: folder of the bundled corpus.
    :param patched: its items may have patches, which go before an item's text.
    :param themed: its folders have one folder for each theme.
    :param suffix: file name suffix of its items.
    :param only: name of the kind's item, if it has exactly one.
    :param places: folders of its items in one configuration; the first with a file wins.
    :param patches: folders of its patches in one configuration; the first with a file wins.
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
    places: tuple[ItemFolder, ...] = ()
    patches: tuple[ItemFolder, ...] = ()

    @property
    def flag_name(self) -> str | None:
        """Name of the flag that lists loaded items, ``None`` if the kind has none."""
        return None if self.flag is None else f"npl.{self.flag}.loaded"

    def readings(self, text: str) -> Iterator[str]:
        """Yield the item names for a text: the text, and its reading as a path in NPL's folders.

        ``core/prompts/sqlite-guide.md`` means the prompt ``sqlite-guide`` in any place of prompts.
        """
        yield text
        for folder in filter(None, dict.fromkeys((self.inside, *self.folders))):
            if text.startswith(f"{folder}/"):
                yield text[len(folder) + 1 :].removesuffix(self.suffix)


class Catalog(NamedTuple):
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
        problem = f"{name!r} is not a kind of item"
        raise InvalidRequestError(problem, parameter="resource_type", hint=f"use one of {known}")

    @property
    def init(self) -> Kind:
        """The kind of the core reference, which is the default document."""
        return next(kind for kind in self.kinds if kind.only is not None)

    def roots(self) -> Iterator[Root]:
        """Yield the root of every place, in order; a root that several places share is repeated."""
        for kind in self.kinds:
            for place in (*kind.places, *kind.patches):
                yield place.root


#: Suffix of patches: files that go before an item's text and are not items.
PATCH_SUFFIX = ".patch.md"

_MAX_READINGS = 64
_HOME = "NPL_HOME"
_TABLE = (
    Kind("component", "c", "def", _HOME, "npl", ("npl",), "npl", patched=True),
    Kind("meta", "m", "meta", "NPL_META", "", ("meta",), "meta", patched=True),
    Kind("style", "s", "style", "NPL_STYLE_GUIDE", "", ("conventions",), "conventions", True, True),
    Kind("spec", "spec", "spec", _HOME, "core/specifications",
         ("specifications", "core/specifications"), "specifications"),
    Kind("persona", "persona", "persona", "NPL_PERSONA_DIR", "", ("personas",), "personas"),
    Kind("user-persona", "user-persona", "user-persona", "NPL_USER_PERSONA_DIR", "",
         ("user-personas",), "user-personas"),
    Kind("prd", "prd", "prd", None, "", ("prds",), "prds"),
    Kind("story", "story", "story", None, "", ("user-stories",), "user-stories"),
    Kind("prompt", "prompt", "prompt", _HOME, "core/prompts", ("prompts", "core/prompts"), "prompts"),
    Kind("workflow", "workflow", "workflow", "NPL_WORKFLOW_DIR", "", ("workflows",), "workflows"),
    Kind("agent", "agent", None, _HOME, "core/agents", ("core/agents",), "agents"),
    Kind("schema", "schema", None, _HOME, "core/schema", ("core/schema",), "schema", suffix=".sql"),
    Kind("init", "init", None, _HOME, "", ("",), "", only="npl"),
)  # fmt: skip

#: Flag names in the order in which a flag header lists them.
FLAGS = tuple(name for kind in _TABLE if (name := kind.flag_name) is not None)

_DEFAULT_THEME = "default"


def make_catalog(
    *,
    cwd: Path,
    home: Path | None,
    system: Path | None,
    bundled: Path | None,
    theme: str = _DEFAULT_THEME,
    with_cwd: bool = True,
    **variables: str | None,
) -> Catalog:
    """Return the catalog of one configuration.

    :param cwd: the project folder; relative values below start from it.
    :param home: the user's home folder, if there is one.
    :param system: the system's NPL folder, such as ``/etc/npl``.
    :param bundled: folder of the bundled corpus.
    :param theme: folder of style guides tried before ``default``.
    :param with_cwd: whether ``npl.md`` may lie directly in the project folder.
    :param variables: values of environment variables, by their names in lower case: ``npl_home``,
        ``npl_meta``, ``npl_style_guide``, ``npl_persona_dir``, ``npl_user_persona_dir``,
        ``npl_workflow_dir``. Unset and empty are the same.
    :raises InvalidRequestError: the theme is not a plain folder name.
    :raises TypeError: there is no such variable.
    """
    if not theme or theme.startswith(".") or "/" in theme or "\\" in theme:
        raise InvalidRequestError(f"{theme!r} is not a folder name", parameter="theme")
    values = {name.upper(): value for name, value in variables.items()}
    if unknown := values.keys() - {kind.variable for kind in _TABLE}:
        raise TypeError(f"{min(unknown)} is not a variable of item folders")
    homes = [(cwd, "project")] if home is None else [(cwd, "project"), (home, "user")]
    agents = [Root(str(path / ".claude" / "agents"), f"{label} agents", npl=True) for path, label in homes]
    hierarchy = [Root(str(path / ".npl"), label, npl=True) for path, label in homes]
    if system is not None:
        hierarchy.append(Root(str(system), "system", npl=True))

    def configured(kind: Kind) -> Kind:
        folders = [ItemFolder(root, "") for root in agents] if kind.name == "agent" else []
        if kind.variable and (value := values.get(kind.variable)):
            folders.append(ItemFolder(Root(str(cwd / value), kind.variable, npl=True), kind.inside))
        patches = [ItemFolder(root, folder) for folder in kind.folders for root in hierarchy]
        folders += patches
        if kind.only is not None and with_cwd:
            folders.append(ItemFolder(Root(str(cwd), "working directory"), ""))
        if bundled is not None:
            folders.append(ItemFolder(Root(str(bundled), "bundled", npl=True), kind.bundled))
        if kind.themed:
            themes = dict.fromkeys((theme, _DEFAULT_THEME))
            folders = [_below(place, name) for name in themes for place in folders]
            patches = [
                place for base in patches for place in (*(_below(base, name) for name in themes), base)
            ]
        return kind._replace(places=tuple(folders), patches=tuple(patches) if kind.patched else ())

    return Catalog(tuple(map(configured, _TABLE)))


def _below(place: ItemFolder, folder: str) -> ItemFolder:
    return ItemFolder(place.root, f"{place.folder}/{folder}" if place.folder else folder)


def item_paths(item: str, suffix: str) -> tuple[str, ...]:
    """Return the possible paths of an item name, most likely first.

    A dot stands for a slash or itself: ``m1.persona`` is ``m1/persona.md`` or ``m1.persona.md``.

    :param suffix: suffix of the path, ``.md`` for most kinds.
    """
    if "" in item.replace("/", ".").split(".") or f"{item}.md".endswith(PATCH_SUFFIX):
        return ()
    first, *rest = item.split(".")
    readings = islice(product("/.", repeat=len(rest)), _MAX_READINGS)
    return tuple(first + "".join(map("".join, zip(marks, rest, strict=True))) + suffix for marks in readings)
