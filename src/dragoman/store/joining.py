"""Acts that many callers ask for at the same moment, carried out as one: one transaction, and each statement
once for all of them.

Promises that nobody pays for another: where an act over several fails, each is carried out alone. What comes
while one transaction is under way goes into the next.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

from dragoman.kernel import limits
from dragoman.kernel.errors import StoreError
from dragoman.store.transaction import Tx

P = ParamSpec("P")
A = TypeVar("A")
T = TypeVar("T")


class Joined(Generic[P, T]):
    """An act over several askings. Called for one, it is an act like any other."""

    def __init__(self, ask: Callable[P, Any], act: Callable[[Tx, Sequence[Any]], Sequence[T]]) -> None:
        self.ask = ask
        self.act = act
        update_wrapper(self, act)

    def __call__(self, tx: Tx, /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Carry it out for one."""
        return self.act(tx, [self.ask(*args, **kwargs)])[0]


def together(
    ask: Callable[P, A],
) -> Callable[[Callable[[Tx, Sequence[A]], Sequence[T]]], Joined[P, T]]:
    """Let `act(tx, askings)` serve all who ask at once: `database.run(act, *args)` asks `ask(*args)`.

    The act answers in the order of the askings, and locks in an order of its own.
    """

    def joined(act: Callable[[Tx, Sequence[A]], Sequence[T]]) -> Joined[P, T]:
        return Joined(ask, act)

    return joined


class Joint:
    """The lines of those who wait for each act. `run` carries one transaction out."""

    def __init__(self, run: Callable[..., Awaitable[Any]]) -> None:
        self._run = run
        self._lines: dict[Callable[..., Any], deque[tuple[Any, asyncio.Future[Any]]]] = {}
        self._served: set[asyncio.Task[None]] = set()

    async def run(self, act: Callable[..., Any], asking: Any) -> Any:
        """The answer to one asking, once it is committed. Raises what the act raises for it alone."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if act in self._lines:
            self._lines[act].append((asking, answer))
        else:
            self._lines[act] = deque([(asking, answer)])
            task = asyncio.create_task(self._serve(act))
            self._served.add(task)
            task.add_done_callback(self._served.discard)
        return await answer

    async def _serve(self, act: Callable[..., Any]) -> None:
        """Work a line off."""
        line = self._lines[act]
        try:
            while line:
                group = [line.popleft() for _ in range(min(len(line), limits.JOINED_MAX))]
                await self._answer(act, [one for one in group if not one[1].cancelled()])
        finally:
            del self._lines[act]

    async def _answer(
        self, act: Callable[..., Any], group: Sequence[tuple[Any, asyncio.Future[Any]]]
    ) -> None:
        try:
            answers = await self._run(act, [asking for asking, _ in group]) if group else []
        except BaseException as error:  # whoever waits is told, whatever it is
            if len(group) > 1 and isinstance(error, Exception) and not isinstance(error, StoreError):
                for one in group:
                    await self._answer(act, [one])
                return
            for _, answer in group:
                if not answer.done():
                    answer.set_exception(error)
            if isinstance(error, asyncio.CancelledError):
                raise
            return
        for (_, answer), given in zip(group, answers, strict=True):
            if not answer.done():
                answer.set_result(given)
