"""A submission becomes one job, however often, by whomever and in whatever moment it is sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from dragoman.flow.engine.acceptance import Acceptance
from dragoman.kernel.errors import CallerError, CommitUnknown, DragomanError
from dragoman.kernel.identity import SystemChance, secret
from dragoman.kernel.offload import InlineOffload
from dragoman.kernel.sealing import Sealer
from dragoman.model.jobs import Accepted, Capacity
from dragoman.queues.memory import MemoryQueue
from tests.flow.engine.world import (
    HOME,
    PRINCIPAL,
    Process,
    World,
    accepted_calls,
    rehearsal,
    submission,
    world,
)

pytestmark = pytest.mark.anyio

FIELDS = {"a": {"t": "Hello"}}


async def _send(here: World, body: bytes, principal: str = PRINCIPAL, project: str = "docs") -> Accepted:
    return await here.acceptance.accept(principal, HOME.id, project, body, None, local=True)


async def test_the_same_submission_is_the_same_job_whatever_its_state(database_url: str) -> None:
    """M-210, M-211, M-217, T10: one job, one set of calls, one charge; replays in every state say `same`."""
    provider = rehearsal(microusd_per_token=1)
    async with world(database_url, provider) as here:
        body = submission(FIELDS)
        first = await _send(here, body)
        assert first.created
        again = await _send(here, body)
        assert (again.created, again.job_id, again.status) == (False, first.job_id, "queued")
        await Process(here).drain()
        ended = await _send(here, body)
        assert (ended.created, ended.job_id, ended.status) == (False, first.job_id, "completed")
        assert await Process(here).drain() == []
        assert accepted_calls(provider) == 1
        assert len(await here.rows("jobs")) == len(await here.rows("ai_usage")) == 1


@pytest.mark.parametrize("gone", ["provider", "room", "sealing key", "secret"])
async def test_the_same_submission_is_found_though_a_new_one_would_be_refused(
    database_url: str, gone: str
) -> None:
    """M-211: what is worked, and paid for, is never called refused; other bytes still are."""
    async with world(database_url) as here:
        named = {"callbackUrl": "https://site.example/callbacks", "options": {"provider_config": "rehearsal"}}
        body, sealer, word = submission(FIELDS, **named), Sealer(secret(32)), "secret-of-the-site"
        first = await _remote(here, sealer).accept(PRINCIPAL, HOME.id, "docs", body, word)
        others = World(here.database, [rehearsal(name="other")])
        later = {
            "provider": _remote(others, sealer),
            "room": _remote(here, sealer, Capacity(field_chars_max=2)),
            "sealing key": _remote(here, None),
            "secret": _remote(here, sealer),
        }[gone]
        word = "" if gone == "secret" else word
        again = await later.accept(PRINCIPAL, HOME.id, "docs", body, word)
        assert (again.created, again.job_id) == (False, first.job_id)
        for other in (body.replace(b"Hello", b"Hi all"), b"{}"):
            with pytest.raises(DragomanError):
                await later.accept(PRINCIPAL, HOME.id, "docs", other, word)
        with pytest.raises(DragomanError):
            await later.accept("eve", HOME.id, "docs", body, word)


async def test_a_race_of_equal_posts_makes_one_job(database_url: str) -> None:
    """M-217, T10: twenty at once, and one job with twenty equal answers."""
    async with world(database_url) as here:
        body = submission(FIELDS)
        answers = await asyncio.gather(*(_send(here, body) for _ in range(20)))
        assert len({answer.job_id for answer in answers}) == 1
        assert [answer.created for answer in answers].count(True) == 1
        assert len(await here.rows("jobs")) == 1
        assert len(await here.rows("job_fields")) == 1


async def test_key_order_and_number_spelling_are_no_difference(sqlite_url: str) -> None:
    """M-209: the fingerprint covers the canonical body."""
    async with world(sqlite_url) as here:
        said = json.loads(submission(FIELDS, options={"batch_size": 7}))
        first = await _send(here, json.dumps(said).encode())
        turned = json.dumps(dict(reversed(said.items())), indent=2).replace(": 7", ": 0.7e1")
        assert not (await _send(here, turned.encode())).created
        assert (await _send(here, turned.encode())).job_id == first.job_id


@pytest.mark.parametrize("difference", ["text", "project", "options", "order of items"])
async def test_other_content_under_the_same_id_is_a_conflict(database_url: str, difference: str) -> None:
    """[M-208, M-213], T10: `submission_id_conflict`, and nothing is created."""
    async with world(database_url) as here:
        items = {"a": {"t": "Hello"}, "b": {"t": "World"}}
        said = json.loads(submission(items))
        await _send(here, json.dumps(said).encode())
        project = "docs"
        match difference:
            case "text":
                said["items"][0]["fields"]["t"] = "Hello!"
            case "project":
                project = "other"
            case "options":
                said["options"] = {"batch_size": 3}
            case _:
                said["items"].reverse()
        with pytest.raises(CallerError) as refused:
            await _send(here, json.dumps(said).encode(), project=project)
        assert refused.value.code == "submission_id_conflict"
        assert len(await here.rows("jobs")) == 1


async def test_another_principal_does_not_find_it(database_url: str) -> None:
    """M-212: not even that it exists, with the very same bytes."""
    async with world(database_url) as here:
        body = submission(FIELDS)
        await _send(here, body)
        with pytest.raises(CallerError) as refused:
            await _send(here, body, principal="eve")
        assert refused.value.code == "not_found"


async def test_a_commit_whose_answer_was_lost_is_repaired_by_asking_again(sqlite_url: str) -> None:
    """M-218: acceptance is repeatable: the second run finds its own job."""

    class LosesOnce:
        """A database whose first commit is made, and whose answer does not come."""

        def __init__(self, here: World) -> None:
            self._performer = here.database._writer
            self.lost = 0

        async def perform(self, call: Any) -> Any:
            result = await self._performer.perform(call)
            if not self.lost:
                self.lost = 1
                raise CommitUnknown("the answer was lost")
            return result

        async def close(self) -> None: ...

    async with world(sqlite_url) as here:
        losing = LosesOnce(here)
        here.database._writer, kept = losing, here.database._writer
        try:
            accepted = await _send(here, submission(FIELDS))
        finally:
            here.database._writer = kept
        assert losing.lost == 1
        assert [row.id for row in await here.rows("jobs")] == [accepted.job_id]


async def test_every_job_has_a_payload_from_which_it_can_be_queued_again(sqlite_url: str) -> None:
    """M-232, J-011: written in the transaction that makes the job, which starts queued."""
    async with world(sqlite_url) as here:
        accepted = await here.accept(FIELDS)
        [row] = await here.rows("jobs")
        assert json.loads(row.queue_payload)["job_id"] == accepted.job_id
        assert row.state == "queued"
        job_id, ack, _ = await here.queue.dequeue()
        await ack()
        assert job_id == accepted.job_id


async def test_a_job_is_accepted_though_nobody_can_be_woken(sqlite_url: str) -> None:
    """The answer is given after the commit; a closed queue delays the job, and changes nothing else."""
    async with world(sqlite_url) as here:
        await here.queue.close()
        accepted = await here.accept(FIELDS)
        assert accepted.created
        assert await Process(here).drain() == ["completed"]


def _remote(here: World, sealer: Sealer | None, capacity: Capacity | None = None) -> Acceptance:
    return Acceptance(
        here.database,
        MemoryQueue(),
        here.completion.resolve,
        InlineOffload(),
        SystemChance(),
        capacity,
        sealer,
    )


async def test_a_remote_secret_is_kept_sealed_on_first_creation_only(database_url: str) -> None:
    """[M-214..M-216]: it opens for its own job, an exact replay never changes it, and no row shows it."""
    async with world(database_url) as here:
        sealer = Sealer(secret(32))
        remote = _remote(here, sealer)
        body = submission(FIELDS, callbackUrl="https://site.example/callbacks")
        first = await remote.accept(PRINCIPAL, HOME.id, "docs", body, "first-secret-of-the-site")
        await remote.accept(PRINCIPAL, HOME.id, "docs", body, "other-secret-of-the-site")
        [row] = await here.rows("jobs")
        assert sealer.open(row.callback_secret, first.job_id) == "first-secret-of-the-site"
        assert "secret-of" not in str(row)


@pytest.mark.parametrize("said", [None, "", "x" * 15, "x" * 257])
async def test_a_secret_of_the_wrong_size_is_refused(sqlite_url: str, said: str | None) -> None:
    """M-214: 16 to 256 bytes."""
    async with world(sqlite_url) as here:
        body = submission(FIELDS, callbackUrl="https://site.example/callbacks")
        with pytest.raises(CallerError, match="16 to 256"):
            await _remote(here, Sealer(secret(32))).accept(PRINCIPAL, HOME.id, "docs", body, said)
        assert await here.rows("jobs") == []


@pytest.mark.parametrize("size", [16, 256])
async def test_a_secret_of_the_right_size_is_taken(sqlite_url: str, size: int) -> None:
    """M-214, at its bounds."""
    async with world(sqlite_url) as here:
        body = submission(FIELDS, callbackUrl="https://site.example/callbacks")
        remote = _remote(here, Sealer(secret(32)))
        assert (await remote.accept(PRINCIPAL, HOME.id, "docs", body, "x" * size)).created


async def test_without_a_sealing_key_remote_work_comes_without_callback_only(sqlite_url: str) -> None:
    """Law 10: `sealing_key_missing`; the site reconciles instead."""
    async with world(sqlite_url) as here:
        remote = _remote(here, None)
        body = submission(FIELDS, callbackUrl="https://site.example/callbacks")
        with pytest.raises(DragomanError) as refused:
            await remote.accept(PRINCIPAL, HOME.id, "docs", body, "x" * 20)
        assert refused.value.code == "sealing_key_missing"
        accepted = await remote.accept(PRINCIPAL, HOME.id, "docs", submission(FIELDS, callbackUrl=None), None)
        assert await Process(here).drain() == ["completed"]
        [event] = await here.rows("outbox")
        assert (event.url, event.next_attempt_at) == ("", None)
        assert (await here.view(accepted.job_id))["status"] == "completed"


async def test_an_unknown_provider_is_refused_before_anything_is_queued(sqlite_url: str) -> None:
    """GJ-6: `provider_unknown`, and no job."""
    async with world(sqlite_url) as here:
        with pytest.raises(CallerError) as refused:
            await here.accept(FIELDS, options={"provider_config": "nobody"})
        assert refused.value.code == "provider_unknown"
        assert await here.rows("jobs") == []


async def test_a_body_names_its_project_where_the_door_does_not(sqlite_url: str) -> None:
    """M-209 (gap 14): whose memory is asked, and no other's."""
    async with world(sqlite_url) as here:
        named = submission(FIELDS, project="site")
        accepted = await here.acceptance.accept(PRINCIPAL, HOME.id, "", named, None, local=True)
        assert (await here.view(accepted.job_id))["project"] == "site"


@pytest.mark.parametrize("named", ["", "platform", "rehearsal"])
async def test_the_resolved_model_is_written_on_the_job(sqlite_url: str, named: str) -> None:
    """[J-006..J-008]: empty and `platform`, and only these, are the platform's account."""
    async with world(sqlite_url) as here:
        options: Mapping[str, Any] = {"provider_config": named} if named else {}
        accepted = await here.accept(FIELDS, options=options)
        view = await here.view(accepted.job_id)
        assert (view["provider_config_id"], view["model"]) == (named, "rehearsal")
