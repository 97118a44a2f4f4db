"""A request for the sections of a task: its parts, and their limits."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from npl_index.answer.ledger import MAX_TOKENS
from npl_index.errors import InvalidRequestError, MissingRequestError
from npl_index.selectors.filters import ANY, SectionFilter
from npl_index.selectors.grammar import Selector, compile_selector

_PRINTED = re.compile(r'("(?:[^"\\]|\\.)*") [\d,]+\b.*', re.DOTALL)

MAX_TOPICS = 64
MAX_TOPIC_LENGTH = 200
MAX_SELECTORS = 64
MAX_EXCLUDED = 256
"""Maximum topics, characters of a topic, selectors, and selectors of excluded sections."""


@dataclass(frozen=True, slots=True)
class TailorRequest:
    """A caller's request.

    :param context: task or agent description; its keywords choose sections.
    :param topics: concepts to match against headings and text.
    :param selectors: sections to include at any score.
    :param exclude: sections that the caller already has.
    :param token_budget: maximum tokens of the whole answer, as sent; ``None`` for no limit.
    :param depth: included levels below a selected section: 0 for its own text, 1 also for its direct
        children, and so on; ``None`` for all.
    :param explain: report every hit and the parts of its score.
    :param among: conditions of ranked sections; selected ones need not meet them.
    :param reading: selectors come with a question and without a budget: their sections are read for it.
    :param is_open: the caller gave no budget, so a selector with many long matches lists them.
    """

    context: str = ""
    topics: tuple[str, ...] = ()
    selectors: tuple[Selector, ...] = ()
    exclude: tuple[Selector, ...] = ()
    token_budget: int | None = None
    depth: int | None = None
    explain: bool = False
    among: SectionFilter = ANY
    reading: bool = False
    is_open: bool = False

    @classmethod
    def parse(
        cls,
        context: str | None = None,
        topics: Sequence[str] | None = None,
        selectors: Sequence[str] | None = None,
        token_budget: int | None = None,
        default_budget: int = 0,
        *,
        exclude: Sequence[str] | None = None,
        depth: int | None = None,
        explain: bool = False,
        among: SectionFilter = ANY,
    ) -> TailorRequest:
        """Check a request and compile its selectors.

        :param token_budget: 0 for no limit.
        :param among: conditions of ranked sections.
        :param default_budget: budget for a context or topics alone without one; 0 for no limit.
        :raises MissingRequestError: there is no context, topic or selector.
        :raises InvalidRequestError: too many or too long parts, or a negative number.
        :raises SelectorSyntaxError: a selector cannot be parsed.
        """
        wanted = tuple(topic.strip() for topic in topics or () if topic.strip())
        written = [text for text in selectors or () if text.strip()]
        excluded = [text for text in exclude or () if text.strip()]
        is_question = bool(wanted or (context and context.strip()))
        if not is_question and not written:
            raise MissingRequestError(
                "there is no context, topic or selector",
                parameter="context",
                hint='give context, topics or selectors, e.g. context="review NPL fences"',
            )
        for name, values, most in (
            ("topics", wanted, MAX_TOPICS),
            ("selectors", written, MAX_SELECTORS),
            ("exclude", excluded, MAX_EXCLUDED),
        ):
            problem = f"{len(values)} {name} are too many"
            _check(len(values) <= most, problem, name, f"give at most {most}")
        for topic in wanted:
            problem = f"the topic {topic[:40]!r}… has {len(topic):,} characters"
            hint = f"use at most {MAX_TOPIC_LENGTH}; longer text belongs in context"
            _check(len(topic) <= MAX_TOPIC_LENGTH, problem, "topics", hint)
        for name, value in (("token_budget", token_budget), ("depth", depth)):
            below = min(0, max(value or 0, -MAX_TOKENS))  # Python refuses to write thousands of digits
            _check(not below, f"{name} is {below}", name, "use 0 or more, or leave it out")
        is_brief = token_budget is None and default_budget > 0 and is_question
        return cls(
            context=context or "",
            topics=wanted,
            selectors=tuple(compile_selector(_unprinted(text)) for text in written),
            exclude=tuple(map(compile_selector, excluded)),
            token_budget=(default_budget if is_brief and not written else token_budget) or None,
            depth=depth,
            explain=explain,
            among=among,
            reading=is_brief and bool(written),
            is_open=token_budget is None,
        )


def _check(is_valid: bool, problem: str, parameter: str, hint: str) -> None:
    if not is_valid:
        raise InvalidRequestError(problem, parameter=parameter, hint=hint)


def _unprinted(text: str) -> str:
    """Return the selector of a pointer as answers print it, with its size and its matching line."""
    printed = _PRINTED.fullmatch(text.strip())
    return json.loads(printed[1]) if printed else text
