"""Step 6b: a person gives up what an engine has lost, for example since its database was put back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from dragoman.kernel.errors import CallerError
from dragoman.model.contracts import EngineClient
from dragoman.model.scopes import Workspace
from dragoman.store.acts import giving_up
from dragoman.store.database import Database

_ASK_SECONDS = 10.0


class GivenUp(NamedTuple):
    """How many jobs were given up, and how many intents ended with them."""

    jobs: int
    intents: int


class Losses:
    """Ends what waits for jobs that the engine of this `account` does not know."""

    def __init__(
        self,
        database: Database,
        engine: EngineClient,
        account: Callable[[], str],
        wake: Callable[[], Awaitable[None]],
    ) -> None:
        self._database = database
        self._engine = engine
        self._account = account
        self._wake = wake

    async def give_up(
        self, workspace: str, manifest_id: str, actor: str, *, is_admin: bool = False
    ) -> GivenUp:
        """Fail what waits for jobs of a manifest that reconciliation found unknown, and that are so still.

        The engine is asked about each once more; a page of jobs at a time. Raises `CallerError`: not_found,
        not_owner, nothing_lost; and `OutsideError` where the engine does not answer: the others stay open.
        """
        scope = Workspace(workspace)
        lost = await self._database.read(
            giving_up.lost_submissions, scope, manifest_id, actor, is_admin, self._account()
        )
        jobs = intents = 0
        for submission_id, job_id in lost:
            if await self._engine.job(workspace, job_id, _ASK_SECONDS) is not None:
                continue
            jobs += 1
            intents += await self._database.run(
                giving_up.give_up, scope, manifest_id, actor, is_admin, submission_id
            )
        if not jobs:
            raise CallerError("the engine knows these jobs again; they end by themselves", "nothing_lost")
        await self._wake()
        return GivenUp(jobs, intents)
