"""Who may call next: rates that hold in every window, separate caps, turns by job. Time is virtual."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.flow.engine.translation.gate import Caller, Gate, Rates
from tests.simulation.virtual import HostClock, VirtualLoop


class Seen:
    """Calls that went through a gate: when each began, and the most at a time by name."""

    def __init__(self) -> None:
        self.began: list[tuple[float, Caller]] = []
        self.most: Counter[str] = Counter()
        self._now: Counter[str] = Counter()

    async def call(self, gate: Gate, caller: Caller, tokens: int = 0, seconds: float = 1.0) -> bool:
        async with gate.slot(caller, tokens) as placed:
            if not placed:
                return False
            names = (f"workspace {caller.workspace}", f"account {caller.account}", caller.endpoint, "all")
            self.began.append((asyncio.get_running_loop().time(), caller))
            self._now.update(names)
            for name in names:
                self.most[name] = max(self.most[name], self._now[name])
            await asyncio.sleep(seconds)
            self._now.subtract(names)
            return True

    def most_within(self, window_seconds: float, weigh: Callable[[int], float] = lambda _: 1.0) -> float:
        """The most that began in any window of this length, its end left out."""
        times = [at for at, _ in self.began]
        return max(
            sum(weigh(place) for place, at in enumerate(times) if start <= at < start + window_seconds - 1e-4)
            for start in times
        )


def caller(job: str = "j1", workspace: str = "w1", provider: str = "p", endpoint: str = "host:1") -> Caller:
    return Caller(job, workspace, provider, f"{provider}@{endpoint}")


def in_virtual_time(act: Callable[[HostClock], Coroutine[Any, Any, None]]) -> None:
    loop = VirtualLoop()
    try:
        loop.run_until_complete(act(HostClock(loop)))
    finally:
        loop.close()


@pytest.mark.parametrize("per_second", [10.0, 3.0, 0.5])
def test_no_second_sees_more_requests_than_its_bound(per_second: float) -> None:
    """[J-062, J-066]: one gate for all jobs of an account, spaced evenly from the first call on."""

    async def act(clock: HostClock) -> None:
        gate, seen = Gate(64, clock=clock, rates={"p": Rates(requests_per_second=per_second)}), Seen()
        await asyncio.gather(*(seen.call(gate, caller(f"j{n % 4}"), seconds=0.01) for n in range(40)))
        assert seen.most_within(max(1.0, 1 / per_second)) <= max(1, per_second)
        assert seen.began[-1][0] == pytest.approx(39 / per_second)  # and no slower than allowed

    in_virtual_time(act)


@settings(max_examples=25, deadline=None)
@given(sizes=st.lists(st.integers(1, 900), min_size=5, max_size=60), per_minute=st.integers(600, 3000))
def test_no_minute_sees_more_tokens_than_its_bound(sizes: list[int], per_minute: int) -> None:
    """A call larger than the burst goes once the bucket is full, and counts as that."""

    async def act(clock: HostClock) -> None:
        gate, seen = Gate(64, clock=clock, rates={"p": Rates(tokens_per_minute=per_minute)}), Seen()
        small = [min(size, per_minute // 6) for size in sizes]
        await asyncio.gather(*(seen.call(gate, caller(), size, 0.01) for size in small))
        assert seen.most_within(60, lambda place: small[place]) <= per_minute
        assert len(seen.began) == len(sizes)

    in_virtual_time(act)


def test_a_call_larger_than_any_burst_still_goes() -> None:
    async def act(clock: HostClock) -> None:
        gate, seen = Gate(64, clock=clock, rates={"p": Rates(tokens_per_minute=600)}), Seen()
        await asyncio.gather(*(seen.call(gate, caller(), 100_000, 0.01) for _ in range(3)))
        assert len(seen.began) == 3
        assert seen.began[1][0] == pytest.approx(12)  # 100 of the minute's 600 come back in 12 seconds

    in_virtual_time(act)


def test_caps_of_workspace_account_and_endpoint_are_three_limits() -> None:
    """Each binds by itself: the process has room for 64, and none of the others is reached through it."""

    async def act(clock: HostClock) -> None:
        gate = Gate(
            64,
            clock=clock,
            calls_per_workspace=5,
            calls_per_endpoint=7,
            rates={"slow": Rates(calls_at_once=2), "quick": Rates()},
        )
        seen = Seen()
        callers = [
            caller(f"{workspace}-{provider}", workspace, provider, endpoint)
            for workspace in ("w1", "w2", "w3")
            for provider, endpoint in (("slow", "one:1"), ("quick", "one:1"), ("quick", "two:2"))
        ]
        await asyncio.gather(*(seen.call(gate, who) for who in callers for _ in range(20)))
        assert {seen.most[f"workspace {name}"] for name in ("w1", "w2", "w3")} == {5}
        assert seen.most["account slow@one:1"] == 2
        assert (seen.most["one:1"], seen.most["two:2"]) == (7, 7)
        assert len(seen.began) == 180

    in_virtual_time(act)


def test_a_small_job_does_not_wait_behind_a_large_one() -> None:
    """Turns by job: three calls beside a thousand are through after six calls."""

    async def act(clock: HostClock) -> None:
        gate, seen = Gate(64, clock=clock, rates={"p": Rates(requests_per_second=1)}), Seen()
        large = [asyncio.ensure_future(seen.call(gate, caller("large"), seconds=0.1)) for _ in range(100)]
        await asyncio.sleep(10)
        await asyncio.gather(*(seen.call(gate, caller("small"), seconds=0.1) for _ in range(3)))
        assert asyncio.get_running_loop().time() <= 10 + 6 + 1
        await asyncio.gather(*large)

    in_virtual_time(act)


def test_a_capped_account_holds_up_no_other() -> None:
    """One that may not go is passed over, and keeps its turn."""

    async def act(clock: HostClock) -> None:
        gate = Gate(4, clock=clock, rates={"slow": Rates(calls_at_once=1)})
        seen = Seen()
        slow = [seen.call(gate, caller("a", provider="slow")) for _ in range(10)]
        quick = [seen.call(gate, caller("b", provider="quick")) for _ in range(9)]
        await asyncio.gather(*slow, *quick)
        last_quick = max(at for at, who in seen.began if who.provider == "quick")
        assert last_quick == 2  # nine calls, three at a time beside the slow one

    in_virtual_time(act)


def test_closing_lets_those_who_wait_go_home_at_once() -> None:
    """A process that stops does not wait for rates: nothing more begins, and nobody waits on."""

    async def act(clock: HostClock) -> None:
        gate, seen = Gate(64, clock=clock, rates={"p": Rates(requests_per_second=0.001)}), Seen()
        waiting = [asyncio.ensure_future(seen.call(gate, caller(), seconds=0.1)) for _ in range(5)]
        await asyncio.sleep(1)
        gate.close()
        assert sorted(await asyncio.gather(*waiting)) == [False] * 4 + [True]
        assert asyncio.get_running_loop().time() == 1
        assert await seen.call(gate, caller()) is False

    in_virtual_time(act)


def test_nobody_takes_a_turn_for_what_is_not_wanted_any_more() -> None:
    """Calls of a job that was canceled pass without a place, and cost the others no time."""

    async def act(clock: HostClock) -> None:
        gate = Gate(64, clock=clock, rates={"p": Rates(requests_per_second=1)})
        wanted = True
        placed: list[bool] = []

        async def call() -> None:
            async with gate.slot(caller("canceled"), wanted=lambda: wanted) as place:
                placed.append(bool(place))

        calls = [asyncio.ensure_future(call()) for _ in range(50)]
        await asyncio.sleep(2.5)
        wanted = False
        await asyncio.gather(*calls)
        assert (placed.count(True), placed.count(False)) == (3, 47)
        assert asyncio.get_running_loop().time() == 3

    in_virtual_time(act)


def test_a_place_that_is_left_before_its_end_is_given_once_to_another() -> None:
    """What follows a provider's answer takes no place; whoever leaves early does not leave twice."""

    async def act(clock: HostClock) -> None:
        gate = Gate(1, clock=clock)
        begun: list[str] = []

        async def call(name: str, leaves_after_seconds: float) -> None:
            async with gate.slot(caller(name)) as place:
                begun.append(f"{name} at {asyncio.get_running_loop().time():.0f}")
                await asyncio.sleep(leaves_after_seconds)
                place.leave()
                place.leave()
                await asyncio.sleep(10)

        await asyncio.gather(call("one", 1), call("two", 2), call("three", 1))
        assert begun == ["one at 0", "two at 1", "three at 3"]

    in_virtual_time(act)


def test_one_who_is_stopped_while_waiting_leaves_no_trace() -> None:
    """Also when its place came in the same moment."""

    async def act(clock: HostClock) -> None:
        gate, seen = Gate(1, clock=clock), Seen()
        first = asyncio.ensure_future(seen.call(gate, caller("a")))
        await asyncio.sleep(0.5)
        second = asyncio.ensure_future(seen.call(gate, caller("b")))
        third = asyncio.ensure_future(seen.call(gate, caller("c")))
        await asyncio.sleep(0.1)
        second.cancel()
        await first
        third.cancel()  # its place has been given, and it has not run yet
        assert await asyncio.wait_for(seen.call(gate, caller("d")), 5)
        assert (second.cancelled(), third.cancelled()) == (True, True)

    in_virtual_time(act)
