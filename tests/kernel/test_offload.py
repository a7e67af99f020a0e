"""Work beside the loop: the same answers in threads and in place."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
import structlog

from dragoman.kernel import journal
from dragoman.kernel.offload import InlineOffload, Offload, ThreadOffload

PATIENCE_SECONDS = 30


@pytest.fixture(params=["threads", "inline"])
def offload(request: pytest.FixtureRequest) -> Iterator[Offload]:
    made: Offload = ThreadOffload() if request.param == "threads" else InlineOffload()
    yield made
    made.close()


def joined(left: str, right: str, between: str = "") -> str:
    return left + between + right


def refuse() -> None:
    raise KeyError("no such field")


def bound_names() -> list[str]:
    return sorted(structlog.contextvars.get_contextvars())


def test_the_answer_is_the_functions_own(offload: Offload) -> None:
    assert asyncio.run(offload.call(joined, "a", "b", between="-")) == "a-b"


def test_what_the_function_raises_is_raised_to_the_caller(offload: Offload) -> None:
    with pytest.raises(KeyError, match="no such field"):
        asyncio.run(offload.call(refuse))


def test_what_is_bound_for_the_journal_is_bound_in_the_work(offload: Offload) -> None:
    async def ask() -> list[str]:
        with journal.about(manifest="m", fence=2):
            return await offload.call(bound_names)

    assert asyncio.run(ask()) == ["fence", "manifest"]


def test_the_loop_turns_while_a_thread_works() -> None:
    """The work ends once the loop has run something else; were the loop held, it would lose its patience."""
    pool = ThreadOffload(threads=1)
    released = threading.Event()

    async def ask() -> bool:
        work = asyncio.ensure_future(pool.call(released.wait, PATIENCE_SECONDS))
        await asyncio.sleep(0)
        released.set()
        return await work

    assert asyncio.run(ask())
    pool.close()


def test_inline_work_is_done_before_anything_else_runs() -> None:
    """The simulation counts on it: no thread and no switch point."""
    order: list[str] = []

    async def ask() -> int:
        asyncio.get_running_loop().call_soon(order.append, "loop")
        place = await InlineOffload().call(threading.get_ident)
        order.append("work")
        return place

    assert asyncio.run(ask()) == threading.get_ident()
    assert order[0] == "work"


def test_a_closed_pool_takes_nothing_more() -> None:
    pool = ThreadOffload()
    pool.close()
    with pytest.raises(RuntimeError):
        asyncio.run(pool.call(joined, "a", "b"))
