"""What people look at beside an answer."""

from __future__ import annotations

import json

from npl_mcp.config.settings import Settings
from tests.conftest import calls


def test_both_forms_are_what_an_agent_gets(settings: Settings) -> None:
    """The text, to the byte, and its cost; in the form that is asked for the states are told."""
    given = {"context": "water the garden", "token_budget": 250, "topics": ["compost"]}
    (audit,) = calls(settings, [("npl_audit", given)])
    (plain,) = calls(settings, [("npl_load_tailored", given)])
    answers = audit["data"]["answers"]
    assert json.loads(answers["json"]["text"]) == plain
    assert all(answer["tokens"] <= 250 for answer in answers.values())
    assert audit["data"]["form"] == "json"
    (marked,) = calls(settings, [("npl_audit", {**given, "format": "markdown"})])
    assert marked["data"]["answers"] == answers
    assert marked["data"]["form"] == "markdown"
