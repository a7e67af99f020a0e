"""Instants in microseconds, and their spellings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.kernel import clock

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
instants = st.integers(0, 4_000_000_000 * clock.MICROSECONDS)


def test_the_system_clock_counts_microseconds_of_utc() -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    assert before < EPOCH + timedelta(microseconds=clock.SystemClock().now()) < before + timedelta(minutes=5)


def test_monotonic_seconds_never_run_backwards() -> None:
    system = clock.SystemClock()
    readings = [system.monotonic() for _ in range(1_000)]
    assert readings == sorted(readings)


@given(st.integers(0, 10**9))
def test_a_duration_of_milliseconds_is_exact_in_microseconds(milliseconds: int) -> None:
    assert clock.seconds(milliseconds / 1_000) == milliseconds * 1_000


@given(instants)
def test_iso_names_the_instant_to_the_millisecond(instant: int) -> None:
    spelled = clock.iso(instant)
    assert spelled is not None
    assert spelled.endswith("+00:00")
    assert datetime.fromisoformat(spelled) == EPOCH + timedelta(milliseconds=instant // 1_000)


def test_no_instant_has_no_spelling() -> None:
    assert clock.iso(None) is None


@pytest.mark.parametrize(
    ("moment", "month"),
    [
        (datetime(2026, 11, 30, 23, 59, 59, 999_999, UTC), "2026-11"),
        (datetime(2026, 12, 1, tzinfo=UTC), "2026-12"),
        (datetime(2028, 2, 29, 12, tzinfo=UTC), "2028-02"),
    ],
)
def test_a_month_ends_with_its_last_microsecond(moment: datetime, month: str) -> None:
    assert clock.month((moment - EPOCH) // timedelta(microseconds=1)) == month
