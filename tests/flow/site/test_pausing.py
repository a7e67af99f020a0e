"""Pause and resume: durable before they are answered, and between the two nothing of a manifest starts."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
import sqlalchemy as sa

from dragoman.kernel.errors import CallerError, LeaseLost
from dragoman.model.effects import Answer
from dragoman.model.intents import Sender
from dragoman.model.scopes import System
from dragoman.store.acts import readiness, retrying, submitting
from dragoman.store.schema import site as tables
from dragoman.store.transaction import Tx
from tests.doubles.engines import event
from tests.flow.site.rows import (
    attempts_of,
    fail_later,
    fail_pending,
    generations_of,
    intent_count,
    make_telling_due,
)
from tests.flow.site.stage import Stage, catalogue, stage
from tests.simulation.bounds import bounded

PAIRS = [("a.json", "de"), ("a.json", "fr"), ("b.json", "de")]
DOCUMENTS = {"a.json": catalogue(hello="Hello"), "b.json": catalogue(one="One")}
UNREACHED = Answer("NOT_STARTED", code="backend_unavailable", message="nobody listens")


def make_overdue(tx: Tx) -> None:
    """As if everything that is due had been so for an hour."""
    long_ago = tx.now - 3_600_000_000
    tx.touched(sa.update(tables.shards).values(prepare_due_at=long_ago, submit_due_at=long_ago))
    tx.touched(sa.update(tables.manifests).values(next_attempt_at=long_ago))


def make_resending_due(tx: Tx) -> None:
    """As if the wait before the next send were over."""
    waiting = tables.submissions.c.next_attempt_at.is_not(None)
    tx.touched(sa.update(tables.submissions).where(waiting).values(next_attempt_at=tx.now))


async def finish(site: Stage, manifest: str) -> None:
    """Let the engine deliver all that it was sent."""
    await site.step_all()
    for number, body in enumerate(site.engine.submissions()):
        job = site.engine.jobs[body["submissionId"]]
        await site.deliver(event(body, job), f"d-{manifest}-{number}")


def test_a_pause_at_any_stage_lets_nothing_start_and_ends_alike(database_url: str) -> None:
    """[M-188] before enumeration, before preparation, before submission, and once the engine has it."""

    async def play(stages: int) -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest = (await site.admit(PAIRS, f"r-{stages}")).manifest_id
            for step in (site.enumeration.step, site.preparing.step, site.submitting.step)[:stages]:
                assert await step()
            paused = await site.steering.pause("default", manifest, "mia")
            assert (paused.changed, paused.told) == (True, True)
            before = await site.counts(manifest)
            attempts = await site.database.read(attempts_of, manifest)
            await site.step_all()
            status = await site.views.status("default", manifest)
            assert (status["status"], await site.counts(manifest)) == ("paused", before)
            assert await site.database.read(attempts_of, manifest) == attempts
            assert await site.views.next_due("default", manifest) is None
            assert (await site.steering.resume("default", manifest, "mia")).changed
            await finish(site, manifest)
            assert await site.counts(manifest) == {"completed": 3}
            words = [word for told, word in site.engine.controls if told == manifest]
            assert [word["paused"] for word in words] == [True, False]
            assert words[0]["revision"] < words[1]["revision"]
            assert all("budget" not in word for word in words), "money is left as it is"

    for stages in range(4):
        asyncio.run(play(stages))


def test_an_enumerator_at_work_is_stopped_in_its_middle(database_url: str) -> None:
    """The pause takes its lease; what it had walked stands, and after the pause it goes on from there."""

    async def play() -> None:
        pairs = [(f"d{number:03}.json", "de") for number in range(250)]
        documents = {document: catalogue(k="Text") for document, _ in pairs}
        async with stage(database_url, documents) as site:
            manifest = (await site.admit(pairs)).manifest_id
            run = site.database.run
            expanded = 0

            async def pausing(act, *given):  # type: ignore[no-untyped-def]
                nonlocal expanded
                done = await run(act, *given)
                if act.__name__ == "expand_next_pairs" and not expanded:
                    expanded = done.expanded
                    await site.steering.pause("default", manifest, "mia")
                return done

            site.database.run = pausing  # type: ignore[method-assign,assignment]
            with pytest.raises(LeaseLost):
                await site.enumeration.step()
            site.database.run = run  # type: ignore[method-assign]
            assert await site.enumeration.step() == 0
            assert await site.database.read(intent_count, manifest) == expanded == 100
            await site.steering.resume("default", manifest, "mia")
            await finish(site, manifest)
            assert await site.counts(manifest) == {"completed": 250}

    asyncio.run(play())


def test_who_was_about_to_send_when_the_pause_came_sends_nothing(database_url: str) -> None:
    """Drafted before it, frozen after it: the shard is taken, and the manifest is looked at once more."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest = (await site.admit(PAIRS)).manifest_id
            await site.enumeration.step()
            await site.preparing.step()
            owner = site.keeper.owner
            work = await site.database.run(submitting.claim_prepared_intents, owner, 100)
            assert work is not None
            await site.steering.pause("default", manifest, "mia")
            for held in (work, replace(work, fence=work.fence + 1)):  # the old fence, and the one that stands
                with pytest.raises(LeaseLost):
                    await site.database.run(submitting.persist_submissions, held, [], [], owner, Sender())
            assert await site.database.read(attempts_of, manifest) == ["SUCCEEDED"], "only the pause was told"

    asyncio.run(play())


def test_a_submission_that_waits_to_be_sent_again_waits_for_the_end_of_the_pause(database_url: str) -> None:
    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            site.engine.weather = [UNREACHED]
            manifest = (await site.admit(PAIRS)).manifest_id
            await site.step_all()
            assert len(site.engine.bodies) == 1
            await site.steering.pause("default", manifest, "mia")
            await site.database.run(make_resending_due)
            assert await site.submitting.resend_step() == 0
            await site.steering.resume("default", manifest, "mia")
            assert await site.submitting.resend_step() == 1
            assert await site.counts(manifest) == {"queued": 3}

    asyncio.run(play())


def test_an_engine_that_cannot_be_told_now_is_told_later(database_url: str) -> None:
    """The site's own work rests at once; the answer says that the engine has not been heard."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest = (await site.admit(PAIRS)).manifest_id
            await site.step_all()
            hear = site.engine.control

            async def deaf(*_: object) -> Answer:
                return UNREACHED

            site.engine.control = deaf  # type: ignore[method-assign,assignment]
            paused = await site.steering.pause("default", manifest, "mia")
            assert (paused.changed, paused.told) == (True, False)
            assert not (await site.views.status("default", manifest))["health"]["engine_told"]
            assert await site.steering.telling_step() == 0, "its teller may still be at it"
            site.engine.control = hear  # type: ignore[method-assign]
            await site.database.run(make_telling_due)
            assert await site.steering.telling_step() == 1
            assert [word["paused"] for _, word in site.engine.controls] == [True]
            assert (await site.views.status("default", manifest))["health"]["engine_told"]
            assert await site.steering.telling_step() == 0

    asyncio.run(play())


def test_only_the_owner_pauses_and_only_what_is_open(database_url: str) -> None:
    """[M-133] a second pause, an ended and a canceled manifest: nothing changes, and that is no error."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest = (await site.admit(PAIRS)).manifest_id
            for actor, workspace, code in (("eve", "default", "not_owner"), ("mia", "other", "not_found")):
                for act in (site.steering.pause, site.steering.resume):
                    with pytest.raises(CallerError) as refused:
                        await act(workspace, manifest, actor)
                    assert refused.value.code == code
            assert not (await site.steering.resume("default", manifest, "mia")).changed
            assert (await site.steering.pause("default", manifest, "mia")).changed
            assert not (await site.steering.pause("default", manifest, "mia")).changed
            assert (await site.steering.cancel("default", manifest, "mia")).changed
            assert (await site.views.status("default", manifest))["status"] == "canceled"
            for act in (site.steering.pause, site.steering.resume):
                assert not (await act("default", manifest, "mia")).changed
            assert [word["paused"] for _, word in site.engine.controls] == [True, False]

    asyncio.run(play())


def test_what_a_person_paused_makes_no_process_unready(database_url: str) -> None:
    """[M-304] the due work of a paused manifest waits for its owner, and for no worker."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest = (await site.admit(PAIRS)).manifest_id
            await site.enumeration.step()
            await site.database.run(make_overdue)
            assert set(await site.database.read(readiness.overdue)) == {
                "manifests",
                "preparation",
                "submission",
            }
            await site.steering.pause("default", manifest, "mia")
            assert await site.database.read(readiness.overdue) == {}
            health = (await site.views.status("default", manifest))["health"]
            assert (health["next_due_at"], health["scheduling_delayed"]) == (None, False)
            await site.steering.resume("default", manifest, "mia")
            assert (await site.views.status("default", manifest))["health"]["scheduling_delayed"]

    asyncio.run(play())


def test_a_retry_asks_for_the_right_to_edit_anew(database_url: str) -> None:
    """[M-134] a document named that may not be edited any more refuses; among all it is left out."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest = (await site.admit(PAIRS)).manifest_id
            await site.step_all()
            [body] = site.engine.submissions()
            refs = {item["ref"]: "backend_unavailable" for item in body["items"]}
            await site.deliver(event(body, "job-1", fail=refs))
            failures = (await site.views.failures("default", manifest))["items"]
            of_a = [item["intent_id"] for item in failures if item["document"] == "a.json"]
            site.source.foreign = {"a.json"}
            with pytest.raises(CallerError) as refused:
                await site.steering.retry("default", manifest, "mia", of_a)
            assert (refused.value.code, "a.json" in refused.value.message) == ("forbidden", True)
            assert await site.counts(manifest) == {"failed": 3}
            assert await site.steering.retry("default", manifest, "mia") == 1
            assert await site.counts(manifest) == {"failed": 2, "preparing": 1}
            with pytest.raises(CallerError) as nothing:
                await site.steering.retry("default", manifest, "mia")
            assert nothing.value.code == "nothing_to_retry"

    asyncio.run(play())


def test_a_retry_of_all_goes_by_pages_and_a_mark_that_outlives_its_process(database_url: str) -> None:
    """[M-132, M-136, M-137] the first page stands at the answer; what fails later is not tried by it."""

    async def play() -> None:
        documents = {f"d{number}.json": catalogue(one="One") for number in range(7)}
        async with stage(database_url, documents) as site:
            manifest = (await site.admit([(name, "de") for name in documents])).manifest_id
            await site.step_all()
            [body] = site.engine.submissions()
            refs = {item["ref"]: "backend_unavailable" for item in body["items"]}
            await site.deliver(event(body, "job-1", fail=refs))
            site.source.foreign = {"d0.json", "d1.json", "d4.json"}
            with bounded({"RETRY_PER_TRANSACTION": 2}):
                assert await site.steering.retry("default", manifest, "mia") == 2 + 5, (
                    "two, and at most the rest"
                )
                assert await site.counts(manifest) == {"failed": 5, "preparing": 2}
                await site.database.run(fail_pending, manifest)
                await site.database.run(fail_later, manifest, "d6.json")
                status = await site.views.status("default", manifest)
                assert status["completed_at"] is None, "its mark keeps it open"
                assert status["health"]["oldest_due_at"] is not None
                [mark] = await site.database.read(retrying.marked, System(), 5)
                page = await site.database.read(retrying.marked_page, System(), mark)
                assert page is not None
                assert await site.steering.retrying_step() == 1
                late = await site.database.run(retrying.go_on_retrying, System(), mark, page, [])
                assert late == 0, "another has done that page"
                assert await site.steering.retrying_step() == 0
            assert await site.database.read(retrying.marked, System(), 5) == []
            generations = await site.database.read(generations_of, manifest)
            assert generations == {1: ["d0", "d1", "d4", "d6"], 2: ["d2", "d3", "d5"]}
            assert await site.counts(manifest) == {"failed": 6, "preparing": 1}

    asyncio.run(play())


def test_a_cancel_ends_a_shard_in_parts(database_url: str) -> None:
    """And each part leaves counts that are true."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            manifest = (await site.admit(PAIRS)).manifest_id
            await site.enumeration.step()
            acts = site.database.acts
            with bounded({"CANCEL_INTENTS": 2}):
                assert (await site.steering.cancel("default", manifest, "mia")).changed
            assert await site.counts(manifest) == {"skipped": 3}
            assert site.database.acts - acts >= 1 + 2, "the decision, two parts"
            assert (await site.views.status("default", manifest))["status"] == "canceled"

    asyncio.run(play())


def test_a_failure_is_shown_to_who_may_edit_its_document(database_url: str) -> None:
    """[M-126] counters to every reader, rows by right; a source that cannot be asked shows none."""

    async def play() -> None:
        documents = {f"d{number}.json": b"{" for number in range(9)}
        async with stage(database_url, documents) as site:
            manifest = (await site.admit([(document, "de") for document in documents])).manifest_id
            await site.step_all()
            site.source.foreign = {f"d{number}.json" for number in range(1, 8)}
            shown: list[str] = []
            after: int | None = -1
            while after is not None:
                page = await site.views.failures("default", manifest, after, 1, "ann")
                assert page["total"] == 9
                shown += [item["document"] for item in page["items"]]
                after = page["next"]
            assert shown == ["d0.json", "d8.json"]
            assert len((await site.views.failures("default", manifest))["items"]) == 9

    asyncio.run(play())


def test_health_tells_what_is_due_and_who_let_go(database_url: str) -> None:
    """[M-303] next due, oldest due, claims that ran out, the last error."""

    async def play() -> None:
        async with stage(database_url, DOCUMENTS) as site:
            site.engine.weather = [UNREACHED]
            manifest = (await site.admit(PAIRS)).manifest_id
            fresh = (await site.views.status("default", manifest))["health"]
            assert fresh["next_due_at"] == fresh["oldest_due_at"] is not None
            assert (fresh["stale_claims"], fresh["last_error"], fresh["engine_told"]) == (0, None, True)
            await site.step_all()
            waiting = (await site.views.status("default", manifest))["health"]
            assert waiting["next_due_at"] is not None
            assert waiting["oldest_due_at"] is None
            assert waiting["last_error"] == {"code": "backend_unavailable", "message": "nobody listens"}
            await site.database.run(_let_claims_run_out)
            assert (await site.views.status("default", manifest))["health"]["stale_claims"] == 1

    asyncio.run(play())


def _let_claims_run_out(tx: Tx) -> None:
    held = {"lease_owner": "host/boot/9/9", "lease_expires_at": tx.now - 1}
    tx.touched(sa.update(tables.shards).values(**held))
