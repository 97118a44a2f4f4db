"""Pages, their data and their files are compressed for those who accept it."""

import gzip
from pathlib import Path

import pytest

from tests.npl_mcp.http.http_server import request, serving

PACKED = {"Accept-Encoding": "gzip"}


@pytest.mark.parametrize(
    "path", ["/ask?context=plums&budget=900", "/ask.json?context=plums", "/static/npl.css"]
)
def test_what_is_long_is_sent_short(tmp_path: Path, path: str) -> None:
    plums = "".join(f"## Plum {number}\n\nA plum.\n\n" for number in range(99))
    with serving(tmp_path, files={"docs/plums.md": f"# Plums\n\n{plums}"}) as server:
        plain, packed = request(server, "GET", path), request(server, "GET", path, headers=PACKED)
        assert "content-encoding" not in plain.headers
        assert packed.headers["content-encoding"] == "gzip"
        assert len(gzip.decompress(packed.body)) == len(plain.body)
        assert 3 * len(packed.body) < len(plain.body)
        news = request(server, "HEAD", "/worklog-news?worklog=s&since=0", headers=PACKED)
        assert "content-encoding" not in news.headers
