"""`dragoman` that kills itself with kill -9 at a named moment of its n-th paid call.

    python -m tests.acceptance.dying before-commit 2 translate docs --to fr …

The moments: `before-commit` when the answer is there and its transaction has not been committed,
`after-commit` when what the answer brought stands in the database and the next call has not begun. Nothing of
the product knows of this: the two functions that the process passes through anyway are watched from outside.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from dragoman.__main__ import main
from dragoman.flow.engine.translation.calls import Calls
from dragoman.store.acts import calling

MOMENTS = ("before-commit", "after-commit")


def die() -> None:
    """As the machine would end it."""
    os.kill(os.getpid(), signal.SIGKILL)


def dying_before_commit(count: int) -> None:
    """Die inside the transaction that settles the n-th call."""
    settle, calls = calling.settle_call, iter(range(1, count))

    def settling(*given: Any) -> Any:
        settled = settle(*given)
        if next(calls, None) is None:
            die()
        return settled

    calling.settle_call = settling  # type: ignore[assignment]


def dying_after_commit(count: int) -> None:
    """Die when the n-th call has been closed."""
    store: Callable[..., Awaitable[Any]] = Calls._store
    calls = iter(range(1, count))

    async def storing(*given: Any) -> Any:
        stored = await store(*given)
        if next(calls, None) is None:
            die()
        return stored

    Calls._store = storing  # type: ignore[assignment, method-assign]


if __name__ == "__main__":
    moment, number = sys.argv[1], int(sys.argv[2])
    (dying_before_commit if moment == MOMENTS[0] else dying_after_commit)(number)
    sys.argv[1:] = sys.argv[3:]
    main()
