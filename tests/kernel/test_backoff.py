"""When to try again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman.kernel.backoff import delay_seconds
from dragoman.kernel.limits import JITTER_SHARE

fractions = st.floats(0, 1, exclude_max=True)


def test_delays_double_up_to_their_cap() -> None:
    delays = [delay_seconds(n, first_seconds=30, max_seconds=3600, fraction=0) for n in range(1, 12)]
    assert delays == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600, 3600]


@given(st.integers(-5, 10**9), fractions, st.none() | st.floats(0, 10**6))
def test_a_delay_is_bounded_by_its_cap_and_never_sooner_than_asked(
    attempt: int, fraction: float, asked: float | None
) -> None:
    delay = delay_seconds(attempt, first_seconds=5, max_seconds=600, fraction=fraction, asked_seconds=asked)
    assert max(5, asked or 0) <= delay <= max(600 * (1 + JITTER_SHARE), asked or 0)
