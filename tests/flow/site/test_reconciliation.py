"""Asking the engine: in bounded portions, everybody in turn, about each submission until it is settled."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.flow.site.reconciliation import Reconciliation
from dragoman.kernel.errors import CallerError, OutsideError
from dragoman.kernel.limits import RECONCILE_PER_RUN, RETENTION_DAYS
from dragoman.model.effects import Answer
from dragoman.store.acts import reconciling
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Row, Tx
from tests.doubles.engines import CaptureEngine, event
from tests.flow.site.rows import make_inquiries_due
from tests.flow.site.scoped import SlowClock
from tests.flow.site.stage import Stage, catalogue, stage

_SUBMISSIONS = tables.submissions
DAY = 24 * 3600 * 1_000_000


class AskedEngine(CaptureEngine):
    """Writes down about which jobs it is asked, and fails where it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str]] = []
        self.trouble: Mapping[str, Exception] = {}

    async def job(
        self, workspace: str, remote_job_id: str, deadline_seconds: float
    ) -> Mapping[str, Any] | None:
        self.asked.append((workspace, remote_job_id))
        if remote_job_id in self.trouble:
            raise self.trouble[remote_job_id]
        return await super().job(workspace, remote_job_id, deadline_seconds)


def asking(site: Stage, clock: SlowClock | None = None) -> tuple[AskedEngine, Reconciliation]:
    """The site's engine from now on, and who asks it."""
    engine = AskedEngine()
    engine.jobs, engine.views, engine.bodies = site.engine.jobs, site.engine.views, site.engine.bodies
    return engine, Reconciliation(site.database, engine, clock or site.clock)


def accept_many(tx: Tx, number: int, like: str) -> None:
    """More accepted submissions like this one, whose jobs the engine does not know."""
    row = tx.first(sa.select(_SUBMISSIONS).where(_SUBMISSIONS.c.id == like))
    assert row is not None
    rows = [{**row._asdict(), "id": tx.new_id(), "remote_job_id": f"stuck-{at}"} for at in range(number)]
    tx.insert(_SUBMISSIONS, rows)


def set_due(tx: Tx, earlier_seconds: int, only: str | None = None) -> None:
    """Every inquiry (or that of one job) is due so long ago."""
    where = sa.true() if only is None else _SUBMISSIONS.c.remote_job_id == only
    at = tx.now - earlier_seconds * 1_000_000
    tx.touched(sa.update(_SUBMISSIONS).where(where).values(reconcile_at=at))


def grow_old(tx: Tx, days: int) -> None:
    """Everything of the manifests happened so many days earlier."""
    for table, names in ((tables.manifests, ("created_at", "updated_at")), (_SUBMISSIONS, ("accepted_at",))):
        tx.touched(sa.update(table).values({name: table.c[name] - days * DAY for name in names}))


def submission_rows(tx: Tx) -> list[Row]:
    return tx.all(sa.select(_SUBMISSIONS))


async def submitted(site: Stage, request_id: str = "r-1", locale: str = "de") -> tuple[str, dict[str, Any]]:
    """(manifest id, body) of one pair that the engine has taken in."""
    admitted = await site.admit([("a.json", locale)], request_id)
    await site.step_all()
    return admitted.manifest_id, site.engine.submissions()[-1]


DOCUMENTS = {"a.json": catalogue(hello="Hello")}


def test_twenty_a_run_and_twenty_one_that_are_stuck_do_not_hide_the_next(database_url: str) -> None:
    """[M-268, M-275] the place of each in the turn is in its row, and outlives the process."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest, body = await submitted(site)
            await site.database.run(accept_many, 21, body["submissionId"])
            await site.database.run(set_due, 100)
            await site.database.run(set_due, 1, "job-1")
            site.engine.views["job-1"] = event(body, "job-1")
            engine, first = asking(site)
            assert await first.step() == RECONCILE_PER_RUN == 20
            assert ("default", "job-1") not in engine.asked
            _, successor = asking(site)
            assert await successor.step() == 2
            assert await site.counts(manifest) == {"completed": 1}
            assert await successor.step() == 0, "whoever was asked about has its turn in a minute"

    asyncio.run(play())


def test_a_receipt_whose_pages_are_refused_is_set_aside_and_holds_up_no_other(database_url: str) -> None:
    """A job that was tried once more has no results for the event of its first end."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            bodies = [(await submitted(site))[1], (await submitted(site, "r-2", "fr"))[1]]
            for number, body in enumerate(bodies, start=1):
                told = event(body, f"job-{number}")
                site.engine.views[f"job-{number}"] = told
                assert await site.deliver({**told, "results": "link", "items": []}, f"d-{number}") == 202
            pages = site.engine.items

            async def items(
                workspace: str, remote_job_id: str, cursor: str, deadline_seconds: float
            ) -> Mapping[str, object]:
                if remote_job_id == "job-1":
                    raise CallerError("no ended job job-1", "not_found")
                return await pages(workspace, remote_job_id, cursor, deadline_seconds)

            site.engine.items = items  # type: ignore[method-assign]
            assert await site.callbacks.step() == 2
            kept = await site.database.read(receipts_kept)
            assert kept == [("FAILED_MANUAL", "not_found"), ("APPLIED", None)]

    asyncio.run(play())


def receipts_kept(tx: Tx) -> list[tuple[str, str | None]]:
    rows = tx.all(sa.select(tables.receipts).order_by(tables.receipts.c.event_id))
    return [(row.state, row.error_code) for row in rows]


def test_a_submission_is_asked_about_a_minute_after_its_acceptance(database_url: str) -> None:
    """[M-268]"""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            await submitted(site)
            (row,) = await site.database.read(submission_rows)
            assert 60_000_000 <= row.reconcile_at - row.accepted_at < 61_000_000
            await site.database.run(set_due, -30)
            _, reconciliation = asking(site)
            assert await reconciliation.step() == 0

    asyncio.run(play())


def test_two_that_ask_at_once_share_the_work(database_url: str) -> None:
    """[M-268] a claimed turn is nobody else's."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            _, body = await submitted(site)
            await site.database.run(accept_many, 21, body["submissionId"])
            await site.database.run(set_due, 100)
            claims = [site.database.run(reconciling.due_inquiries, 20) for _ in range(3)]
            taken = [one.submission_id for claim in await asyncio.gather(*claims) for one in claim]
            assert len(taken) == len(set(taken))
            left = [one.submission_id for one in await site.database.run(reconciling.due_inquiries, 20)]
            assert sorted(taken + left) == sorted(row.id for row in await site.database.read(submission_rows))

    asyncio.run(play())


def test_a_run_ends_after_twenty_seconds_and_those_not_reached_come_first(database_url: str) -> None:
    """[M-270] a slow engine starves nobody."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            _, body = await submitted(site)
            await site.database.run(accept_many, 9, body["submissionId"])
            await site.database.run(set_due, 100)
            engine, reconciliation = asking(site, SlowClock(6.0))  # each look is six seconds later
            assert await reconciliation.step() == 3
            assert await reconciliation.step() == 3
            assert await reconciliation.step() == 3
            assert await reconciliation.step() == 1
            assert len(set(engine.asked)) == len(engine.asked) == 10

    asyncio.run(play())


def test_what_has_no_job_yet_is_sent_again_and_not_asked_about(database_url: str) -> None:
    """[M-271] the same bytes under the same id; asked about only once its job is known."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            site.engine.weather = [Answer("TIMEOUT_UNKNOWN", code="PROVIDER_TIMEOUT_UNKNOWN")]
            await site.admit([("a.json", "de")])
            for step in (site.enumeration.step, site.preparing.step, site.submitting.step):
                await step()
            (row,) = await site.database.read(submission_rows)
            assert (row.remote_job_id, row.reconcile_at) == (None, None)
            engine, reconciliation = asking(site)
            assert await reconciliation.step() == 0
            await site.step_all()
            assert len(site.engine.bodies) == 2
            assert len(set(site.engine.bodies)) == 1
            await site.database.run(make_inquiries_due)
            assert await reconciliation.step() == 1
            assert engine.asked == [("default", "job-1")]

    asyncio.run(play())


@pytest.mark.parametrize("end", ["active", "failed", "canceled"])
def test_it_goes_on_for_the_whole_time_of_retention_whatever_became_of_the_manifest(
    sqlite_url: str, end: str
) -> None:
    """[M-272] and asks as the workspace of now."""

    async def play() -> None:
        async with stage(sqlite_url, DOCUMENTS) as site:
            manifest, body = await submitted(site)
            if end == "failed":
                fail = event(body, "job-1", fail={body["items"][0]["ref"]: "checks_failed"})
                await site.database.run(accept_many, 1, body["submissionId"])
                await site.deliver(fail)
                assert (await site.views.status("default", manifest))["status"] == "failed"
            if end == "canceled":
                await site.steering.cancel("default", manifest, "mia")
            await site.database.run(grow_old, RETENTION_DAYS - 1)
            await site.database.run(make_waiting_due)
            engine, reconciliation = asking(site)
            assert await reconciliation.step() == 1
            assert engine.asked == [("default", "stuck-0" if end == "failed" else "job-1")]

    asyncio.run(play())


def make_waiting_due(tx: Tx) -> None:
    """Every submission that waits for its turn has it."""
    waiting = _SUBMISSIONS.c.reconcile_at.is_not(None)
    tx.touched(sa.update(_SUBMISSIONS).where(waiting).values(reconcile_at=tx.now))


def test_an_answer_about_an_older_generation_moves_nothing(database_url: str) -> None:
    """[M-274] the same fence as for events: the retried pair waits for its own job."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest, body = await submitted(site)
            ref = body["items"][0]["ref"]
            await site.deliver(event(body, "job-1", fail={ref: "checks_failed"}))
            await site.steering.retry("default", manifest, "mia", None)
            await site.step_all()
            site.engine.views["job-1"] = event(body, "job-1", sequence=2)
            await site.database.run(make_inquiries_due)
            engine, reconciliation = asking(site)
            await reconciliation.step()
            assert ("default", "job-1") in engine.asked
            assert await site.counts(manifest) == {"queued": 1}
            site.engine.views["job-2"] = event(site.engine.submissions()[-1], "job-2")
            await site.database.run(set_due, 1, "job-2")
            await reconciliation.step()
            assert await site.counts(manifest) == {"completed": 1}

    asyncio.run(play())


def test_an_engine_that_refuses_the_site_loses_nothing_and_shows_in_its_health(database_url: str) -> None:
    """[M-273] a token that is revoked, an answer that cannot be read, a job that it lost: the others have
    their turn, and so has this one once the engine takes the site again.
    """

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest, body = await submitted(site)
            other, other_body = await submitted(site, "r-2", "fr")
            site.engine.views |= {"job-1": {"nonsense": True}, "job-2": event(other_body, "job-2")}
            await site.database.run(make_inquiries_due)
            engine, reconciliation = asking(site)
            assert await reconciliation.step() == 2
            assert await site.counts(other) == {"completed": 1}
            assert await site.counts(manifest) == {"queued": 1}
            assert (await told(site, manifest))["code"] == "backend_unavailable"

            engine.trouble = {"job-1": OutsideError("the engine answers HTTP 401", "backend_unavailable")}
            await site.database.run(set_due, 1, "job-1")
            await reconciliation.step()
            assert (await told(site, manifest))["code"] == "backend_unavailable"
            engine.trouble = {}
            del site.engine.views["job-1"]
            await site.database.run(set_due, 1, "job-1")
            await reconciliation.step()
            assert (await told(site, manifest))["message"].startswith(
                "the engine knows no job job-1: it has lost"
            )
            site.engine.views["job-1"] = event(body, "job-1")
            await site.database.run(set_due, 1, "job-1")
            assert await reconciliation.step() == 1
            assert await site.counts(manifest) == {"completed": 1}
            assert await told(site, manifest) is None

    asyncio.run(play())


async def told(site: Stage, manifest: str) -> Any:
    """The last error in the health of a manifest."""
    return (await site.views.status("default", manifest))["health"]["last_error"]
