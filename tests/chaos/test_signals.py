"""Open cases F2 and F10, with real processes and real signals: stopped past its lease, and told to end.

The time for which a process is stopped is not waited for: its leases are made to run out in the database,
which is all that other processes see of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.store.acts.leasing import LEASED
from dragoman.store.engines import engine_of
from dragoman.store.schema import effects, engine
from dragoman.wiring.rounds import opened
from dragoman.wiring.settings import load
from tests.chaos.project import ROOT, Project, provider, wait_for_calls

SLOW = {"seconds": 0.5}
DOCUMENTS = 12


def rows(url: str, query: sa.Select[Any]) -> list[Any]:
    """What the database says."""
    made = engine_of(url)
    try:
        with made.connect() as connection:
            return list(connection.execute(query))
    finally:
        made.dispose()


def let_leases_run_out(url: str) -> None:
    """As if three leases had passed for whoever holds one."""
    made = engine_of(url)
    try:
        with made.begin() as connection:
            for table in LEASED:
                held = table.c.lease_expires_at.is_not(None)
                connection.execute(sa.update(table).where(held).values(lease_expires_at=1))
    finally:
        made.dispose()


def workers_of_attempts(url: str) -> Counter[str]:
    """Who began how many attempts at the provider."""
    both = sa.join(effects.attempts, effects.effects, effects.attempts.c.effect_id == effects.effects.c.id)
    begun = sa.select(effects.attempts.c.worker).select_from(both)
    return Counter(row.worker for row in rows(url, begun.where(effects.effects.c.family == "completion")))


def events_per_job(url: str) -> set[int]:
    """How many events the jobs have made."""
    count = sa.func.count().label("number")
    by_job = sa.select(count).select_from(engine.outbox).group_by(engine.outbox.c.job_id)
    return {row.number for row in rows(url, by_job)}


@pytest.mark.timeout(300)
def test_a_worker_stopped_past_its_lease_writes_nothing_late_and_begins_nothing(
    database_url: str, tmp_path: Path
) -> None:
    """F2: another one finishes; what the stopped one still has comes under a stale fence, and is nobody's."""
    with provider(tmp_path / "provider", SLOW) as hired:
        project = Project(tmp_path / "work", database_url, hired.url, DOCUMENTS)
        project.make()
        stopped = project.start()
        wait_for_calls(stopped, hired, 1)
        stopped.send_signal(signal.SIGSTOP)
        try:
            let_leases_run_out(database_url)
            code, told = project.finish()
            assert (code, told["counts"]["completed"]) == (0, 2 * DOCUMENTS)
            files, before = project.outputs(), workers_of_attempts(database_url)
            events = events_per_job(database_url)
        finally:
            stopped.send_signal(signal.SIGCONT)
        said, err = stopped.communicate(timeout=120)
        assert stopped.returncode == 0, err[-2000:]
        assert json.loads(said)["counts"]["completed"] == 2 * DOCUMENTS, "it tells what the other one did"
        assert workers_of_attempts(database_url) == before, "nothing was begun after the stop"
        assert events_per_job(database_url) == events == {1}, "each job ended once"
        assert project.outputs() == files
        assert {call["attempt_id"] for call in hired.calls()} <= set(project.attempts())


@pytest.mark.timeout(300)
def test_a_worker_told_to_end_under_load_ends_in_order_and_charges_nobody(
    database_url: str, tmp_path: Path
) -> None:
    """F10: it claims no more, exits 0, holds nothing, and no start is counted for what it gave back."""
    with provider(tmp_path / "provider", SLOW) as hired:
        project = Project(tmp_path / "work", database_url, hired.url, DOCUMENTS)
        project.make()
        asyncio.run(_admit(project))
        worker = _worker(project)
        wait_for_calls(worker, hired, 2)
        worker.send_signal(signal.SIGTERM)
        _, err = worker.communicate(timeout=60)
        assert worker.returncode == 0, err[-2000:]
        for table in LEASED:
            held = sa.select(sa.func.count().label("number")).where(table.c.lease_owner.is_not(None))
            live = held.where(table.c.lease_expires_at > sa.literal(10**15))
            found = rows(database_url, live.select_from(table))[0].number
            assert found == 0 or table.name == "manifests", f"{table.name}: a lease is left"
        assert {row.starts for row in rows(database_url, sa.select(engine.jobs.c.starts))} == {0}
        assert "STARTED" not in {
            row.outcome for row in rows(database_url, sa.select(effects.attempts.c.outcome))
        }, "what was under way was waited for"
        calls = len(hired.calls())
        fresh = _worker(project)
        asyncio.run(_until_ended(project))
        fresh.send_signal(signal.SIGTERM)
        _, err = fresh.communicate(timeout=60)
        assert fresh.returncode == 0, err[-2000:]
        texts = Counter((call["target_locale"], text) for call in hired.calls() for text in call["texts"])
        assert set(texts.values()) == {1}, "no text was asked for twice"
        assert len(hired.calls()) > calls
        assert events_per_job(database_url) == {1}


def _worker(project: Project) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "dragoman", "worker"],
        cwd=project.folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "HIRED_KEY": "a key of this test",
            "DRAGOMAN_DATABASE_URL": project.database_url,
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


async def _admit(project: Project) -> None:
    """Ask for everything, and work none of it here."""
    settings = load(project.folder).model_copy(update={"database_url": project.database_url})
    names = [f"docs/d{number:03}.json" for number in range(project.documents)]
    frozen = {
        "source_locale": "en", "mode": "missing", "provider": "hired", "root": str(project.folder),
        "templates": {name: f"out/{name[:-5]}.{{locale}}.json" for name in names}, "out": "",
        "executor": "files:v1", "partial": "auto", "publish": "none", "batch_size": 4,
    }  # fmt: skip
    async with opened(settings, roles=()) as services:
        pairs = sorted((name, locale) for name in names for locale in project.locales)
        await services.admission.admit_pairs(services.caller("ada"), "docs", "r-1", pairs, frozen)


async def _until_ended(project: Project) -> None:
    settings = load(project.folder).model_copy(update={"database_url": project.database_url})
    async with opened(settings, roles=()) as services, asyncio.timeout(120):
        while await services.views.active("default"):
            await asyncio.sleep(0.1)
