"""The engine's claims and sums find their rows by an index, also among much history."""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman.kernel.identity import SystemChance
from dragoman.model.scopes import System, Workspace
from dragoman.store.acts import claiming, job_views
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Tx
from tests.doubles.databases import opened
from tests.doubles.plans import analyze, plans_of

_HISTORY = 3000
_FAR = 1 << 60


def _jobs(tx: Tx) -> None:
    chance = SystemChance()
    rows: list[dict[str, Any]] = []
    for number in range(_HISTORY):
        done = number % 50 != 0
        rows.append(
            {
                "id": chance.new_id(),
                "workspace": f"w{number % 10}",
                "project": "docs",
                "principal": "ada",
                "submission_id": chance.new_id(),
                "submission_fingerprint": "0" * 64,
                "client_job_id": f"m{number % 40}",
                "source_locale": "en",
                "options": "{}",
                "queue_payload": "{}",
                "state": "completed" if done else "queued",
                "next_attempt_at": None if done else number,
                "deadline_at": _FAR,
                "created_at": number,
                "updated_at": number,
            }
        )
    tx.insert(tables.jobs, rows)
    tx.insert(
        tables.lanes,
        [{"workspace": f"w{number}", "role": "engine", "ready_at": 1} for number in range(10)],
    )


def _usage(tx: Tx) -> None:
    chance = SystemChance()
    rows = [
        {
            "id": chance.new_id(),
            "workspace": f"w{number % 10}",
            "project": "docs",
            "attempt_id": chance.new_id(),
            "model": "m",
            "total_tokens": 10,
            "created_at": number * 10**12,
        }
        for number in range(_HISTORY)
    ]
    tx.insert(tables.ai_usage, rows)


def _filled(url: str) -> None:
    async def story() -> None:
        async with opened(url) as database:
            await database.run(_jobs)
            await database.run(_usage)

    asyncio.run(story())
    analyze(url, tables.jobs)
    analyze(url, tables.ai_usage)


def test_a_claim_of_a_job_walks_its_index(database_url: str) -> None:
    """A claim index gives the order that the claim asks for; ended jobs are never looked at."""
    _filled(database_url)
    plans = plans_of(database_url, _FAR, claiming.claim_job, System(), "me", 60.0)
    [claim] = [plan for plan in plans if "jobs" in plan.sql and "ORDER BY" in plan.sql]
    assert "ix_jobs_claim" in claim.text or "ix_jobs_due" in claim.text, claim
    assert not claim.sorts, claim
    for plan in plans:
        if "FROM jobs" in plan.sql or "UPDATE jobs" in plan.sql:
            assert not plan.scans, plan


def test_lanes_that_only_others_can_work_are_passed_by_the_index(database_url: str) -> None:
    """Whose jobs can be taken here is asked of each lane's own open jobs, in the order of turns."""
    _filled(database_url)
    plans = plans_of(database_url, _FAR, claiming.ready_here, System(), ["A_KEY"])
    [lanes] = [plan for plan in plans if "FROM lanes" in plan.sql]
    assert "EXISTS" in lanes.sql
    assert "SCAN jobs" not in lanes.text
    assert "ix_jobs" in lanes.text, lanes


def test_lost_and_waiting_jobs_are_found_by_their_indexes(database_url: str) -> None:
    """[M-231] What a sweep sends again, and what a message asks, look at no job that has ended."""
    _filled(database_url)
    for act, args in ((claiming.lost_jobs, 100), (claiming.jobs_waiting, [SystemChance().new_id()])):
        plans = plans_of(database_url, _FAR, act, System(), args)
        assert plans
        for plan in plans:
            assert not plan.scans, plan


def test_the_months_use_is_summed_by_its_index(database_url: str) -> None:
    """J-076: `idx_ai_usage_workspace_period` serves the sum of a period."""
    _filled(database_url)
    now = 1_800_000_000_000_000
    plans = plans_of(database_url, now, job_views.ai_usage, Workspace("w3"))
    [metered] = [plan for plan in plans if "ai_usage" in plan.sql]
    assert "idx_ai_usage_workspace_period" in metered.text, metered
    assert not metered.scans, metered
