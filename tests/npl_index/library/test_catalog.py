"""The table of kinds: the places of items and their order."""

from pathlib import Path

import pytest

from npl_index.errors import InvalidRequestError
from npl_index.library.catalog import FLAGS, PATCH_SUFFIX, Catalog, item_paths, make_catalog
from tests.conftest import cases


def full(theme: str = "default") -> Catalog:
    return make_catalog(
        cwd=Path("/w"),
        home=Path("/h"),
        system=Path("/s"),
        bundled=Path("/c"),
        npl_home="/e",
        npl_meta="meta",
        npl_style_guide="/style",
        npl_persona_dir="/p",
        npl_user_persona_dir="/u",
        npl_workflow_dir="/f",
        theme=theme,
    )


def folders(catalog: Catalog, kind: str) -> list[str]:
    return [f"{place.root.path}/{place.folder}".rstrip("/") for place in catalog.kind(kind).places]


ORDER = cases("places")


@pytest.mark.parametrize("kind", ORDER)
def test_order_of_places(kind: str) -> None:
    """Every kind is looked for in the environment, the project, the user's home, the system, the corpus."""
    assert folders(full(), kind) == ORDER[kind]


def test_every_kind_is_covered() -> None:
    assert {kind.name for kind in full().kinds} == set(ORDER)


def test_unset_places_are_left_out() -> None:
    """Values that are unset or empty contribute nothing."""
    bare = make_catalog(cwd=Path("/w"), home=None, system=None, bundled=None, npl_home="", npl_meta="")
    assert folders(bare, "component") == ["/w/.npl/npl"]
    assert folders(bare, "meta") == ["/w/.npl/meta"]
    assert folders(bare, "agent") == ["/w/.claude/agents", "/w/.npl/core/agents"]


def test_a_theme_comes_before_the_default_everywhere() -> None:
    """A style of the theme in any place beats one of the default theme; patches go place by place."""
    catalog = full("dark")
    styles = folders(catalog, "style")
    assert styles[:2] == ["/style/dark", "/w/.npl/conventions/dark"]
    assert styles[5:7] == ["/style/default", "/w/.npl/conventions/default"]
    patches = [f"{place.root.path}/{place.folder}" for place in catalog.kind("style").patches]
    assert patches[:4] == [
        "/w/.npl/conventions/dark",
        "/w/.npl/conventions/default",
        "/w/.npl/conventions",
        "/h/.npl/conventions/dark",
    ]


def test_kinds_that_may_patch() -> None:
    """Components, metadata and styles can be patched, by project, user and system."""
    patched = [kind.name for kind in full().kinds if kind.patches]
    assert patched == ["component", "meta", "style"]
    assert [place.root.label for place in full().kind("meta").patches] == ["project", "user", "system"]


@pytest.mark.parametrize("theme", ["", "..", "a/b", "a\\b", ".hidden"])
def test_a_theme_is_a_folder_name(theme: str) -> None:
    with pytest.raises(InvalidRequestError):
        make_catalog(cwd=Path("/w"), home=None, system=None, bundled=None, theme=theme)


def test_names_of_flags() -> None:
    kinds = ("def", "meta", "style", "spec", "persona", "user-persona", "prd", "story", "prompt", "workflow")
    assert tuple(f"npl.{kind}.loaded" for kind in kinds) == FLAGS
    assert tuple(kind.flag_name for kind in full().kinds if kind.flag) == FLAGS


def test_only_the_working_directory_is_not_declared_npl() -> None:
    """Every root of the catalog holds NPL, but the working directory holds anything."""
    assert {root.path for root in full().roots() if not root.npl} == {"/w"}


@pytest.mark.parametrize(("item", "paths"), cases("npl_index/library/catalog")["item_names_to_paths"])
def test_item_names_to_paths(item: str, paths: list[str]) -> None:
    """A dot is a slash first and part of a name second; empty parts and patches name nothing."""
    assert list(item_paths(item, ".md")) == paths


def test_patches_of_items() -> None:
    """The patch of an item lies where the item would, with a suffix of its own."""
    assert item_paths("a.b", PATCH_SUFFIX) == ("a/b.patch.md", "a.b.patch.md")


def test_item_names_with_very_many_dots() -> None:
    """A name of many parts is tried in a bounded number of ways."""
    assert len(item_paths(".".join("a" * 500), ".md")) == 64


@pytest.mark.parametrize(
    ("kind", "text", "readings"), cases("npl_index/library/catalog")["paths_in_the_layout_of_npl_are_items"]
)
def test_paths_in_the_layout_of_npl_are_items(kind: str, text: str, readings: list[str]) -> None:
    """A path as it is in a checkout of NPL names the item, wherever its kind lies."""
    assert list(full().kind(kind).readings(text)) == readings
