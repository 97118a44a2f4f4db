"""The exact count against tiktoken, and the places of vocabularies."""

import base64
import gzip
import hashlib
import socket
from pathlib import Path

import pytest
from hypothesis import example, given

from npl_index.choices import VOCABULARIES
from npl_index.tokens import exact
from npl_index.tokens.exact import load_vocabulary
from tests.npl_index.tokens.counters import (
    BASES,
    ENCODINGS,
    SMALL,
    TRUTH,
    case,
    constructed,
    small_ranks,
    texts,
)

ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"


def published_name(address: str) -> str:
    """Return the name under which tiktoken caches a file."""
    return hashlib.sha1(address.encode()).hexdigest()


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@given(text=texts)
@example("I'LL don't DON'Tx 12345 x1234 a\u0301b ǅx ªb .\r\n\r\n//\n \t\n\u00a0x  ")
def test_texts_are_cut_as_tiktoken_does(vocabulary: str, text: str) -> None:
    """With the same ranks our encoding finds the tokens that tiktoken's own finds."""
    ours = SMALL[vocabulary.replace("harmony", "base")]
    assert ours.count(text) == len(TIKTOKEN[vocabulary].encode_ordinary(text))


TIKTOKEN = {vocabulary: constructed(vocabulary)[0] for vocabulary in VOCABULARIES}


@pytest.mark.parametrize("vocabulary", BASES)
def test_the_files_are_those_that_tiktoken_asks_for(vocabulary: str) -> None:
    """Address and checksum are tiktoken's; a new version of it that expects others fails here."""
    assert constructed(vocabulary)[1] == [exact._FILES[vocabulary]]


@pytest.mark.parametrize("vocabulary", BASES)
def test_long_texts_are_counted_exactly(vocabulary: str) -> None:
    """A long text that has places to cut at counts as it does in a single call to tiktoken."""
    text = "".join(case(name) + "\n" * (1 + i % 3) for i, name in enumerate(list(TRUTH) * 30))
    assert len(text) > 200_000
    assert SMALL[vocabulary].count(text) == len(ENCODINGS[vocabulary].encode_ordinary(text))


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails the test at the first attempt to open a connection."""

    def refuse(*_: object, **__: object) -> None:
        pytest.fail("a connection was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_missing_vocabulary_is_not_fetched(
    vocabulary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a file there is no exact counter, no request and no new file."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert load_vocabulary(vocabulary, [tmp_path, tmp_path / "nowhere"]) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("no_network")
def test_damaged_vocabulary_is_passed_over_and_kept(tmp_path: Path) -> None:
    """A file with the right name and another content is neither used nor deleted."""
    damaged = tmp_path / published_name(ADDRESS)
    damaged.write_bytes(b"YQ== 0\n")
    assert load_vocabulary("o200k_base", [tmp_path]) is None
    assert damaged.read_bytes() == b"YQ== 0\n"


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("vocabulary", ["o200k_base", "o200k_harmony"])
def test_vocabulary_is_read_from_the_folder_that_has_it(
    vocabulary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with the right name and checksum makes an exact counter, wherever among the folders it lies."""
    content = b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in small_ranks().items())
    monkeypatch.setitem(exact._FILES, "o200k_base", (ADDRESS, hashlib.sha256(content).hexdigest()))
    (tmp_path / published_name(ADDRESS)).write_bytes(content)
    counter = load_vocabulary(vocabulary, [tmp_path / "nowhere", tmp_path])
    assert counter is not None
    assert (counter.name, counter.margin) == (f"tiktoken:{vocabulary}", 0)
    assert counter.count(case("npl-agent")) == SMALL["o200k_base"].count(case("npl-agent"))


@pytest.mark.usefixtures("no_network")
def test_a_package_may_carry_the_vocabulary_compressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts if what is in it is the published file; what cannot be unpacked is passed over."""
    content = b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in small_ranks().items())
    monkeypatch.setitem(exact._FILES, "o200k_base", (ADDRESS, hashlib.sha256(content).hexdigest()))
    folders = [tmp_path / name for name in ("broken", "other", "right")]
    packed = (content, gzip.compress(b"YQ== 0\n"), gzip.compress(content))
    for folder, data in zip(folders, packed, strict=True):
        folder.mkdir()
        (folder / "o200k_base.tiktoken.gz").write_bytes(data)
    assert load_vocabulary("o200k_base", folders[:2]) is None
    counter = load_vocabulary("o200k_harmony", folders)
    assert counter is not None
    assert counter.count(case("npl-agent")) == SMALL["o200k_base"].count(case("npl-agent"))
