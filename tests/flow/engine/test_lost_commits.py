"""F6 and F5: a commit whose answer is lost, at each step of a job; connections that are cut while idle."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dragoman.kernel.errors import CommitUnknown, StoreError
from dragoman.kernel.identity import SystemChance
from dragoman.wiring.rounds import opened
from dragoman.wiring.settings import Settings
from tests.doubles.proxy import Deed, Proxy, Rule
from tests.flow.engine.world import Life, Process, World, accepted_calls, rehearsal, submission, world
from tests.store.test_faults import behind, commit_of

pytestmark = pytest.mark.anyio

_ACTS = ("accept_submission", "claim_job", "start_call", "settle_call", "close_call", "finish_job")


class _Losing(Life):
    """Lives on, and has the network lose the commit of one act, once."""

    def __init__(self, act: str, proxy: Proxy, commit: bytes, deed: Deed) -> None:
        super().__init__()
        self._next = f"before {act}"
        self._lose: Callable[[], Rule] = lambda: proxy.on(commit, deed)
        self.lost: list[Rule] = []

    def point(self, name: str) -> None:
        super().point(name)
        if name == self._next:
            self._next = ""
            self.lost.append(self._lose())


async def _until_ended(here: World, job_id: str) -> None:
    for _ in range(6):
        with contextlib.suppress(CommitUnknown, StoreError):
            await Process(here).drain()
            if (await here.view(job_id))["status"] == "completed":
                return
            await here.abandon()
            await here.hasten()
    raise AssertionError("the job never ended")


@pytest.mark.parametrize("deed", ["cut_answer", "cut_before"])
@pytest.mark.parametrize("act", _ACTS)
async def test_a_lost_commit_costs_no_job_no_second_call_and_no_second_event(
    server_url: str, act: str, deed: Deed
) -> None:
    """F6: submit, claim, complete and the outbox row of the same transaction; the same id, the same job."""
    provider = rehearsal(microusd_per_token=1, askable=True)
    body = submission({"a": {"t": "Hello"}}, submission_id=SystemChance().new_id())
    with behind(server_url) as (url, proxy):
        async with world(url, provider) as here:
            lost = [proxy.on(commit_of(server_url), deed)] if act == "accept_submission" else []
            first = await here.acceptance.accept("ada", "home", "docs", body, None, local=True)
            again = await here.acceptance.accept("ada", "home", "docs", body, None, local=True)
            assert (again.job_id, again.created) == (first.job_id, False)
            life = _Losing(act, proxy, commit_of(server_url), deed)
            with contextlib.suppress(CommitUnknown, StoreError):
                await Process(here, life).drain()
            await here.abandon()
            await here.hasten()
            await _until_ended(here, first.job_id)
            assert [rule.happened.is_set() for rule in (*lost, *life.lost)] == [True]
            assert len(await here.rows("jobs")) == len(await here.rows("outbox")) == 1
            assert accepted_calls(provider) == len(await here.rows("ai_usage")) == 1
            await here.assert_money_is_true()


def _settings(url: str, folder: Path) -> Settings:
    return Settings(database_url=url, root=folder, state_folder=folder / ".dragoman", provider="pseudo")


@pytest.fixture
def proxied(server_url: str) -> Iterator[tuple[str, Proxy]]:
    with behind(server_url) as found:
        yield found


async def test_a_worker_whose_connections_were_cut_finds_work_by_its_poll(
    server_url: str, proxied: tuple[str, Proxy], tmp_path: Path
) -> None:
    """F5: nobody listens, poll is the contract: after a cut the next look finds what nobody told it of."""
    url, proxy = proxied
    async with (
        opened(_settings(url, tmp_path), roles=("engine",)) as worker,
        opened(_settings(server_url, tmp_path), roles=()) as door,
    ):
        async with asyncio.timeout(20):
            while not worker.workers.idle:
                await asyncio.sleep(0.01)
        proxy.cut_all()
        body = submission({"a": {"t": "Hello"}})
        accepted = await door.acceptance.accept("ada", "default", "docs", body, None, local=True)
        async with asyncio.timeout(20):
            while True:
                view = await door.engine.job("default", accepted.job_id, 5)
                if view is not None and view["status"] == "completed":
                    break
                await asyncio.sleep(0.05)
