"""The audit of an answer, for people."""

import json

import pytest

from tests.conftest import Call


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_the_answer_is_what_an_agent_gets(call: Call, form: str) -> None:
    given = {"context": "water the garden", "token_budget": 250, "topics": ["compost"], "format": form}
    plain, audited = (call.text(tool, **given) for tool in ("npl_load_tailored", "npl_audit"))
    answer = json.loads(audited)["data"]
    assert answer["text"] == plain
    assert answer["content_tokens"] < answer["tokens"] <= 250
