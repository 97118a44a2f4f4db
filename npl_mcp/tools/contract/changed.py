"""Report in an answer of the sections that have changed since its caller read them."""

from __future__ import annotations

from functools import partial

from npl_index.answer.marks import change_marks
from npl_mcp.app.app import App
from npl_mcp.app.reading import ReadSection

MAX_TOKENS = 60
"""Maximum tokens of these lines; at most a quarter of a budget is used for them."""


def report_changes(app: App, budget: int | None = None) -> tuple[str, ...] | None:
    """Return the selectors of changed sections that fit into an answer; later answers report the others.

    :param budget: tokens of the whole answer.
    """
    if app.reader is None:
        return None
    most = MAX_TOKENS if budget is None else min(MAX_TOKENS, budget // 4)
    reported: list[ReadSection] = []
    for change in app.reader.changes(app):
        marks = change_marks([*(section.selector for section in reported), change.selector])
        if app.counter.upper_bound(app.counter.count(marks)) <= most:
            reported.append(change)
    app.when_delivered(partial(app.reader.remember, reported))
    return tuple(section.selector for section in reported) or None
