"""Attacks on the servers on the hostile day: one entry of :data:`ATTACKS` for each kind.

To add one, write a function that makes one round of it with a :class:`Line`, and append an :class:`Attack`.
Each is repeated in a thread of its own until the day ends. What a tool answers is checked in one place: an
envelope, no ``INTERNAL_ERROR``, and no error above 4 kB.
"""

import base64
import json
import socket
import struct
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tests.messages import asking, hello

MiB = 1024 * 1024


class Line(Protocol):
    """How an attack reaches a server: over HTTP, or over its standard streams.

    ``head`` is what each request over HTTP begins with after its first line.
    """

    head: bytes

    def call(self, tool: str, arguments: Any) -> Any:
        """Call a tool and return its envelope."""
        ...

    def send(self, message: bytes) -> None:
        """Send a raw message of the protocol, and return the answer, if there is one."""
        ...

    def connect(self) -> socket.socket | None:
        """Return a new connection; ``None`` over standard streams."""
        ...


Round = Callable[[Line], object]


@dataclass(frozen=True)
class Attack:
    """One kind of attack.

    :param name: what it is.
    :param act: makes one round.
    :param pause: seconds after each round.
    :param stdio: it is also made over standard streams.
    """

    name: str
    act: Round
    pause: float = 2.0
    stdio: bool = True


def lay_out(root: Path) -> None:
    """Write the files that attacks read."""
    (root / "definitions.md").write_text(
        "# Terms\n\n" + "term\n: its meaning\n\n" * 200_000, encoding="utf-8"
    )
    (root / "table.md").write_text("# T\n\n|a|b|\n|-|-|\n" + "|1|2|\n" * 300_000, encoding="utf-8")
    (root / "paragraphs.md").write_text(
        "# P\n\n" + "Some *words* of [text](x).\n\n" * 150_000, encoding="utf-8"
    )
    (root / "chinese.md").write_text("# 堆\n\n" + "堆肥和浇水的方法很重要" * 150_000, encoding="utf-8")
    (root / "images.md").write_text("# I\n\n" + "![[]()" * 300_000, encoding="utf-8")
    (root / "heading.md").write_text("# " + "a" * 15_900_000, encoding="utf-8")
    (root / "spaces.md").write_text("# a" + " " * 5_000_000 + "#b\n", encoding="utf-8")
    (root / "keys.md").write_text("---\n" + "? " * 300_000 + "\n---\n\n# K\n", encoding="utf-8")
    (root / "prompts").mkdir()
    (root / "prompts" / "many.md").write_text("---\narguments: [a]\n---\n" + "{a}" * 20_000, encoding="utf-8")
    (root / "changing.md").write_text("# C\n\n## Part\n\nText.\n", encoding="utf-8")
    multiply(root)
    many = root / "many"
    many.mkdir()
    for number in range(2_000):
        (many / f"f{number}.md").write_text(f"# F{number}\n\n## Part\n\nWord {number}.\n", encoding="utf-8")


def single(tool: str, **arguments: Any) -> Round:
    """Return a round of one call."""
    return lambda line: line.call(tool, arguments)


def each(*rounds: Round) -> Round:
    """Return a round of several calls."""
    return lambda line: [act(line) for act in rounds]


def raw(*messages: bytes) -> Round:
    """Return a round of raw messages."""
    return lambda line: [line.send(message) for message in messages]


def png(width: int, height: int) -> bytes:
    """Return a small picture that claims to be large."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    body = zlib.compress(bytes((width // 8 + 1) * min(height, 4)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def annotate(content: bytes, filename: str, *notes: Mapping[str, Any]) -> Round:
    """Return a round that stores a file, reviews it and has it annotated."""

    def act(line: Line) -> None:
        made = line.call(
            "artifact_create",
            {
                "name": f"{filename} {time.monotonic_ns()}",
                "artifact_type": "image",
                "filename": filename,
                "file_content_base64": base64.b64encode(content).decode(),
            },
        )
        if not made["success"]:
            return
        place = {name: made["data"][name] for name in ("artifact_id", "revision_id")}
        reviewed = line.call("review_create", {**place, "reviewer_persona": "a"})
        if not reviewed["success"]:
            return
        review = reviewed["data"]["review_id"]
        for note in notes:
            tool = "review_add_annotation" if "x" in note else "review_add_comment"
            line.call(tool, {"review_id": review, "persona": "a", "comment": "x", **note})
        line.call("review_complete", {"review_id": review})
        line.call("review_generate_annotated", place)

    return act


def large_artifact(line: Line) -> None:
    content = base64.b64encode(bytes(8 * MiB)).decode()
    whole = {"artifact_type": "x", "filename": "x", "file_content_base64": content}
    made = line.call("artifact_create", {**whole, "name": f"large {time.monotonic_ns()}"})
    if made["success"]:
        line.call("artifact_get", {"artifact_id": made["data"]["artifact_id"]})


def leave_lying(line: Line) -> None:
    """Ask for a large answer over many connections and read none of them."""
    body = b'{"artifact_id":1}'
    lines = []
    for _ in range(20):
        if (connection := line.connect()) is None:
            return
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(_request(line, "/mcp/tools/artifact_get", len(body)) + body)
        lines.append(connection)
    time.sleep(3)
    for connection in lines:
        connection.close()


def crowd(tool: str, **arguments: Any) -> Round:
    """Return a round of a hundred connections that make the same call at once."""
    body = json.dumps(arguments).encode()

    def act(line: Line) -> None:
        lines = [connection for _ in range(100) if (connection := line.connect()) is not None]
        for _ in range(10):
            for connection in lines:
                connection.sendall(_request(line, f"/mcp/tools/{tool}", len(body)) + body)
            for connection in lines:
                connection.recv(65536)
        for connection in lines:
            connection.close()

    return act


def search_everywhere(line: Line) -> None:
    """Search in artifacts; each round stores more of them."""
    content = base64.b64encode(b"compost and water " * 200).decode()
    for _ in range(50):
        name = f"found {time.monotonic_ns()}"
        text = {"artifact_type": "text", "filename": "x.md", "file_content_base64": content}
        line.call("artifact_create", {"name": name, **text})
    for word in ("compost", "nowhere"):
        line.call("search", {"query": word})


def dribble(line: Line) -> None:
    """Send requests byte by byte, and open silent connections."""
    lines = [connection for _ in range(60) if (connection := line.connect()) is not None]
    for connection in lines[::2]:
        with suppress(OSError):
            connection.sendall(_request(line, "/mcp", 999_999)[:-2])
    for _ in range(20):
        time.sleep(0.1)
        for connection in lines[::2]:
            with suppress(OSError):
                connection.sendall(b"X")
    for connection in lines:
        connection.close()


def shake_hands(line: Line) -> None:
    for _ in range(50):
        line.send(HELLO)


def half_bodies(line: Line) -> None:
    """Announce long bodies, send half of them, and wait."""
    lines = [connection for _ in range(3) if (connection := line.connect()) is not None]
    for connection in lines:
        with suppress(OSError):
            connection.sendall(_request(line, "/mcp/tools/artifact_create", 14_000_000) + b"x" * 2 * MiB)
    time.sleep(1)
    for connection in lines:
        connection.close()


def trickling_bodies(line: Line) -> None:
    """Send long bodies byte by byte, with the attackers' token and to the page that needs none."""
    form = b"".join(
        head if not head.startswith((b"Authorization", b"Content-Type")) else b""
        for head in line.head.splitlines(keepends=True)
    )
    kind = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 5000\r\n\r\n"
    heads = (_request(line, "/mcp", 5_000), b"POST /sign-in HTTP/1.1\r\n" + form + kind)
    lines = [connection for _ in range(200) if (connection := line.connect()) is not None]
    for part in range(26):
        for number, connection in enumerate(lines):
            with suppress(OSError):
                connection.sendall(heads[number % 2] if part == 0 else b"x")
        time.sleep(0.5)
    for connection in lines:
        with suppress(OSError):
            connection.settimeout(1)
            if not connection.recv(65536).startswith(b"HTTP/1.1 4"):
                raise ValueError("a body that trickles in has no deadline")
        connection.close()


def half_heads(line: Line) -> None:
    """Send half a head on new connections and on used ones, and wait."""
    lines = [connection for _ in range(100) if (connection := line.connect()) is not None]
    for connection in lines[::2]:
        with suppress(OSError):
            connection.sendall(b"GET /healthz HTTP/1.1\r\n%s\r\n" % line.head)
            connection.recv(65536)
    for connection in lines:
        with suppress(OSError):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: loc")
    time.sleep(1)
    for connection in lines:
        connection.close()


PAGES = (
    b"GET /",
    b"GET /documents?q=%E5%A0%86",
    b"GET /search?q=" + b"%E5%A0%86" * 400,
    b"GET /rooms/9999999",
    b"GET /artifacts?offset=1000000000",
    b"POST /questions/save",
    b"POST /board/new",
)


def look_at_pages(line: Line) -> None:
    """Open pages and send forged forms; none of them is a defect."""
    form = b"a=" + b"x" * 10_000
    for page in PAGES:
        if (connection := line.connect()) is None:
            return
        with connection:
            kind = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n" % len(form)
            head = b"\r\n".join(
                header for header in line.head.split(b"\r\n") if not header.startswith(b"Content-")
            )
            more = kind if page.startswith(b"POST") else b""
            connection.sendall(page + b" HTTP/1.1\r\n" + head + b"Connection: close\r\n" + more + b"\r\n")
            if more:
                connection.sendall(form)
            status = connection.recv(65536)[9:12]
            while connection.recv(65536):
                pass
        if status == b"500":
            raise ValueError(f"{page[:60]!r} is answered with 500")


def edit_again(line: Line) -> None:
    """Change a file that others read, twice with one id and once without reading the answer."""
    edit = {"file": "changing.md", "selector": "## Part", "operation": "replace", "content": "Text.\n"}
    request = f"edit {time.time_ns()}"
    answers = [line.call("npl_update_section", {**edit, "request_id": request}) for _ in range(2)]
    if answers[0] != answers[1] and all(answer["success"] for answer in answers):  # one may be refused
        raise ValueError(f"one request_id has two answers: {str(answers)[:1_000]}")
    line.call("npl_load_tailored", {"file": "changing.md", "context": "the text of a part"})


def multiply(root: Path) -> None:
    """Write files whose parts are harmless, and many times a part for each other part."""
    deep = root.joinpath("rules", *"d" * 20)
    deep.mkdir(parents=True)
    (root / "rules" / ".gitignore").write_text(("**/d/" * 30 + "no*\n") * 400 + "/nowhere/*.md", "utf-8")
    for number in range(500):
        (deep / f"f{number}.md").write_text(f"# F{number}\n", encoding="utf-8")
    (root / "links.md").write_text("# L\n\n" + "[a](x.md) " * 40_000 + "\n" + "## b\n" * 15_000, "utf-8")
    (root / "brackets.md").write_text("# B\n\n" + "](" * 500_000, encoding="utf-8")
    (root / "anchors.md").write_text("# A\n\nText.\n\n<a " + "id=x " * 90_000 + "\n", encoding="utf-8")


def change_rules(line: Line) -> None:
    """Ask below many ignore rules, after a change that makes the walk read the folder again."""
    name = f"rules/{'d/' * 20}new{time.monotonic_ns()}.md"
    line.call("npl_update_section", {"file": name, "operation": "create", "content": "# New\n"})
    line.call("npl_load_tailored", {"file": "rules", "context": "new"})


def look_at_health(line: Line) -> None:
    """Open the health of all documents, and of a file with many links and headings."""
    for page in (
        b"/documents/health",
        b"/documents/health?file=links.md",
        b"/documents/health?file=brackets.md",
    ):
        if (connection := line.connect()) is None:
            return
        with connection:
            connection.sendall(b"GET %s HTTP/1.1\r\n%sConnection: close\r\n\r\n" % (page, line.head))
            status = connection.recv(65536)[9:12]
            while connection.recv(65536):
                pass
        if status == b"500":
            raise ValueError(f"{page!r} is answered with 500")


EDITS = each(
    *(
        single("npl_update_section", file="anchors.md", selector="# A", operation=operation, content=text)
        for operation, text in (
            ("append", "Text."),
            ("replace", "Text.\n\n" + "".join(f"*[l{number}]: x\n" for number in range(8_000))),
            ("replace", "Text.\n\n<a " + "id=x " * 90_000),
        )
    ),
)

FOREIGN = each(
    *(
        single("npl_load_tailored", file=file, context=text)
        for file in ("chinese.md", "many")
        for text in ("堆" * 20_000, "ﷺ" * 20_000, "é" * 20_000, "Ж" * 20_000 + " 堆肥")
    )
)


def _request(line: Line, path: str, length: int) -> bytes:
    """Return the head of a request.

    :param length: bytes of the body.
    """
    return b"POST %s HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n" % (path.encode(), line.head, length)


def message(arguments: bytes, request: bytes = b"7", tool: bytes = b"npl_section_index") -> bytes:
    """Return a call as it is sent, with arguments that need not be JSON."""
    params = b'{"name":"%s","arguments":%s}' % (tool, arguments)
    return b'{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":%s}' % (request, params)


HELLO = json.dumps(hello()).encode()

QUADRATIC = each(
    single("manage_cr_sections", project="X", key="X-1", operation="get", section="1" * 20_000),
    single("npl_load_tailored", file="guide.md", selectors=["## " + "[" * 4_000]),
    single("npl_load_tailored", file="guide.md", context="a" * 200_000 + " " * 200_000),
    single("npl_load_components", items="a" + " " * 100_000 + "b"),
    single("git_tree", path="a/" * 2_000),
    annotate(b"text\n", "notes.md", {"location": "line:1", "comment": "[^" * 20_000}),
    annotate(b"[^" * 40_000 + b"\n", "marks.md", {"location": "line:1"}),
    annotate(b"<!--" * 20_000 + b" " * 20_000, "ends.md", {"location": "line:1"}),
)

WIDE = each(
    single("npl_load_tailored", file="guide.md", topics=list(range(1_000))),
    single("npl_load_tailored", file="guide.md", topics=list(range(20_000))),
    single("npl_section_index", **{f"key{number}": 1 for number in range(20_000)}),
    single("npl_section_index", file="guide.md", filter={f"key{number}": 1 for number in range(20_000)}),
    single("worklog_log", agent_id="a", action="b", summary="c", data=[[]] * 20_000),
    single("chat_create_room", name="x", members=["a\0"] * 1_000),
    single("x" * 10_000),
    single("npl_section_index", file="\x01" * 4_000),
)

MALFORMED = raw(
    message(b"{"),
    message(b'{"file":"\\ud800"}'),
    message(b'{"file":"\xed\xa0\x80"}'),
    message(b'{"depth":' + b"9" * 5_000 + b"}"),
    message(b'{"filter":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    message(b'{"filter":' + b"[" * 100_000),
    message(b'{"topics":[' + b"1," * 1_000_000 + b"1]}"),
    message(b'{"topics":[' + b"{}," * 1_000_000 + b"1]}"),
    message(b"{" + b'"a":1,' * 500_000 + b'"b":1}'),
    message(b'{"file":"' + b"x" * 20 * MiB + b'"}'),
    message(b"{}", b"1.5"),
    message(b"{}", b"null"),
    message(b"{}", b'"' + b"i" * 100_000 + b'"'),
    b"[" + message(b"{}") + b"]",
    b"hello",
)

PROMPTS = raw(
    json.dumps(asking(7, "prompts/get", name="many", arguments={"a": "x" * 20_000})).encode(),
    json.dumps(asking(7, "prompts/list")).encode(),
)

BUSY_BUDGETS = each(
    *(
        single("npl_load_tailored", file=file, context="meaning of words", token_budget=500)
        for file in ("definitions.md", "table.md", "paragraphs.md", "chinese.md", "images.md")
    )
)

SELECTORS = single("npl_load_tailored", file="many", selectors=[f"## Part {n}" for n in range(64)])


ATTACKS = (
    Attack("wide arguments", WIDE),
    Attack("malformed messages", MALFORMED),
    Attack("quadratic texts", QUADRATIC),
    Attack("budgets over large files", BUSY_BUDGETS),
    Attack("selectors over many files", SELECTORS),
    Attack("large artifacts", large_artifact),
    Attack(
        "pictures that say they are large",
        each(
            annotate(png(1, 50_000_000), "a.png", {"x": 1, "y": 1}),
            annotate(png(4_000, 4_000), "b.png", {"x": 1, "y": 1}),
        ),
    ),
    Attack("readers that do not read", leave_lying, stdio=False),
    Attack("callers that dribble", dribble, stdio=False),
    Attack(
        "outlines of huge headings",
        each(
            *(
                single("npl_section_index", file=file, token_budget=300)
                for file in ("heading.md", "spaces.md", "keys.md")
            )
        ),
    ),
    Attack("searches", search_everywhere),
    Attack(
        "pictures, texts and dumps at once",
        each(
            annotate(png(4_000, 4_000), "c.png", {"x": 1, "y": 1}),
            annotate(b"text " * 1_000_000, "long.md", {"location": "line:1"}),
            single("dump_files", path="."),
        ),
    ),
    Attack("a hundred writers", crowd("session_create", title="crowd"), stdio=False),
    Attack("a hundred loaders", crowd("npl_load_components", items="*"), stdio=False),
    Attack("handshakes", shake_hands, stdio=False),
    Attack("half bodies", half_bodies, stdio=False),
    Attack("half heads", half_heads, stdio=False),
    Attack("trickling bodies", trickling_bodies, stdio=False),
    Attack("prompts of many arguments", PROMPTS),
    Attack("pages and forms", look_at_pages, stdio=False),
    Attack("edits of a file that is read", edit_again),
    Attack("questions without spaces", FOREIGN),
    Attack("rules by depth by files", change_rules),
    Attack("health of links by headings", look_at_health, stdio=False),
    Attack("edits of hostile lines", EDITS),
)
