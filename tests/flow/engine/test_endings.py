"""Every way in which a job ends: one transaction, one end, one event."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import sqlalchemy as sa

from dragoman.content.locales import choose_code
from dragoman.model.contracts import Provider
from dragoman.providers.chat import ChatProvider
from dragoman.store.acts import finishing
from dragoman.store.schema import engine as tables
from dragoman.store.transaction import Tx
from tests.flow.engine.world import HOME, Life, Process, World, numbered, rehearsal, world

pytestmark = pytest.mark.anyio

Story = Callable[[World], Awaitable[object]]


async def _worked(here: World) -> None:
    await Process(here).drain()


async def _canceled_before_its_start(here: World) -> None:
    [job] = await here.rows("jobs")
    await here.controls.cancel(HOME, job.id, "ada")


async def _canceled_by_its_client_job(here: World) -> None:
    await here.put(revision=1, canceled=True)


async def _canceled_while_nobody_had_it(here: World) -> None:
    await Process(here, Life(after=("after claim_job", 1))).drain_until_killed()
    await _canceled_before_its_start(here)
    await here.abandon()
    await Process(here).drain()


async def _poisoned(here: World) -> None:
    for _ in range(6):
        await Process(here, Life(after=("after load_job", 1))).drain_until_killed()
        await here.abandon()
    await Process(here).drain()


async def _without_its_provider(here: World) -> None:
    await here.database.run(_rename_provider)
    await Process(here).drain()


async def _past_its_deadline(here: World) -> None:
    await Process(here).drain()
    await here.database.run(_bring_deadline)
    await here.hasten()
    await Process(here).drain()


def _keyless() -> Provider:
    return ChatProvider("chat", "m", "https://api.example.com/v1", lambda: None, choose_code, priced=True)


def _frenchless() -> Provider:
    return ChatProvider("chat", "m", "http://127.0.0.1:9/v1", lambda: None, choose_code, locales=["en", "de"])


def _out_of_reach() -> Provider:
    return rehearsal(weather={"unreachable": 1.0})


ENDS: list[tuple[str, Callable[[], Provider], Story, str, str]] = [
    ("all translated", rehearsal, _worked, "completed", ""),
    ("some failed", lambda: rehearsal(refuses=["number ac"]), _worked, "completed", ""),
    ("all failed", lambda: rehearsal(refuses=["number"]), _worked, "completed", ""),
    ("canceled at once", rehearsal, _canceled_before_its_start, "canceled", "canceled"),
    ("canceled by control", rehearsal, _canceled_by_its_client_job, "canceled", "canceled"),
    ("canceled between workers", rehearsal, _canceled_while_nobody_had_it, "canceled", "canceled"),
    ("poison", rehearsal, _poisoned, "failed", "gave_up"),
    ("provider gone", rehearsal, _without_its_provider, "failed", "provider_unknown"),
    ("no key", _keyless, _worked, "failed", "provider_credentials_missing"),
    ("no such locale", _frenchless, _worked, "failed", "unsupported_locale"),
    ("weather", _out_of_reach, _past_its_deadline, "failed", "provider_unavailable"),
]  # fmt: skip


@pytest.mark.parametrize("end", ENDS, ids=[end[0] for end in ENDS])
async def test_every_end_of_a_job_makes_exactly_one_event(
    sqlite_url: str, end: tuple[str, Callable[[], Provider], Story, str, str]
) -> None:
    """[M-220, M-225, M-233, M-239, M-242, M-254]: status and event agree, and the view is what was frozen."""
    _, provider, story, status, code = end
    async with world(sqlite_url, provider()) as here:
        accepted = await here.accept({"a": numbered(4)})
        await story(here)
        view = await here.view(accepted.job_id)
        assert (view["status"], view["code"]) == (status, code)
        [event] = await here.rows("outbox")
        assert (event.event, event.delivery_sequence, event.state) == (f"job.{status}", 1, "pending")
        frozen = json.loads(bytes(event.payload))
        assert frozen.items() <= view.items()
        assert {
            "submission_id": accepted.submission_id,
            "job_id": accepted.job_id,
            "clientJobId": "manifest-1",
            "event_sequence": 1,
            "status": status,
            "parked_for": "",
        }.items() <= frozen.items()
        assert {"paid", "wasted", "at_risk", "reserved", "via_memory", "via_ai", "passed_through"} <= set(
            frozen["usage"]
        )
        [item] = frozen["items"]
        assert item["ref"] == "a"
        assert set(item["fields"]) == set(numbered(4))
        counts = item["counts"]
        assert counts["done"] + counts["failed"] + counts["passed_through"] == counts["total"] == 4
        [job] = await here.rows("jobs")
        assert (job.lease_owner, job.next_attempt_at, job.parked_for) == (None, None, "")
        assert all(call.state == "closed" for call in await here.rows("calls"))
        assert await Process(here).drain() == []
        await here.assert_money_is_true()


async def test_a_rollback_leaves_neither_status_nor_event(database_url: str) -> None:
    """[M-235, M-350]: whatever breaks before the commit, both are absent, and the job ends later."""
    async with world(database_url) as here:
        accepted = await here.accept({"a": {"t": "Hello"}})
        claimed = await Process(here).dispatch.take()
        assert claimed is not None
        with pytest.raises(ArithmeticError):
            await here.database.run(_break_after_finishing, claimed.job_id, claimed.fence)
        assert await here.rows("outbox") == []
        assert (await here.view(accepted.job_id))["status"] == "processing"
        await here.abandon()
        await Process(here).drain()
        assert len(await here.rows("outbox")) == 1


async def test_a_failed_job_keeps_its_reason_and_what_it_has_spent(sqlite_url: str) -> None:
    """[J-020, J-050]: what was translated is delivered; the rest has the code, and the money stands."""
    provider = rehearsal(script=["answer"], weather={"unreachable": 1.0}, microusd_per_token=1)
    async with world(sqlite_url, provider) as here:
        options = {"batch_size": 2, "concurrency": 1}
        accepted = await here.accept({"a": numbered(4)}, options=options)
        await _past_its_deadline(here)
        view = await here.view(accepted.job_id)
        assert (view["status"], view["items_failed"], view["tokens_used"] > 0) == ("completed", 1, True)
        assert len(await here.texts(accepted.job_id)) == 2
        assert {failed["code"] for failed in (await here.failures(accepted.job_id)).values()} == {
            "provider_unavailable"
        }


def _break_after_finishing(tx: Tx, job_id: str, fence: int) -> None:
    finishing.finish_job(tx, job_id, fence, "completed")
    raise ArithmeticError


def _rename_provider(tx: Tx) -> None:
    [row] = tx.all(sa.select(tables.jobs.c.options))
    options: dict[str, Any] = json.loads(row.options) | {"provider": "gone"}
    tx.touched(sa.update(tables.jobs).values(options=json.dumps(options)))


def _bring_deadline(tx: Tx) -> None:
    tx.touched(sa.update(tables.jobs).values(deadline_at=tx.now + 1))
