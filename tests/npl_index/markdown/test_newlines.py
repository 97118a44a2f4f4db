"""Line ends."""

from __future__ import annotations

import pytest

from npl_index.markdown.newlines import with_line_feeds


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("a\nb", "a\nb"), ("a\r\nb\r\n", "a\nb\n"), ("a\rb\r", "a\nb\n"), ("a\r\r\n\nb", "a\n\n\nb"), ("", "")],
)
def test_every_line_end_becomes_a_line_feed(text: str, wanted: str) -> None:
    """As CommonMark counts line endings (https://spec.commonmark.org/0.31.2/#line-ending)."""
    assert with_line_feeds(text) == wanted
