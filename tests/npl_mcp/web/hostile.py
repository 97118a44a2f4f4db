"""Texts that try to become markup or code, for every field that takes text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conftest import cases

RUN = "window.pwned=1;alert(1)"

STRINGS = [*cases("npl_mcp/web/hostile")["strings"], "surrogate \ud800 \udfff alone", "x" * 900]

Ask = Callable[..., Any]
"""Calls a tool; returns its data, or ``None`` if the text is refused."""

MARKS = tuple(f"h{number:02d}x" for number in range(len(STRINGS)))
"""The beginning of each text, by which a test recognizes it on a page."""

MARKED = tuple(f"{mark} {text}" for mark, text in zip(MARKS, STRINGS, strict=True))

CONFIG = '[project]\nname = "{}"\ncode = "BAD"\nid = "bad"\nticketsPath = "crs"\n'


def fill(ask: Ask, docs: Path) -> None:
    """Put all texts where people and agents write.

    :param docs: a folder that is served.
    """
    fill_files(docs)
    fill_questions(docs)
    ask("session_create", session_id="s", title="A session")
    ask("chat_create_room", name="A room", members=["ann", "ben"], session_id="s", description=MARKED[0])
    todo = ask("chat_create_todo", room_id=1, persona="ann", description="x", assigned_to="ben")["event_id"]
    file = {"artifact_type": "document", "filename": "plan.md", "content": "# Plan\n\nShip.\n"}
    ask("artifact_create", name="plan", created_by="ann", session_id="s", **file)
    ask("review_create", artifact_id=1, revision_id=1, reviewer_persona="ben")
    ask("worklog_init", session_id="s", task=MARKED[3])
    for number, text in enumerate(MARKED):
        fill_text(ask, number, text, todo)
    ask("chat_share_artifact", room_id=1, persona="ann", artifact_id=1)


def fill_text(ask: Ask, number: int, text: str, todo: int) -> None:
    """Put one text everywhere; where a name cannot have it, a text does."""
    people = {"room_id": 1, "persona": "ann"}
    ask("chat_send_message", message=f"@ben {text}", reply_to_id=todo, **people)
    ask("chat_react", event_id=todo, persona="ben", emoji=text[5:37])
    ask("chat_create_todo", description=text, **people)
    ask("chat_create_room", name=text, members=["ann"], description=text)
    ask("session_create", session_id=f"s{number}", title=text)
    ask("artifact_create", name=text, artifact_type="document", filename="a.md", content=text, purpose=text)
    ask("review_add_comment", review_id=1, location="line:1", comment=text, persona="ben")
    worklog = {"session_id": "s", "agent_id": f"agent-{number}", "summary": text, "data": {"text": text}}
    ask("worklog_log", action="note", tags=[text], refs={"files": [text]}, **worklog)
    data = {"title": text, "content": text, "assignee": text, "phaseEpic": text}
    ask("create_cr", project="BAD", type="Bug Fix", data=data)
    ask("npl_load_tailored", file="hostile.md", context=text, topics=[text[:100]])


def fill_questions(docs: Path) -> None:
    texts = [" ".join(text.split()) for text in MARKED if text.isprintable()]
    lines = "".join(f"## {text}\n\n- hostile > # {text}\n\n" for text in texts)
    (docs / "questions.md").write_text(lines, encoding="utf-8")


def fill_files(docs: Path) -> None:
    """Make documents with the texts as headings, as paragraphs, as names, and in front matter."""
    blocks = [f"## {text}\n\n{text}\n\n- {text}\n\n> {text}\n\n| {text} |\n|--|\n| x |\n" for text in MARKED]
    text = "# Hostile\n\n" + "\n".join(blocks).replace("\0", "")
    (docs / "hostile.md").write_text(text.encode("utf-8", "replace").decode(), encoding="utf-8")
    for number, name in enumerate(MARKED):
        clean = "".join(sign for sign in name if sign not in "/\0" and not 0xD800 <= ord(sign) <= 0xDFFF)
        (docs / f"{clean.encode()[:200].decode('utf-8', 'ignore')}.md").write_text(
            f"# {number}\n\nA siphon.\n", encoding="utf-8"
        )
    (docs / ".mdt-config.toml").write_text(CONFIG.format("<script>alert(1)</script>"), encoding="utf-8")
    crs = docs / "crs"
    crs.mkdir()
    fields = "".join(f"other{number}: {text!r}\n" for number, text in enumerate(MARKED) if text.isprintable())
    body = (
        "\n".join(f"## {text}\n\n{text}\n" for text in MARKED)
        .replace("\0", "")
        .encode("utf-8", "replace")
        .decode()
    )
    (crs / "BAD-001-x.md").write_text(
        f"---\ncode: BAD-001\nstatus: <script>alert(1)</script>\ntype: {MARKED[1]}\n{fields}---\n\n"
        f"# {MARKED[1]}\n\n{body}\n\n## Plain\n\nText.\n",
        encoding="utf-8",
    )
