"""The notations of NPL in a text."""

from __future__ import annotations

import pytest

from npl_index.items.notation import analyse


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`a` ``", {"highlight": ["a"]}),
        ("{x} {} {y", {"placeholder": ["x"]}),
        ("<a> <>", {"placeholder_angle": ["a"]}),
        ("<<kind>name>", {"placeholder_angle": ["<kind"], "qualified_placeholder": ["kind | name"]}),
        ("[...]", {"in_fill": [""], "inference_dots": ["..."]}),
        ("[...|3 words]", {"in_fill": ["|3 words"], "inference_dots": ["..."]}),
        ("[___]", {"omission": ["[___]"]}),
        ("🎯 look here\nnot here", {"attention": ["look here"]}),
        ("(note: why)", {"note": ["why"]}),
        ("word|rest more", {"qualifier": ["word | rest"]}),
        ("🙋 @help", {"attention_alias": ["@help"]}),
        ("@{bob}", {"direct_message": ["bob"], "placeholder": ["bob"]}),
        ("⟪now⟫", {"value_placeholder": ["now"]}),
        ("⟪⏳: soon⟫", {"value_placeholder": ["⏳: soon"], "directive": ["⏳ | soon"]}),
        ("✔ good\n❌ bad", {"validation_positive": ["good"], "validation_negative": ["bad"]}),
        ("﹍﹍", {"separator": ["﹍", "﹍"]}),
        ("a... b....", {"inference_dots": ["...", "..."]}),
        ("etc. and etc", {"inference_etc": ["etc", "etc"]}),
        ("`{~l|as is}`", {"highlight": ["{~l|as is}"], "placeholder": ["~l|as is"],
                          "qualifier": ["l | as"], "literal_output": ["as is"]}),
        ("∑(a) ∩ ∪ ⊆ ∈", {"summation": ["∑(a)"], "intersection": ["∩"], "union": ["∪"], "subset": ["⊆"],
                          "element_of": ["∈"]}),
        ("```alg-pseudo", {"fence_simple": ["alg"], "fence_compound": ["alg-pseudo"]}),
        ("{{name}}", {"placeholder": ["{name"], "handlebars_var": ["name"]}),
        ("{{if  a b}}", {"placeholder": ["{if  a b"], "handlebars_if": ["a b"]}),
        ("{{foreach x}}{{/foreach}}", {"placeholder": ["{foreach x", "{/foreach"],
                                       "handlebars_foreach": ["x"], "handlebars_end": ["foreach"]}),
        ("<npl-intent>", {"placeholder_angle": ["npl-intent"], "npl_tag": ["intent"]}),
        ("⌜a⌝ b ⌞a⌟", {"npl_section_start": ["a"], "npl_section_end": ["a"]}),
        ("plain words, nothing else", {}),
    ],
)  # fmt: skip
def test_what_counts_as_what(text: str, found: dict[str, list[str]]) -> None:
    """Each notation alone, and those that lie over each other."""
    assert {usage.name: list(usage.matches) for usage in analyse(text, 9)} == found


def test_counts_go_on_where_matches_stop() -> None:
    """Only the first few matches are kept."""
    (usage,) = analyse("∪" * 50, 3)
    assert (usage.count, len(usage.matches), usage.category) == (50, 3, "logic_operators")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "start", ["<", "<<a", "⟪a:", "⟪", "{", "(note: ", "{{if ", "[...", "∑(", "`{~l|", "a", "⌜"]
)
def test_what_never_ends_is_read_to_the_end(start: str) -> None:
    """A cost that grows with the square of the length would take hours here."""
    assert analyse(start * 400_000, 3) is not None
