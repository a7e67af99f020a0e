"""When to try again: capped exponential delays, spread by jitter, never sooner than the other side asked."""

from __future__ import annotations

from dragoman.kernel.limits import JITTER_SHARE


def delay_seconds(
    attempt: int,
    *,
    first_seconds: float,
    max_seconds: float,
    fraction: float,
    asked_seconds: float | None = None,
) -> float:
    """min(first · 2^(attempt−1), max) seconds and up to `JITTER_SHARE` more, by `fraction` in [0, 1).

    `attempt` counts from 1. `asked_seconds` is what a Retry-After said.
    """
    ruled = min(first_seconds * 2.0 ** min(max(attempt, 1) - 1, 60), max_seconds)
    return max(ruled * (1 + JITTER_SHARE * fraction), asked_seconds or 0)
