"""What the doctor says of a server that would refuse the largest row that is ever written."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.store.acts import examining
from tests.doubles.databases import opened


def test_a_servers_packet_is_held_against_the_largest_answer(
    mariadb_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[M-142] and the remedy names a size that is enough."""

    async def told() -> list[dict[str, str]]:
        async with opened(mariadb_url) as database:
            found = await database.read(examining.findings)
        return [one for one in found if "max_allowed_packet" in one["problem"]]

    monkeypatch.setattr(examining, "PROVIDER_ANSWER_BYTES_MAX", 1)
    assert asyncio.run(told()) == []
    monkeypatch.setattr(examining, "PROVIDER_ANSWER_BYTES_MAX", 2**40)
    [finding] = asyncio.run(told())
    assert str(2**41) in finding["remedy"]
