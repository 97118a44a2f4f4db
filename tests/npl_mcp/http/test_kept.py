"""One answer of the database serves many requests."""

import threading
from typing import Any

import anyio
import pytest

from npl_mcp.http.policy import Refreshed


class Slow:
    """An answer that comes when it is let, as a number or a failure."""

    def __init__(self) -> None:
        self.asked = 0
        self.fails = False
        self.may_answer = threading.Event()

    def __call__(self) -> int:
        self.asked += 1
        self.may_answer.wait(30)
        if self.fails:
            raise OSError("gone")
        return self.asked


async def together(kept: Refreshed[int], slow: Slow, many: int) -> list[Any]:
    parts: list[Any] = []

    async def ask() -> None:
        try:
            parts.append(await kept.get())
        except OSError as error:
            parts.append(str(error))

    async with anyio.create_task_group() as group:
        for _ in range(many):
            group.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        slow.may_answer.set()
    return parts


@pytest.mark.parametrize("fails", [False, True])
async def test_callers_that_come_meanwhile_get_the_same(fails: bool) -> None:
    """One request serves all of them; a failure is not kept."""
    slow = Slow()
    slow.fails = fails
    kept = Refreshed(slow, 3600)

    assert await together(kept, slow, 50) == ["gone" if fails else 1] * 50
    assert slow.asked == 1
    slow.fails = False
    assert await kept.get() == (2 if fails else 1)


async def test_an_old_one_is_asked_for_again() -> None:
    """With a lifetime of zero, each call asks for it."""
    slow = Slow()
    slow.may_answer.set()
    kept = Refreshed(slow, 0)

    assert [await kept.get(), await kept.get()] == [1, 2]


async def test_a_caller_that_goes_away_takes_no_answer_from_others() -> None:
    """The others get the answer to the same question after one caller gives up."""
    slow = Slow()
    kept = Refreshed(slow, 3600)

    with anyio.move_on_after(0.05) as limit:
        await kept.get()
    assert limit.cancelled_caught
    assert await together(kept, slow, 2) == [1, 1]
