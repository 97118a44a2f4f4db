"""The Markdown form says what the JSON says, in fewer tokens, and no text can imitate its structure."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs.reference import prepare
from npl_index import estimator
from npl_mcp.config.settings import Settings
from npl_mcp.tools.contract.markdown import as_markdown
from npl_mcp.tools.domains import listed_tools
from tests.conftest import Connect, cases

TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{3,6}Z")
OWN_FORM = {
    "npl_load_components",
    "npl_load_meta",
    "npl_load_style",
    "npl_load_agent",
    "npl_section_index",
    "npl_load_tailored",
    "search",
}
"""Tools that write their own Markdown; some fill a budget in each form."""


ABSENT = object()


class Reader:
    """A reader that restores the Markdown form by its rules alone."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def fields(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while self._at < len(self._text):
            self._skip("\n")
            *above, name = self._name()
            place = values
            for part in above:
                place = place.setdefault(part, {})
            assert name not in place
            place[name] = self._block() if self._next(":\n```") else self._line_or_table()
        return values

    def _line_or_table(self) -> Any:
        if self._take(": "):
            return self._value("\n")
        common = self._value("\n") if self._take(", each ") else {}
        assert self._take(":\n")
        columns, rows = self._row(str), []
        while not self._next("\n") and self._at < len(self._text):
            cells = self._row(self._cell)
            assert len(cells) == len(columns)
            row = {key: cell for key, cell in zip(columns, cells, strict=True) if cell is not ABSENT}
            rows.append({**common, **row})
        return rows

    def _row(self, made: Any) -> list[Any]:
        cells = [made(self._string("|\n")) if made is str else made()]
        while self._take("|"):
            cells.append(made(self._string("|\n")) if made is str else made())
        assert self._take("\n") or self._at == len(self._text)
        return cells

    def _cell(self) -> Any:
        empty = self._at == len(self._text) or self._next("|") or self._next("\n")
        return ABSENT if empty else self._value("|\n")

    def _block(self) -> str:
        opening = re.compile(r":\n(`{3,})\n").match(self._text, self._at)
        assert opening is not None
        text, _, _ = self._text[opening.end() :].partition(f"\n{opening[1]}")
        self._at = opening.end() + len(text) + len(opening[1]) + 1
        assert self._next("\n") or self._at == len(self._text)
        return text

    def _name(self) -> list[str]:
        parts = [self._string(".:,")]
        while self._take("."):
            parts.append(self._string(".:,"))
        return parts

    def _value(self, stops: str) -> Any:
        if self._take("{"):
            return {} if self._take("}") else dict(self._list("}", self._pair))
        if self._take("["):
            return [] if self._take("]") else self._list("]", lambda: self._value(",]"))
        quoted, text = self._next('"'), self._string(stops)
        if quoted or not re.fullmatch(r"-?\d+(\.\d+)?([eE][+-]?\d+)?|true|false|null|none", text):
            return text
        return [] if text == "none" else json.loads(text)

    def _pair(self) -> tuple[str, Any]:
        key = self._string(":")
        assert self._take(": ")
        return key, self._value(",}")

    def _list(self, end: str, item: Any) -> list[Any]:
        parts = [item()]
        while self._take(", "):
            parts.append(item())
        assert self._take(end)
        return parts

    def _string(self, stops: str) -> str:
        start = self._at
        if self._next('"'):
            text, self._at = json.JSONDecoder().raw_decode(self._text, start)
            return str(text)
        while self._at < len(self._text) and self._text[self._at] not in stops:
            self._at += 1
        return self._text[start : self._at]

    def _next(self, mark: str) -> bool:
        return self._text.startswith(mark, self._at)

    def _take(self, mark: str) -> bool:
        line = self._next(mark)
        self._at += len(mark) if line else 0
        return line

    def _skip(self, sign: str) -> None:
        while self._take(sign):
            pass


def said(value: Any) -> Any:
    """Return a value as its Markdown says it, with times to the second."""
    if isinstance(value, Mapping):
        return {key: said(part) for key, part in value.items()}
    if isinstance(value, list):
        return [said(part) for part in value]
    return TIME.sub(r"\1Z", value) if isinstance(value, str) and TIME.fullmatch(value) else value


def same(value: Any, read: Any) -> bool:
    """Return whether two values are equal apart from the last line end of texts."""
    if isinstance(value, Mapping) and isinstance(read, Mapping):
        return value.keys() == read.keys() and all(same(part, read[key]) for key, part in value.items())
    if isinstance(value, list) and isinstance(read, list):
        return len(value) == len(read) and all(map(same, value, read))
    if isinstance(value, str) and isinstance(read, str):
        return value in (read, f"{read}\n")
    return type(value) is type(read) and bool(value == read)


def reads_back(fields: dict[str, Any]) -> bool:
    """Return whether an answer's Markdown form says exactly what the answer says."""
    return same(said(fields), Reader(as_markdown(fields)).fields())


@pytest.mark.thorough
def test_every_listed_tool_answers_in_markdown(tmp_path: Path, connect: Connect) -> None:
    made: dict[str, dict[str, str]] = {}
    for form in ("json", "markdown"):
        # Paths and times stand in answers; they are as long in both forms.
        work = tmp_path / form.ljust(8, "_")
        prepare(work / "work")
        place = {"cwd": work / "work", "home": work, "system": work / "none", "data_dir": work / "data"}
        call = connect(Settings(**place, own_cwd=True, warm_up=False, format=form))
        for spec in listed_tools():
            made.setdefault(spec.name, {})[form] = call.text(spec.name, **spec.example)
    count = estimator().count
    assert len(made) == len(listed_tools())
    for name, forms in made.items():
        assert not forms["markdown"].startswith("{"), name
        if name not in OWN_FORM:
            assert count(forms["markdown"]) < count(forms["json"]), name
            data = json.loads(forms["json"])["data"]
            read = Reader(forms["markdown"]).fields()
            assert shape(read) == shape(said(data)), name
            assert reads_back(data), name


def shape(value: Any) -> Any:
    """Return a value without the parts that differ between two servers: texts, and their counts."""
    if isinstance(value, Mapping):
        return {key: shape(part) for key, part in value.items()}
    return [shape(part) for part in value] if isinstance(value, list) else type(value)


HOSTILE = cases("npl_mcp/tools/contract/markdown")


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_passes_for_anything_else(text: str) -> None:
    """The text stands in a field, a record, a list, an object and a name."""
    row = {"id": 1, "text": text, "data": {"message": text, text or "x": [text]}}
    other = {"id": 2, "text": "plain", "more": [text, {"a": text}]}
    answer = {"text": text, text or "x": 1, "deep": {"text": f"{text}\n", "id": 2}, "items": [row, other]}
    assert reads_back(answer)
    assert reads_back({"items": [row, {**row, "id": 2, "by": "a"}], "next": text, "cursor": 9})
    assert reads_back({"items": [{"first": text, "second": text}] * 2, "others": [row, other], "end": "a\nb"})
    assert text.strip("\n") in as_markdown({"text": f"\n{text}"})


TEXTS = st.text(st.sampled_from('ab1 |,:.{}[]"`~\\\n\r-#é\u2028\x00'), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS | st.sampled_from(HOSTILE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=4))
def test_any_answer_reads_back(fields: dict[str, Any]) -> None:
    assert reads_back(fields)


@pytest.mark.parametrize(("data", "expected"), cases("npl_mcp/tools/contract/markdown_tables")["the_form"])
def test_the_form(data: object, expected: str) -> None:
    assert as_markdown(data) == expected


def test_a_caller_gets_the_form_that_it_asks_for(settings: Settings, connect: Connect) -> None:
    """The server's form is for calls without a form; failures are the envelope."""
    usual = replace(settings, format="markdown")
    call = connect(usual)
    assert call.text("npl_load_components", items="syntax").startswith("# syntax")
    assert call.text("npl_load_components", items="syntax", format="json").startswith('{"success":true')
    assert call.text("session_list") == "items: none\ntotal: 0\nlimit: 20\noffset: 0"
    assert call.refused("session_get", session_id="x")[0] == "SESSION_NOT_FOUND"
    answer = connect(replace(usual, structured=True)).result("session_list")
    assert answer.structured_content["data"]["total"] == 0
    assert answer.content[0].text.startswith("items: none\n")
