"""``python -m docs.reference``: write API.md, CLIENTS.md, the table of SETTINGS.md, and README's
demonstration and picture.

With ``--check`` nothing is written; the exit code is 1 if a file is out of date.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import inspect
import json
import re
import subprocess
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_type_hints

import npl_index.errors
import npl_mcp.stores.base.errors
from docs import connecting, demo, settings_table
from docs.picture import picture
from npl_mcp.app.app import App
from npl_mcp.config.docstrings import parameters
from npl_mcp.config.settings import Settings, corpus_folder
from npl_mcp.projects.directive import scaffold
from npl_mcp.server.server import create_server
from npl_mcp.tools.contract.error_codes import ErrorCode, code_of
from npl_mcp.tools.contract.parameters import unlisted
from npl_mcp.tools.contract.responses import Reply, as_dict, value_type
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.tools.domains import listed_tools, shown_tools

INTRODUCTION = """\
# API

`make docs` writes this page from the tools.

## Answers

Every tool answers with one text block, an envelope in compact JSON: `{"success": true, "data": …}`,
or `{"success": false, "error": …, "error_code": …}` with the protocol's error mark set. `parameter`
names the argument that cannot be used. Fields without a value are left out. Lines are counted from
1; the end of a range is exclusive. Lists are paged (`items`, `total`, `limit`, `offset`). Feeds
also return a `cursor`: send it as `since` to read later entries.

With `--format markdown`, a successful answer is Markdown: a line for each field; a table for a list
of records, with shared fields above it; texts of several lines last, in fences. A string in quotes
is JSON, and times are given to the second. Failures stay JSON, as do command lines, pages and plain
HTTP calls. Tools that list `format` take it with a call. With `--structured`, the same object comes
as structured content too, and every tool lists its output schema.

`null` for an optional parameter means "not given", and so do `""` and `[]`, except for `expect`,
`request_id`, contents, attributes, a status or title, and who acts or is assigned. `query`, `question`
and `q` mean `context`, and the reverse; `path` means `file`, where a tool has no parameter of that name.
A list of one entry may be a text.

## Retries

Without an answer, a client cannot know whether a write was done. So every tool takes `request_id`,
a text of at most 200 characters, for instance a UUID; it is not listed. For a day, and
beyond 10,000 answers for an hour, a second call with it changes nothing and gets the same answer, from
any replica. With another tool or other arguments it is refused. Each token has its own ids.
A call that failed wrote nothing and may be sent again. Commands
and pages send an id; commands repeat a call once if its answer is lost. The answer is kept in the
transaction of the write. Markdown files have no transaction: if the server is killed in between, the
retry is a second edit, which `expect` refuses.

## Documents

`file` takes a path below a search root, a folder, a pattern (`**/*.prompt.md`, `{guide,api}/*.md`),
an item name (`npl-conventions`), or several of these with commas between them. All their sections
are ranked together. `resource_type` with `item` names an item of one kind. Without either, npl uses
the documents that the selectors begin with, or else all Markdown below the given roots.

`artifact:12` is the current revision of an artifact, `artifact:12@0` its first, and `artifact:*`
all that are Markdown. `cr:MDT-004` is a change request, `cr:MDT` all of a project. Answers call
a file by its path below its root; if two roots have the same path, the second one gets the root's
name: `docs:guide.md`.

## Selectors

A selector names sections by their headings:

```
npl-conventions > ## Agent Delegation > ### Work-Log Flag
## Usage                       every section "Usage" of level 2
guide // * [has-code]          sections whose own text has code
## Start...## End              from one heading to the end of another's section
guide > ## Notes[2]            the second of two equal headings
[version>=1.3.0]               prompts by version
```

Selectors in answers select the same text again, with the same `file` and without any. A range over
neighbours stands for several subsections: `"guide ## Compost...## Tools" 4310 in 12 sections`.
`npl_load_components("selectors")` has the grammar.

If a document contains lines like the marks above passages, npl's own marks end with a nonce such as
`#78db36`. It is part of no selector.

## Python

`npl_index` needs no server. The path is a file or a folder. Without `budget` there is no limit.
Answers are frozen dataclasses; every error is an `NPLError`. `counter` takes a token counter, for
instance `load_vocabulary("o200k_base", [Path("vocabularies")])`.

```python
from npl_index import load_tailored, section_index

answer = load_tailored("corpus", "write the commit message for a fix", budget=500)
print(answer.content)  # the passages, ready for a prompt
print(answer.total_tokens, answer.request_more)  # pointers: selectors of the next sections
print(answer.absent, answer.weak)  # words that no section has; whether the best one has too few
for section in answer.sections:  # most relevant first
    print(section.relevance_score, section.selector, section.start_line)

for document in section_index("GUIDE.md"):
    for section in document.children[0].children:  # below the title
        print(section.selector, section.token_count, section.has_code)
```

Over MCP, any client works; this one is [FastMCP's](https://gofastmcp.com):

```python
import asyncio
import json

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def main():
    async with Client(StdioTransport("npl-mcp", ["--root", "."])) as client:
        request = {"context": "write a placeholder with a qualifier", "file": "syntax", "token_budget": 800}
        request["format"] = "json"  # overrides flags and npl.toml
        result = await client.call_tool("npl_load_tailored", request)
        print(json.loads(result.content[0].text)["data"]["content"])


asyncio.run(main())
```

## HTTP

| route | answer |
|:--|:--|
| `/mcp` | MCP, protocol versions 2025-11-25 and 2026-07-28 |
| `POST /mcp/tools/NAME` | a tool call: a JSON object of arguments, the envelope as answer, a status code |
| `/healthz` | name and version of the server |
| `/readyz` | 200 if the database answers and there is room for calls, else 503 with the reason |
| `/metrics` | metrics for Prometheus |
| others | [pages for people](GUIDE.md#pages-for-people) |

## Resources

`npl://map` is a map of the documents. `npl://file/guide/setup.md` is a document; a selector behind
`#` names one of its sections.

## Tools

The examples run in this order in one small project. Parameters marked "not listed" are accepted,
but `tools/list` leaves them out, because each costs every agent tokens.
[MIGRATION.md](MIGRATION.md) lists the former names.
"""

DEMO_MARKS = ("<!-- demonstration -->", "<!-- /demonstration -->")
PROJECT = """\
[project]
code = "DEMO"
name = "Demonstration"
"""
IDEA = """\
---
code: DEMO-001
title: An idea
status: Proposed
type: Research
priority: Low
---

# An idea

## 1. Description

What if?
"""
SHOWN_FOLDER = "/home/me/.local/share/npl-mcp"
SHOWN_PROJECT = "/home/me/project"
SHOWN_TIME = "2026-01-31T12:00:00.000000Z"
SHOWN_DIGEST = "0f3a9c1e"
LONGEST_STRING = 160
LONGEST_LIST = 2


def api() -> str:
    """Write the text of API.md."""
    with TemporaryDirectory() as folder:
        data, work = Path(folder) / "data", Path(folder) / "work"
        prepare(work)
        (work / "npl.md").write_bytes((corpus_folder() / "npl.md").read_bytes())
        settings = Settings(work, work, work / "none", data_dir=data, search_cwd=True, warm_up=False)
        app = App(settings)
        parts = [
            INTRODUCTION,
            table(),
            *(_tool(spec, app) for spec in listed_tools()),
            *_switched_on(settings),
            _codes(),
        ]
        app.close()
    text = "\n".join(parts).replace(str(data), SHOWN_FOLDER).replace(str(work), SHOWN_PROJECT)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,6}Z", SHOWN_TIME, text)
    # Of a file that holds the time.
    return re.sub(r'"digest": "[0-9a-f]{8}"', f'"digest": "{SHOWN_DIGEST}"', text)


def _switched_on(settings: Settings) -> Iterator[str]:
    """Yield the sections of tools that a setting lists; they need a root."""
    app = App(replace(settings, roots=(settings.cwd,), write=True))
    for spec in shown_tools(app.settings):
        if spec.switch:
            yield _tool(spec, app)
    app.close()


def prepare(folder: Path) -> None:
    """Make a small project, in which the examples work in the order in which tools are listed.

    :param folder: must not exist.
    """
    (folder / "notes").mkdir(parents=True)
    (folder / "notes" / "today.md").write_text("# Today\n", encoding="utf-8")
    (folder / "README.md").write_text("# Read me\n", encoding="utf-8")
    (folder / ".mdt-config.toml").write_text(PROJECT, encoding="utf-8")
    (folder / "docs" / "CRs").mkdir(parents=True)
    (folder / "docs" / "CRs" / "DEMO-001-an-idea.md").write_text(IDEA, encoding="utf-8")
    scaffold(folder)
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)


def table() -> str:
    """Write the table of all tools."""
    rows = ["| tool | what it does | example |", "|:--|:--|:--|"]
    for spec in listed_tools():
        example = json.dumps(spec.example, ensure_ascii=False).replace("|", r"\|")
        rows.append(f"| [`{spec.name}`](#{spec.name}) | {spec.description} | `{example}` |")
    return "\n".join((*rows, ""))


def _tool(spec: ToolSpec, app: App) -> str:
    signature = inspect.signature(spec.function, eval_str=True)
    example = spec.example
    answer = as_dict(Reply(data=spec(app, **example)))
    lines = [f"## {spec.name}", "", spec.description, ""]
    lines += [f"It is listed with `--{spec.switch}` alone.", ""] if spec.switch else []
    lines += ["| parameter | type | meaning |", "|:--|:--|:--|", *_parameters(spec, signature), ""]
    lines += ["Answer:", "", *_fields(value_type(signature.return_annotation), 0), ""]
    lines += ["Errors:", "", *_raises(spec), ""]
    lines += ["Example:", "", "```json", json.dumps(example, ensure_ascii=False), "```", ""]
    # Answers hold fences themselves.
    lines += ["````json", json.dumps(_shortened(answer), ensure_ascii=False, indent=2), "````", ""]
    return "\n".join(lines)


def _parameters(spec: ToolSpec, signature: inspect.Signature) -> Iterator[str]:
    meanings, hidden = spec.meanings, unlisted(spec.function)
    for parameter in list(signature.parameters.values())[1:]:
        note = " (required)" if parameter.default is inspect.Parameter.empty else ""
        note = " (not listed)" if parameter.name in hidden else note
        escaped = meanings.get(parameter.name, "").replace("|", r"\|")
        yield f"| `{parameter.name}` | {_type(parameter.annotation)}{note} | {escaped} |"


def _type(kind: Any) -> str:
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        return _type(typing.get_args(kind)[0])
    if origin in (typing.Union, types.UnionType):
        parts = (_type(part) for part in typing.get_args(kind) if part is not type(None))
        return " or ".join(dict.fromkeys(parts))
    if origin is typing.Literal:
        return " or ".join(f"`{choice}`" for choice in typing.get_args(kind))
    if origin in (list, tuple, Sequence):
        return f"list of {_type(typing.get_args(kind)[0])}"
    if kind is Mapping or origin in (dict, Mapping) or str(origin).endswith("Mapping'>"):
        return "object"
    names = {str: "string", int: "integer", float: "number", bool: "boolean"}
    return names.get(kind, "object")


def _dataclass_in(kind: Any) -> Any:
    """Find the dataclass in a type; that of a generic one keeps its argument."""
    if dataclasses.is_dataclass(typing.get_origin(kind) or kind):
        return kind
    return next((found for part in typing.get_args(kind) if (found := _dataclass_in(part))), None)


def _fields(kind: Any, depth: int, above: tuple[Any, ...] = ()) -> Iterator[str]:
    plain = typing.get_origin(kind) or kind
    meanings = {name: text for base in reversed(plain.__mro__) for name, text in parameters(base).items()}
    filled: dict[Any, Any] = {}
    for part in (kind, *getattr(plain, "__orig_bases__", ())):
        variables = getattr(typing.get_origin(part), "__parameters__", ())
        filled.update(zip(variables, typing.get_args(part), strict=False))
    for name, declared in get_type_hints(plain).items():
        hint = (
            declared[filled[declared.__parameters__[0]]]
            if getattr(declared, "__parameters__", ())
            else declared
        )
        inner = _dataclass_in(hint)
        yield f"{'  ' * depth}- `{name}` ({_type(hint)}): {meanings[name]}"
        if inner is not None and inner not in (*above, kind):
            yield from _fields(inner, depth + 1, (*above, kind))


def _raises(spec: ToolSpec) -> Iterator[str]:
    # What all tools of a module may raise stands in the module's docstring.
    texts = (inspect.getdoc(thing) or "" for thing in (spec.function, inspect.getmodule(spec.function)))
    pattern = re.compile(r"^:raises (\w+): (.*?)(?=^:|\Z)", re.MULTILINE | re.DOTALL)
    for name, meaning in (found for text in texts for found in pattern.findall(text)):
        home = npl_index.errors if hasattr(npl_index.errors, name) else npl_mcp.stores.base.errors
        code = code_of(getattr(home, name))
        yield f"- `{code.value}`: {' '.join(meaning.split())}"


def _codes() -> str:
    lines = ["## Error codes", "", "| code | meaning |", "|:--|:--|"]
    meanings = parameters(ErrorCode).items()
    lines += [f"| `{code}` | {meaning.removesuffix('.')} |" for code, meaning in meanings]
    return "\n".join(lines) + "\n"


def _shortened(value: Any) -> Any:
    """Return a value with long parts cut, so that a reader sees the shape of an answer."""
    if isinstance(value, str) and len(value) > LONGEST_STRING:
        return value[:LONGEST_STRING] + "…"
    if isinstance(value, dict):
        return {name: _shortened(part) for name, part in value.items()}
    if isinstance(value, list):
        more = [f"… {len(value) - LONGEST_LIST} more"] if len(value) > LONGEST_LIST else []
        return [_shortened(part) for part in value[:LONGEST_LIST]] + more
    return value


def with_demonstration(readme: str) -> str:
    """Put what the demonstration prints where README.md shows it; tokens are estimated."""
    lines: list[str] = []
    corpus = corpus_folder()
    with TemporaryDirectory() as folder:
        home = Path(folder)
        settings = Settings(
            cwd=home, home=home, system=home, data_dir=home / "data", roots=(corpus,), warm_up=False
        )
        asyncio.run(demo.run(lines.append, create_server(settings)))
    return _between(readme, DEMO_MARKS, "\n".join(("`````", *lines, "`````")))


def _between(text: str, marks: tuple[str, str], inside: str) -> str:
    begin, end = marks
    return f"{text.partition(begin)[0]}{begin}\n{inside}\n{end}{text.partition(end)[2]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the files of the checkout this module belongs to.

    :returns: exit code.
    """
    parser = argparse.ArgumentParser(prog="docs.reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    check = parser.parse_args(arguments).check
    root = Path(__file__).resolve().parents[1]
    readme, described = root / "README.md", root / "SETTINGS.md"
    wanted = {
        root / "API.md": api(),
        root / "CLIENTS.md": connecting.page(),
        root / "docs" / "answer.svg": picture(root),
        described: _between(
            described.read_text(encoding="utf-8"), settings_table.MARKS, settings_table.table()
        ),
        readme: with_demonstration(readme.read_text(encoding="utf-8")),
    }
    stale = [path for path, text in wanted.items() if not path.is_file() or path.read_text("utf-8") != text]
    for path in stale:
        if check:
            sys.stderr.write(f"{path.name} is out of date; run make docs\n")
        else:
            path.write_text(wanted[path], encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
