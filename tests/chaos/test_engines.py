"""Two engines and two sites on one database server and one queue server; engines are killed and restarted.

Every item is translated once, and the ledger says what the provider's own log says. The full form (2,000
intents, ten kills) is `make chaos`. How much: `DRAGOMAN_CHAOS_INTENTS`, `DRAGOMAN_CHAOS_ENGINE_KILLS`.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.chaos.fleet import LOCALES, TEXTS, Fleet, fleet
from tests.chaos.project import Provider, provider

INTENTS = int(os.environ.get("DRAGOMAN_CHAOS_INTENTS", "80"))
KILLS = int(os.environ.get("DRAGOMAN_CHAOS_ENGINE_KILLS", "2"))
MANIFESTS = 5
BATCH = 4
SECONDS = 600


@pytest.mark.timeout(1800)
def test_killed_engines_leave_every_item_translated_once_and_the_books_right(
    server_url: str, sqs_endpoint: str, tmp_path: Path
) -> None:
    """[M-342..M-346, J-030, J-035, J-046]"""
    documents = INTENTS // len(LOCALES)
    calls = INTENTS * TEXTS // BATCH
    dice = random.Random(11)
    with (
        provider(tmp_path / "provider", {"seconds": 0.05}) as hired,
        fleet(tmp_path / "work", server_url, sqs_endpoint, hired.url) as ours,
    ):
        ours.make(documents)
        asyncio.run(ours.admit(MANIFESTS, documents, BATCH))
        for _ in range(2):
            ours.start("site")
        engines = [ours.start("engine") for _ in range(2)]
        for number in range(KILLS):
            _wait_for_calls(ours, hired, calls * (number + 1) // (KILLS + 2))
            place = dice.randrange(2)
            ours.kill(engines[place])
            engines[place] = ours.start("engine")
        ours.wait_until_settled(SECONDS)
        assert ours.intents() == {"completed": INTENTS}, ours.told()
        assert ours.job_fields() == {"done": INTENTS * TEXTS}
        _agree(ours, hired)
        assert set(ours.stop().values()) == {0}, ours.told()


def _wait_for_calls(ours: Fleet, hired: Provider, count: int) -> None:
    until = time.monotonic() + SECONDS
    while len(hired.calls()) < count:
        assert time.monotonic() < until, ours.told()
        time.sleep(0.02)


def _agree(ours: Fleet, hired: Provider) -> None:
    """The ledger and the provider's own log tell the same story."""
    attempts, log = ours.attempts(), {call["attempt_id"]: call for call in hired.calls()}
    assert len(log) == len(hired.calls()), "no attempt is sent twice"
    assert log.keys() <= attempts.keys(), "every request is on record"
    settled = {attempt for attempt, outcome in attempts.items() if outcome == "SUCCEEDED"}
    assert settled <= log.keys(), "nothing is settled that was not asked"
    asked = Counter((log[one]["target_locale"], text) for one in settled for text in log[one]["texts"])
    assert set(asked.values()) == {1}, "each text has one settled answer"
    assert len(asked) == INTENTS * TEXTS
    lost = log.keys() - settled
    repeated = Counter(
        (call["target_locale"], text) for call in log.values() for text in call["texts"]
    ).total() - len(asked)
    assert repeated == sum(len(log[one]["texts"]) for one in lost), "only what a kill cut off is asked again"
    assert {attempts[one] for one in lost} <= {"CONNECTION_UNKNOWN", "TIMEOUT_UNKNOWN"}, attempts
    used = ours.prompt_tokens()
    assert used == {one: log[one]["request_bytes"] // 4 for one in settled}
