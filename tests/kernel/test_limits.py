"""Numbers that must agree with each other."""

from __future__ import annotations

import pytest

from dragoman.kernel import limits

NUMBERS = {name: value for name, value in vars(limits).items() if name.isupper()}


@pytest.mark.parametrize("name", NUMBERS)
def test_every_limit_is_positive(name: str) -> None:
    value = NUMBERS[name]
    bounds = value if isinstance(value, tuple) else (value,)
    assert all(bound > 0 for bound in bounds)
    assert list(bounds) == sorted(bounds)


@pytest.mark.parametrize(
    ("default", "bounds"),
    [
        (limits.PUBLISH_POLL_SECONDS, limits.PUBLISH_POLL_SECONDS_BOUNDS),
        (limits.PUBLISH_BATCH, limits.PUBLISH_BATCH_BOUNDS),
        (limits.PUBLISH_LEASE_SECONDS, limits.PUBLISH_LEASE_SECONDS_BOUNDS),
        (limits.FAILURES_PAGE, (1, limits.FAILURES_PAGE_MAX)),
        (limits.BATCH_SIZE, (1, limits.BATCH_SIZE_MAX)),
        (limits.CONCURRENCY, (1, limits.CONCURRENCY_MAX)),
        (limits.FIELDS_PER_ITEM, (1, limits.FIELDS_PER_ITEM_SETTING_MAX)),
        (limits.PAIRS_SETTING_MIN, (1, limits.PAIRS_MAX)),
    ],
)
def test_a_default_lies_within_its_own_bounds(default: int, bounds: tuple[int, int]) -> None:
    assert bounds[0] <= default <= bounds[1]


def test_a_lease_is_renewed_well_before_it_runs_out() -> None:
    for name, value in NUMBERS.items():
        if name.endswith("LEASE_SECONDS") and isinstance(value, int):
            assert value * limits.RENEW_SHARE + limits.LEASE_MARGIN_SECONDS < value


def test_the_numbers_that_the_seeds_fix_are_theirs() -> None:
    """Changing one of these breaks a promise to a caller, so it is not done in passing."""
    assert limits.FIELD_KEY_CHARS_MAX == 64
    assert limits.FIELDS_PER_ITEM == 100
    assert (limits.CALLBACK_SECRET_BYTES_MIN, limits.CALLBACK_SECRET_BYTES_MAX) == (16, 256)
    assert limits.WORKER_SEEN_SECONDS == 150
    assert limits.RETRIES_PER_GENERATION == 5
    assert (limits.RETRY_FIRST_SECONDS, limits.RETRY_MAX_SECONDS) == (30, 3600)
    assert limits.MONTHLY_TOKENS == 10_000_000
    assert limits.BATCH_SIZE == 20
    assert limits.CALLBACK_CLOCK_SECONDS == 300
    assert limits.MESSAGE_BYTES == 500
