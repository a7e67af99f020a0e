"""The status of a manifest of more than a shard, as the bench measures it, equals a count of all its rows."""

from __future__ import annotations

import asyncio

from bench.status import measured
from bench.status_rows import seed
from dragoman.kernel.limits import SHARD_INTENTS


def test_what_a_status_sums_up_is_what_a_recount_says(database_url: str) -> None:
    """Counters, fields, money and publication of two shards; the measurement itself refuses other sums."""
    manifest_id = seed(database_url, SHARD_INTENTS + 1)
    looked, _, recounted = asyncio.run(measured(database_url, manifest_id, looks=1))
    assert looked > 0
    assert recounted > 0
