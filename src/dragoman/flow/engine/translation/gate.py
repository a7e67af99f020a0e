"""Which call begins next in this process, and when: one gate for all jobs of all its workers.

Bounds are separate: calls at once of the process, of a workspace, of a provider's account and of an endpoint
(the server behind it), and an account's requests a second and tokens a minute. Those who wait take turns by
job, so that a large job does not hold up a small one; one that may not go is passed over, and keeps its turn.
Promises that no minute and no second sees more than its bound. Tokens are what callers say they expect. What
other processes do is unknown here: a provider that says stop is heard through the pauses in the database.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType

from dragoman.kernel import metrics
from dragoman.kernel.clock import Clock, SystemClock

_BURST_SHARE = 1 / 6  # of a minute's tokens may go at once
_INSTANT_SECONDS = 1e-6  # shorter waits are the rounding of clocks


@dataclass(frozen=True, slots=True)
class Rates:
    """How an account may be called; None is unbounded."""

    requests_per_second: float | None = None
    tokens_per_minute: int | None = None
    calls_at_once: int | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who wants to call whom. `account` is `name@endpoint`, or a name alone."""

    job: str
    workspace: str
    provider: str
    account: str

    @property
    def endpoint(self) -> str:
        """The server that the account is at."""
        return self.account.rpartition("@")[2]


@dataclass(slots=True)
class _Bucket:
    """Fills at a steady rate up to `size`; what is taken at once, and then over any time, stays in bounds."""

    size: float
    per_second: float
    level: float
    at: float

    def wait_seconds(self, want: float, now: float) -> float:
        """How long until so much is there. More than fits counts as all that fits."""
        self.level = min(self.size, self.level + (now - self.at) * self.per_second)
        self.at = now
        wait_seconds = (min(want, self.size) - self.level) / self.per_second
        return wait_seconds if wait_seconds > _INSTANT_SECONDS else 0.0

    def take(self, want: float) -> None:
        """Take it, after `wait_seconds` was 0."""
        self.level -= min(want, self.size)


@dataclass(slots=True)
class _Pace:
    """The buckets of one account."""

    requests: _Bucket | None = None
    tokens: _Bucket | None = None

    def wait_seconds(self, tokens: int, now: float) -> float:
        waits = [self.requests.wait_seconds(1, now) if self.requests else 0.0]
        waits.append(self.tokens.wait_seconds(tokens, now) if self.tokens else 0.0)
        return max(waits)

    def take(self, tokens: int) -> None:
        if self.requests:
            self.requests.take(1)
        if self.tokens:
            self.tokens.take(tokens)


@dataclass(slots=True, eq=False)
class _Waiting:
    caller: Caller
    tokens: int
    wanted: Callable[[], bool]
    turn: asyncio.Future[bool] = field(repr=False)
    """True with a place; False where nothing is to begin."""


class Place:
    """A place at the gate, or none (it is false then). It can be given up before its block ends."""

    def __init__(self, leave: Callable[[], None] | None) -> None:
        self._leave = leave

    def __bool__(self) -> bool:
        return self._leave is not None

    def leave(self) -> None:
        """Let somebody else call: the provider has answered, the rest is ours. Once is enough."""
        leave, self._leave = self._leave, None
        if leave is not None:
            leave()


class Gate:
    """Hands out places. `rates` are those of provider names."""

    def __init__(
        self,
        calls_per_process: int,
        *,
        clock: Clock | None = None,
        calls_per_workspace: int | None = None,
        calls_per_endpoint: int | None = None,
        rates: Mapping[str, Rates] = MappingProxyType({}),
    ) -> None:
        self._clock = clock or SystemClock()
        self._per_process = calls_per_process
        self._per_workspace = calls_per_workspace or calls_per_process
        self._per_endpoint = calls_per_endpoint or calls_per_process
        self._rates = rates
        self._under_way: Counter[tuple[str, str]] = Counter()
        self._paces: dict[str, _Pace] = {}
        self._jobs: dict[str, deque[_Waiting]] = {}
        """Those who wait, by job; the jobs in the order of their turns."""
        self._timer: asyncio.TimerHandle | None = None
        self.is_closed = False
        """Whether the process is to stop: what waits for a place begins nothing any more."""

    def close(self) -> None:
        """Let no further call begin; those under way go on to their end."""
        self.is_closed = True
        self._hand_out()

    @asynccontextmanager
    async def slot(
        self, caller: Caller, tokens: int = 0, wanted: Callable[[], bool] = lambda: True
    ) -> AsyncIterator[Place]:
        """Wait for a place and keep it. None is given once nothing is to begin (`wanted`)."""
        began = self._clock.monotonic()
        if not await self._enter(caller, tokens, wanted):
            yield Place(None)
            return
        with ExitStack() as kept:
            kept.callback(self._leave, caller)
            kept.enter_context(metrics.calling(self._clock.monotonic() - began))
            yield Place(kept.close)

    async def turn(self, caller: Caller) -> None:
        """Wait until one more request of a call that has its place may go, such as a look at its work."""
        while True:
            now = self._clock.monotonic()
            requests = self._pace(caller, now).requests
            wait_seconds = requests.wait_seconds(1, now) if requests else 0.0
            if not wait_seconds:
                break
            await asyncio.sleep(wait_seconds)
        if requests:
            requests.take(1)

    async def _enter(self, caller: Caller, tokens: int, wanted: Callable[[], bool]) -> bool:
        waiting = _Waiting(caller, tokens, wanted, asyncio.get_running_loop().create_future())
        self._jobs.setdefault(caller.job, deque()).append(waiting)
        self._hand_out()
        try:
            return await waiting.turn
        except asyncio.CancelledError:
            if waiting.turn.cancelled():
                self._forget(waiting)
            elif waiting.turn.result():
                self._leave(caller)
            raise

    def _leave(self, caller: Caller) -> None:
        for name in _names(caller):
            self._under_way[name] -= 1
            if not self._under_way[name]:
                del self._under_way[name]
        self._hand_out()

    def _forget(self, waiting: _Waiting) -> None:
        mine = self._jobs.get(waiting.caller.job)
        if mine is not None and waiting in mine:
            mine.remove(waiting)
            if not mine:
                del self._jobs[waiting.caller.job]

    def _hand_out(self) -> None:
        """Give places as long as somebody may go, turn by turn; come back when the first wait is over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._clock.monotonic()
        soonest: float | None = None
        served = True
        while served:
            served, soonest = False, None
            for job in list(self._jobs):
                wait_seconds = self._try(job, now)
                served = served or wait_seconds == 0
                if wait_seconds:
                    soonest = min(wait_seconds, soonest or wait_seconds)
        if soonest is not None:
            self._timer = asyncio.get_running_loop().call_later(soonest, self._hand_out)

    def _try(self, job: str, now: float) -> float | None:
        """Serve a job's next call: 0 if it was, else the seconds until time allows it, None for no place."""
        waiting = self._jobs[job][0]
        if not self.is_closed and waiting.wanted():
            if not self._has_room(waiting.caller):
                return None
            pace = self._pace(waiting.caller, now)
            wait_seconds = pace.wait_seconds(waiting.tokens, now)
            if wait_seconds:
                return wait_seconds
            pace.take(waiting.tokens)
            self._under_way.update(_names(waiting.caller))
            self._grant(job, waiting, placed=True)
        else:
            self._grant(job, waiting, placed=False)
        return 0.0

    def _grant(self, job: str, waiting: _Waiting, *, placed: bool) -> None:
        mine = self._jobs.pop(job)  # its turn is over: the others of this job come after everybody else
        mine.popleft()
        if mine:
            self._jobs[job] = mine
        waiting.turn.set_result(placed)

    def _has_room(self, caller: Caller) -> bool:
        process, workspace, account, endpoint = _names(caller)
        at_once = self._rates_of(caller).calls_at_once
        return (
            self._under_way[process] < self._per_process
            and self._under_way[workspace] < self._per_workspace
            and self._under_way[endpoint] < self._per_endpoint
            and (at_once is None or self._under_way[account] < at_once)
        )

    def _rates_of(self, caller: Caller) -> Rates:
        return self._rates.get(caller.provider, _UNBOUNDED)

    def _pace(self, caller: Caller, now: float) -> _Pace:
        pace = self._paces.get(caller.account)
        if pace is None:
            pace = self._paces[caller.account] = _paced(self._rates_of(caller), now)
        return pace


_UNBOUNDED = Rates()


def _names(caller: Caller) -> tuple[tuple[str, str], ...]:
    return (
        ("process", ""),
        ("workspace", caller.workspace),
        ("account", caller.account),
        ("endpoint", caller.endpoint),
    )


def _paced(rates: Rates, now: float) -> _Pace:
    """Full buckets. Requests are spaced; of a minute's tokens a part may go at once, the rest follows."""
    pace = _Pace()
    if rates.requests_per_second is not None:
        pace.requests = _Bucket(1.0, rates.requests_per_second, 1.0, now)
    if rates.tokens_per_minute is not None:
        burst = rates.tokens_per_minute * _BURST_SHARE
        pace.tokens = _Bucket(burst, (rates.tokens_per_minute - burst) / 60, burst, now)
    return pace
