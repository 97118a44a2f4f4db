"""Shared code of the benchmarks: texts made from the bundled corpus, counted tokens, times."""

from __future__ import annotations

from pathlib import Path

from npl_index.library.documents import Document, Fingerprint
from npl_index.tokens.counting import TokenCounter
from npl_index.tokens.estimated import estimator
from npl_index.tokens.exact import load_vocabulary
from npl_mcp.config.settings import Settings, corpus_folder

OLD_ENOUGH = 2.1
"""Seconds after which a file is no longer compared by content on every call."""

CONTEXTS = (
    "write a placeholder with a qualifier for a customer name",
    "how do I show an example with its output in a prompt",
    "an agent that reviews code and needs a rubric for its verdict",
    "table formatting directive with column alignment",
    "which pump makes the model reflect on its answer",
    "declare an agent with an alias and extend it later",
    "repeat a block for every item with handlebars",
    "limit the length of generated text to three sentences",
)


def corpus_texts() -> list[str]:
    """Return the bundled files' texts, in the order of their paths."""
    return [path.read_text(encoding="utf-8") for path in sorted(corpus_folder().rglob("*.md"))]


def long_file(sections: int = 225) -> str:
    """Join bundled files until the text has a given number of headings."""
    parts: list[str] = []
    count = 0
    while count < sections:
        for text in corpus_texts():
            for block in text.split("\n#"):
                if count == sections:
                    return "\n#".join(parts)
                parts.append(block)
                count += 1
    return "\n#".join(parts)


def write_folder(folder: Path, files: int) -> None:
    """Write a number of different files of typical size, made from the bundled ones."""
    texts = corpus_texts()
    for number in range(files):
        text = texts[number % len(texts)]
        (folder / f"page-{number:04}.md").write_text(
            f"{text}\n\nPage {number} of the set.\n", encoding="utf-8"
        )


def settings(root: Path, **changes: object) -> Settings:
    """Return settings that serve one folder."""
    return Settings(cwd=root, home=root, system=root / "none", roots=(root,), warm_up=False, **changes)  # type: ignore[arg-type]


def best_counter() -> TokenCounter:
    """Return the exact counter if its vocabulary is on the machine, else the estimator."""
    return load_vocabulary("o200k_base", Settings.from_env().vocabulary_folders) or estimator("o200k_base")


def put_between(file: Path, marks: tuple[str, str], text: str) -> None:
    """Replace the text between two marks of a file."""
    before, rest = file.read_text(encoding="utf-8").split(marks[0])
    after = rest.split(marks[1])[1]
    file.write_text(f"{before}{marks[0]}\n{text}{marks[1]}{after}", encoding="utf-8")


def document(data: bytes, path: str) -> Document:
    """Make a document of bytes."""
    return Document(Path(path).stem, path, Fingerprint(f"/{path}", 0, len(data)), data, "", npl=False)
