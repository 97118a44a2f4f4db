"""The token counter is exact if a vocabulary is present, and the same for a whole answer."""

import base64
import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from npl_index import api, section_index
from npl_index.tokens import exact
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import Caller
from npl_mcp.cli.commands.installation import examine
from npl_mcp.cli.transports.connecting import InProcess
from npl_mcp.config.settings import Settings
from tests.conftest import Call
from tests.npl_index.tokens.counters import SMALL, small_ranks

PUBLISHED = b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in small_ranks().items())
NAMES = ("o200k_base.tiktoken", "o200k_base.tiktoken.gz")


@pytest.fixture(autouse=True)
def small_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a small vocabulary stand for the published one."""
    address, _ = exact._FILES["o200k_base"]
    monkeypatch.setitem(exact._FILES, "o200k_base", (address, hashlib.sha256(PUBLISHED).hexdigest()))


def put(folder: Path, name: str = NAMES[0], content: bytes = PUBLISHED) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return folder / name


@pytest.mark.parametrize("name", NAMES)
def test_a_server_counts_exactly_with_what_lies_in_the_data_folder(
    name: str, settings: Settings, call: Call
) -> None:
    """A vocabulary in the data folder needs no setting."""
    put(settings.data_folder / "vocabularies", name)
    answer = call("npl_section_index", file="plants/roses.md")["data"]
    text = (settings.roots[0] / "plants" / "roses.md").read_text(encoding="utf-8")
    assert answer["token_counter"] == "tiktoken:o200k_base"
    assert answer["total_tokens"] == SMALL["o200k_base"].count(text.strip())


def test_a_command_without_a_server_counts_exactly(settings: Settings, tmp_path: Path) -> None:
    """A command loads the vocabulary at once; a server loads it in the background."""
    put(tmp_path / "cache")
    given = replace(settings, vocabulary_folders=(tmp_path / "cache",), warm_up=True)
    command = InProcess(given)
    answer = command.call("npl_section_index", {"file": "guide.md"})
    command.close()
    assert answer["data"]["token_counter"] == "tiktoken:o200k_base"


@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"])
def test_settings_and_library_look_where_tiktoken_does(
    variable: str, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both read the folder of tiktoken's variable."""
    put(tmp_path / "cache", hashlib.sha1(exact._FILES["o200k_base"][0].encode()).hexdigest())
    monkeypatch.setenv(variable, str(tmp_path / "cache"))
    assert tmp_path / "cache" in Settings.from_env().vocabulary_folders
    api._default_counter.cache_clear()
    try:
        (node,) = section_index(docs / "plants" / "roses.md")
    finally:
        api._default_counter.cache_clear()
    text = (docs / "plants" / "roses.md").read_text(encoding="utf-8")
    assert node.token_count == SMALL["o200k_base"].count(text.strip())


def test_a_call_has_one_counter(settings: Settings) -> None:
    """A call that began with the estimator ends with it; the next one counts exactly."""
    put(settings.data_folder / "vocabularies")
    app = App(replace(settings, warm_up=True))
    call = Caller().context(app)
    names = [call.counter.name]
    app.state.load_counter()
    names += [call.counter.name, Caller().context(app).counter.name]
    app.close()
    assert names == ["estimate:o200k_base", "estimate:o200k_base", "tiktoken:o200k_base"]


def vocabulary(settings: Settings) -> tuple[str, str, str | None]:
    """Return the doctor's finding about the vocabulary."""
    (finding,) = (finding for finding in examine(settings) if finding.name == "vocabulary")
    return finding.state, finding.text, finding.fix


def test_the_doctor_names_the_counter(settings: Settings, tmp_path: Path) -> None:
    """The doctor says how to get the exact counter, with and without a network, and names a damaged file."""
    folder = settings.data_folder / "vocabularies"
    state, text, fix = vocabulary(settings)
    assert (state, text) == ("ok", "estimate:o200k_base: tokens are estimated")
    assert fix is not None
    assert all(part in fix for part in (" install ", "npl-mcp[exact]", str(folder), NAMES[0]))
    damaged = put(tmp_path / "cache", content=PUBLISHED[:-5])
    wrong = replace(settings, vocabulary_folders=(tmp_path / "cache",))
    state, text, _ = vocabulary(wrong)
    assert (state, str(damaged) in text) == ("warning", True)
    assert App(wrong).counter.name == "estimate:o200k_base"
    put(folder)
    assert vocabulary(wrong) == ("ok", "tiktoken:o200k_base: tokens are counted exactly", None)
