"""All processes of a database read one time, and none sees it run backwards."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from dragoman.kernel.clock import MICROSECONDS, seconds
from dragoman.kernel.limits import CLOCK_SYNC_SECONDS
from dragoman.store.engines import engine_of
from dragoman.store.timekeeping import DatabaseTime, HostTime
from dragoman.store.transaction import Tx
from tests.doubles.databases import opened
from tests.store.clocks import HandClock, SkewedClock


def test_time_ticks_with_the_monotonic_clock_between_two_measurements() -> None:
    clock = HandClock(wall=999, monotonic=100.0)
    time = DatabaseTime(clock)
    time.measure(lambda: 5 * MICROSECONDS)
    clock.wall = -1
    clock.ticks += 2.5
    assert time.now() == seconds(7.5)


def test_an_answer_counts_for_the_middle_of_the_time_that_the_asking_took() -> None:
    clock = HandClock(monotonic=10.0)
    time = DatabaseTime(clock)

    def slow() -> int:
        clock.ticks += 4
        return seconds(1000)

    time.measure(slow)
    assert time.now() == seconds(1002)


def test_a_measurement_is_due_at_first_and_every_ten_seconds() -> None:
    clock = HandClock()
    time = DatabaseTime(clock)
    due = [time.is_due]
    time.measure(lambda: 0)
    due.append(time.is_due)
    clock.ticks += CLOCK_SYNC_SECONDS
    due.append(time.is_due)
    assert due == [True, False, True]
    assert not HostTime(clock).is_due


@given(st.lists(st.tuples(st.floats(0, 20), st.none() | st.integers(-(10**12), 10**12)), max_size=30))
def test_time_never_runs_backwards_whatever_the_server_says(steps: list[tuple[float, int | None]]) -> None:
    clock = HandClock()
    time, told = DatabaseTime(clock), -(10**15)
    for passed, sample in steps:
        clock.ticks += passed
        if sample is not None:
            time.measure(lambda sample=sample: sample)  # type: ignore[misc]
        assert time.now() >= told
        told = time.now()


@given(st.lists(st.integers(-(10**12), 10**12), min_size=1))
def test_a_host_clock_that_is_set_back_stands_still(walls: list[int]) -> None:
    clock = HandClock()
    time = HostTime(clock)
    told = []
    for wall in walls:
        clock.wall = wall
        told.append(time.now())
    assert told == sorted(told)
    assert told[-1] == max(0, *walls)


def test_a_fast_host_reads_the_server_s_time_in_every_transaction(server_url: str) -> None:
    def instant(tx: Tx) -> int:
        return tx.now

    async def story() -> list[int]:
        async with opened(server_url, SkewedClock()) as fast, opened(server_url) as right:
            return [await fast.run(instant), await right.run(instant), await fast.read(instant), right.now()]

    told = asyncio.run(story())
    assert max(told) - min(told) < seconds(60)


def test_an_instant_is_read_once_a_transaction(database_url: str) -> None:
    def twice(tx: Tx) -> tuple[int, int]:
        return tx.now, tx.now

    async def story() -> None:
        async with opened(database_url) as database:
            before = database.now()
            first, second = await database.run(twice)
            assert before <= first == second <= database.now()

    asyncio.run(story())


def test_a_mysql_url_to_a_mariadb_server_gets_mariadb_s_collations(mariadb_url: str) -> None:
    engine = engine_of(mariadb_url.replace("mariadb:", "mysql:"))
    assert engine.dialect.name == "mariadb"
    engine.dispose()
