"""`kill -9` at any moment, then the same command again: the same files, and nothing paid twice that could
be known.

The full form (twenty runs of 200 documents on each database, then one killed twenty times) is `make chaos`;
the suite runs a slice of it. How many: `DRAGOMAN_CHAOS_RUNS`, `DRAGOMAN_CHAOS_DOCUMENTS`,
`DRAGOMAN_CHAOS_KILLS`.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.chaos.project import TEXTS, Project, kill, provider, wait_for_calls

RUNS = int(os.environ.get("DRAGOMAN_CHAOS_RUNS", "1"))
DOCUMENTS = int(os.environ.get("DRAGOMAN_CHAOS_DOCUMENTS", "30"))
KILLS = int(os.environ.get("DRAGOMAN_CHAOS_KILLS", "4"))
SCRIPT = {"seconds": 0.05}
FIELDS_A_CALL = 20


def undisturbed_calls(documents: int) -> int:
    """How many calls a calm run makes at most: each job's fields in groups of twenty, by locale."""
    per_locale = -(-documents * TEXTS // FIELDS_A_CALL)
    return 2 * (per_locale + -(-documents // 50) + 2)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(RUNS))
def test_killed_once_and_run_again_gives_the_same_files(database_url: str, tmp_path: Path, seed: int) -> None:
    """[M-342..M-346, J-046]"""
    with provider(tmp_path / "provider", SCRIPT) as hired:
        project = Project(tmp_path / "work", database_url, hired.url, DOCUMENTS)
        project.make()
        run = project.start()
        wait_for_calls(run, hired, random.Random(seed).randrange(0, undisturbed_calls(DOCUMENTS)))
        kill(run)
        before = len(hired.calls())
        in_flight = len(project.attempts("STARTED"))
        code, told = project.finish()
        assert (code, told["counts"]["completed"] + told["counts"]["skipped"]) == (0, 2 * DOCUMENTS)
        assert len(project.outputs()) == 2 * DOCUMENTS
        assert all(f"{name.split('.')[-2]} Text" in text for name, text in project.outputs().items())
        calls = hired.calls()
        assert len(calls) - before <= undisturbed_calls(DOCUMENTS)
        recorded = set(project.attempts())
        assert {call["attempt_id"] for call in calls} <= recorded, "every request is on record"
        bodies = [(call["target_locale"], *call["texts"]) for call in calls]
        assert len(bodies) - len(set(bodies)) <= in_flight, "only what was in flight is asked for again"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("priced", [False, True], ids=["unpriced", "priced"])
def test_killed_again_and_again_it_still_ends_honestly(sqlite_url: str, tmp_path: Path, priced: bool) -> None:
    """[E-086, J-082] F1: unpriced it ends the same; priced, what nobody knows is held for a person."""
    with provider(tmp_path / "provider", SCRIPT) as hired:
        project = Project(tmp_path / "work", sqlite_url, hired.url, DOCUMENTS, priced=priced)
        project.make()
        dice = random.Random(7)
        for _ in range(KILLS):
            run = project.start()
            wait_for_calls(run, hired, len(hired.calls()) + dice.randrange(1, 6))
            kill(run)
        code, told = project.finish()
        if priced and code == 4:
            assert {item["reason"] for item in told["waiting"]} == {"waiting_unknown"}
            assert told["cost"]["at_risk_tokens"] > 0
            code, told = project.finish("--on-unknown", "resend:unlimited")
        assert code == 0
        assert len(project.outputs()) == 2 * DOCUMENTS
        assert {call["attempt_id"] for call in hired.calls()} <= set(project.attempts())
