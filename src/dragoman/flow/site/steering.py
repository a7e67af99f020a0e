"""Step 6: people steer. What they ask for is durable before they are answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from dragoman.kernel import canonical
from dragoman.kernel.limits import ACTIVATE_PER_TRANSACTION, SWEEP_PAGE
from dragoman.ledger.acting import Ledger
from dragoman.model.scopes import Workspace
from dragoman.store.acts import steering, viewing
from dragoman.store.database import Database

_FINAL = 2**52
"""The revision of a cancel: later than any other, which count microseconds."""
_CANCELED = canonical.encode({"revision": _FINAL, "paused": False, "canceled": True, "budget": None})


class Steering:
    """Retry, cancel, and pairs that become free."""

    def __init__(
        self, database: Database, ledger: Ledger, owner: str, wake: Callable[[], Awaitable[None]]
    ) -> None:
        self._database = database
        self._ledger = ledger
        self._owner = owner
        self._wake = wake

    async def retry(
        self, workspace: str, manifest_id: str, actor: str, intent_ids: Sequence[str] | None = None
    ) -> int:
        """Open a new generation of retryable failures; how many. Raises `CallerError` (`nothing_to_retry`
        …).
        """
        retried = await self._database.run(
            steering.retry_failed, Workspace(workspace), manifest_id, actor, intent_ids
        )
        await self._wake()
        return retried.intents

    async def cancel(self, workspace: str, manifest_id: str, actor: str) -> bool:
        """Cancel what is open: nothing of it starts after this returns. False when it had ended before.

        What the engine holds ends by the engine's own event; what it finished is kept in memory.
        """
        scope = Workspace(workspace)
        if not await self._database.run(steering.cancel_manifest, scope, manifest_id, actor):
            return False
        manifest = await self._database.read(viewing.manifest_row, scope, manifest_id)
        await self._carry_out(workspace, manifest_id, manifest.total)
        await self._wake()
        return True

    async def cancellation_step(self) -> int:
        """Carry out cancellations that a vanished process left half done; how many."""
        due = await self._database.run(steering.due_cancellations, SWEEP_PAGE)
        for workspace, manifest_id, total in due:
            await self._carry_out(workspace, manifest_id, total)
        return len(due)

    async def free_pairs_step(self) -> int:
        """Give pairs whose holder has ended to those that wait for them; how many became due."""
        return await self._database.run(steering.free_pairs, ACTIVATE_PER_TRANSACTION)

    async def _carry_out(self, workspace: str, manifest_id: str, total: int) -> None:
        for shard in steering.shards_of(total):
            await self._database.run(steering.cancel_shard, manifest_id, shard)
        await self._ledger.act(
            "submission",
            steering.begin_control,
            (workspace, manifest_id, _FINAL, _CANCELED, self._owner),
            steering.record_control,
            (manifest_id,),
        )
