"""The files that a command or a server may show.

Tools for whole items need only this; :class:`~npl_mcp.app.documents.Documents` adds the rest.
"""

# A path object costs more than the system call.
# ruff: noqa: PTH112, PTH117, PTH118

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from npl_index.cached import cached_property
from npl_index.library.catalog import Catalog, ItemFolder, Kind, Root, make_catalog
from npl_index.library.documents import Library
from npl_index.library.listing import FileListings
from npl_index.library.roots import as_named, real_path
from npl_mcp.app.schemes import REMOVED_SCHEMES, SCHEMES
from npl_mcp.config.settings import Settings, corpus_folder


class Files:
    """The files below the search roots of some settings; construction opens nothing.

    :param settings: settings with the roots.
    :param listings: cached listings for the :class:`~npl_index.library.documents.Library`.
    :param only: real paths of the only visible folders, besides the bundled files; ``None`` without a
        restriction.

    ``cwd`` is the working directory if it is a root, else ``None``.
    """

    def __init__(
        self, settings: Settings, listings: FileListings | None = None, only: Sequence[str] | None = None
    ) -> None:
        self.settings = settings
        self.catalog = _catalog(settings)
        if only is not None:
            shown = (*only, str(corpus_folder().resolve()))
            self.catalog = _restricted(self.catalog, lambda root: lies_in(root.path, shown))
        is_shown = settings.serves_cwd and (only is None or lies_in(str(settings.cwd), only))
        self.cwd = settings.cwd if is_shown else None
        given = _given_roots(settings)
        here = [] if self.cwd is None else [Root(str(self.cwd), "working directory")]
        self.library = Library(
            (*given, *here, *dict.fromkeys(self.catalog.roots())),
            self.catalog,
            settings.limits,
            given or here,
            or_reference=not given,
            listings=listings,
            ignoring=settings.ignoring,
        )

    @property
    def own(self) -> Library:
        """The same library for whole items, where patterns match the user's own items; a new object each
        time, because it scans folders only once.
        """
        return OwnItems(tuple(self.library.roots), self.catalog, self.settings.limits)

    def place(self, absolute: str) -> str:
        """Return a path for display: relative to the working directory if it lies below."""
        return absolute.removeprefix(os.path.join(os.path.realpath(self.settings.cwd), ""))


class OwnItems(Library):
    """A library in which bundled items only replace kinds without items of the user.

    A name resolves to a bundled item if the user has no folder for its kind; a pattern or a list matches
    bundled items if the user has no folder for any kind. Files that this program writes itself, such as
    ``.npl/sessions``, do not count as such a folder.
    """

    @cached_property
    def _own(self) -> frozenset[str]:
        """The kinds with a folder of the user; agents' client folders do not count."""
        places = ((kind, place) for kind in self.catalog.kinds for place in _without_bundled(kind.places))
        return frozenset(kind.name for kind, place in places if place.root.npl and self._is_own(kind, place))

    def places(self, kind: Kind, *, pattern: bool = False) -> Sequence[ItemFolder]:
        """Return the places of a kind, without its bundled folder if that is hidden."""
        hidden = bool(self._own) if pattern else kind.name in self._own
        return _without_bundled(kind.places) if hidden else kind.places

    def _is_own(self, kind: Kind, place: ItemFolder) -> bool:
        # The only item directly in the NPL folder: the folder alone proves nothing.
        if kind.only is not None:
            return self.roots.below(place, f"{kind.only}{kind.suffix}") is not None
        folder = self.roots.below(place, "") if place.folder or kind.name != "agent" else None
        return folder is not None and os.path.isdir(folder)


def _without_bundled(places: Sequence[ItemFolder]) -> Sequence[ItemFolder]:
    bundled = str(corpus_folder())
    return [place for place in places if place.root.path != bundled]


def _catalog(settings: Settings) -> Catalog:
    named = {name.lower(): str(path) for name, path in settings.environment.items()}
    catalog = make_catalog(
        cwd=settings.cwd,
        home=settings.home,
        system=settings.system,
        bundled=corpus_folder(),
        theme=settings.theme,
        with_cwd=settings.serves_cwd,
        **named,
    )
    # A clone may bring links in place of the project's own folders.
    own = real_paths([settings.cwd])
    return _restricted(catalog, lambda root: not root.label.startswith("project") or lies_in(root.path, own))


_TAKEN = (*SCHEMES, *REMOVED_SCHEMES, "working directory")
"""Reserved prefixes of the names of other documents."""


def _given_roots(settings: Settings) -> tuple[Root, ...]:
    """Return the user's roots; each label is a unique suffix of the path, with ``_`` in place of colons."""
    labels: dict[str, str] = dict.fromkeys(_TAKEN, "")
    roots = []
    for path in dict.fromkeys(path.absolute() for path in settings.roots):
        parts = [part.replace(":", "_") for part in path.parts]
        ends = ["/".join(parts[at:]).lstrip("/") for at in range(len(parts) - 1, -1, -1)]
        label = next((end for end in ends if end and end not in labels), str(path))
        labels[label] = label
        roots.append(Root(str(path), label))
    return tuple(roots)


def npl_folders(settings: Settings) -> tuple[str, ...]:
    """Return the real paths of the folders with NPL items, independent of permissions."""
    return real_paths({root.path for root in _catalog(settings).roots() if root.npl})


def real_paths(folders: Iterable[Path | str]) -> tuple[str, ...]:
    """Return the real paths of folders, without missing ones."""
    paths = (real_path(str(folder)) for folder in folders)
    return tuple(path for path in paths if path is not None)


def may_write(settings: Settings, path: str) -> bool:
    """Return whether the setting ``write`` allows edits of a file below a root of the settings."""
    if not isinstance(settings.write, tuple):
        return settings.write
    named = ((str(root), folder) for root in settings.roots for folder in settings.write)
    places = (Path(root, as_named(os.sep if os.path.isabs(path) else root, path)) for root, path in named)
    return lies_in(path, real_paths(places))


def lies_in(path: str, folders: Sequence[str]) -> bool:
    """Return whether a path is one of some folders or lies in one, with all links resolved.

    :param folders: real paths.
    """
    real = real_path(path)
    starts = (os.path.join(folder, "") for folder in folders)
    return real is not None and any(map(f"{real}{os.sep}".startswith, starts))


def _restricted(catalog: Catalog, is_shown: Callable[[Root], bool]) -> Catalog:
    """Return a catalog restricted to some roots."""
    shown = set(filter(is_shown, dict.fromkeys(catalog.roots())))

    def kept(places: Sequence[ItemFolder]) -> tuple[ItemFolder, ...]:
        return tuple(place for place in places if place.root in shown)

    kinds = (kind._replace(places=kept(kind.places), patches=kept(kind.patches)) for kind in catalog.kinds)
    return Catalog(tuple(kinds))
