"""Whether a section that a question names is answered, in each form of naming it.

Usage: ``python -m benchmarks.forms FOLDER [--count NUMBER] [--command PROGRAM]``

The names are headings of *FOLDER* that one section has. Each form is asked with real names, and with names
that are invented, through a server with its default settings. A line has the form, the real names whose
section is in the text of the answer, and the invented ones that got any text. The last line has questions
about common headings of products that the folder does not have: how many got text.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastmcp import Client

from benchmarks.relevance.indexed import read_documents
from benchmarks.servers import client_of
from npl_index.markdown.links import slug
from npl_index.markdown.sections import Span

PERSONA = (
    "You are a patient assistant for a team of platform engineers. You read their documentation before you"
    " answer. You prefer short answers with one example."
)
TASK = "I'm building a refactoring assistant for our monorepo and need background"
PRODUCTS = ("Terraform", "Keycloak", "Jenkins", "Magento", "Zigbee", "Blender", "Joomla", "FileMaker")
PARTS = ("quokka", "zephyr", "marmot", "tulip", "walrus", "gizmo", "nougat", "bramble", "fjord", "pylon")
NAME = re.compile(r"[A-Za-z]\w*[a-z0-9]([_.]|(?=[A-Z]))[\w.]+$")
SNAKE = re.compile(r"[a-z]+(_[a-z]+)+$")
VERSION = re.compile(r"\d+(\.\d+)+(?=\s|$)")
PREFIX = re.compile(r"^v(?=\d)")
TITLE = re.compile(r"[A-Z][a-z]+( [\w-]+){1,4}$")
ANY = re.compile(".+")
NOWHERE = Span(0, 0)
FORMS = {
    "name": (NAME, "{0.name}"),
    "two names": (NAME, "What do {0.name} and {1.name} do?"),
    "German": (NAME, "Wie verwende ich {0.name}?"),
    "French": (NAME, "Comment utiliser {0.name} ?"),
    "Spanish": (NAME, "¿Cómo puedo usar {0.name}?"),
    "self.": (SNAKE, "self.{0.name}"),
    "--option": (SNAKE, "--{0.option}"),
    "APP_NAME": (SNAKE, "APP_{0.upper}"),
    "todo": (NAME, "todo: fix the {0.name} before friday"),
    "v-version": (VERSION, "what is new in v{0.name}"),
    "path": (ANY, "{0.file}"),
    "address": (ANY, "https://docs.example.org/en/{0.page}.html#{0.anchor}"),
    "topic, task": (TITLE, TASK),
    "topic, persona": (TITLE, PERSONA),
}


class Named:
    """A section with the name of it that questions use; its lines are from 0."""

    def __init__(self, file: str, heading: str, name: str, lines: Span = NOWHERE) -> None:
        self.file, self.name, self.lines = file, name, lines
        self.page, self.anchor = file.removesuffix(".md"), slug(heading)
        self.option, self.upper = name.replace("_", "-"), name.upper()


async def ask(client: Client[Any], question: str, topic: str = "") -> dict[str, Any]:
    """Return the fields of an answer."""
    arguments = {"context": question, "topics": [topic] if topic else [], "format": "json"}
    answer = await client.call_tool("npl_load_tailored", arguments)
    fields: dict[str, Any] = json.loads(answer.content[0].text)["data"]  # type: ignore[union-attr]
    return fields


def is_in(fields: dict[str, Any], named: Named, *, page: bool) -> bool:
    """Return whether an answer has text of a section, or of any section on its page."""
    rows = [row for row in fields["sections"] if row.get("file", fields.get("file")) == named.file]
    return any(
        page or (row["start_line"] <= named.lines.stop and row["end_line"] > named.lines.start)
        for row in rows
    )


def names_in(folder: Path, pattern: re.Pattern[str]) -> list[Named]:
    """Return the names of one heading."""
    found = [
        Named(file, section.name, match[0], section.whole)
        for file, document in read_documents(folder).items()
        for section in document.tree.sections[1:]
        if (match := pattern.match(PREFIX.sub("", section.name)))
    ]
    times = Counter(named.name for named in found)
    return [named for named in found if times[named.name] == 1]


def invented(pattern: re.Pattern[str], number: int) -> Named:
    """Return an invented name."""
    parts = random.Random(number).sample(PARTS, 2)
    name = {VERSION: f"98.{number}.7", TITLE: " ".join(parts).capitalize()}.get(pattern, "_".join(parts))
    return Named(f"{'/'.join(parts)}.md", " ".join(parts), name)


async def measure(client: Client[Any], folder: Path, count: int) -> None:
    """Ask and print."""
    chosen = random.Random(7)
    for form, (pattern, question) in FORMS.items():
        names = names_in(folder, pattern)
        names = chosen.sample(names, min(count, len(names)))
        unreal = [invented(pattern, number) for number in range(count)]
        answers = [
            await ask(client, question.format(one, other), one.name if pattern is TITLE else "")
            for some in (names, unreal)
            for one, other in zip(some, some[1:] + some[:1], strict=True)
        ]
        pairs = zip(answers, names, strict=False)
        real = sum(is_in(fields, named, page=form == "path") for fields, named in pairs)
        texts = sum(bool(fields["content"]) for fields in answers[len(names) :])
        print(f"{form:15} {real:3} of {len(names):3}   invented {texts:3} of {count}", flush=True)
    times = Counter(
        s.name for document in read_documents(folder).values() for s in document.tree.sections[1:]
    )
    common = [heading for heading, number in times.most_common(max(1, count * 12 // 30)) if number > 1]
    questions = [f"{heading} {product}" for heading in common for product in PRODUCTS]
    texts = sum([bool((await ask(client, question))["content"]) for question in questions])
    print(f"absent products with a common heading: {texts} of {len(questions)} with text")


async def start(folder: Path, count: int, command: Sequence[str]) -> None:
    """Start a server and measure."""
    async with client_of([*command, "--root", str(folder), "--data-dir", "."]) as client:
        await measure(client, folder, count)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="benchmarks.forms", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="folder of Markdown files")
    parser.add_argument("--count", type=int, default=30, help="names of each form")
    parser.add_argument(
        "--command", nargs="+", default=[str(Path(sys.executable).parent / "npl-mcp")], help="the server"
    )
    given = parser.parse_args(arguments)
    asyncio.run(start(given.folder.resolve(), given.count, given.command))
    return 0


if __name__ == "__main__":
    sys.exit(main())
