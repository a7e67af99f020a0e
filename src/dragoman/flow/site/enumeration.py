"""Step 2: the stored request becomes intents, at most 100 a transaction, resumable at any instant.

The ordinals that exist say how far it came; there is no other cursor.
"""

from __future__ import annotations

from dragoman.kernel.clock import Clock
from dragoman.kernel.limits import EXPAND_PER_TRANSACTION, SHARD_LEASE_SECONDS, STEP_SECONDS
from dragoman.model.contracts import LeaseKeeper
from dragoman.store.acts import expanding
from dragoman.store.database import Database


class Enumeration:
    """Expands the pairs of one manifest a step."""

    def __init__(self, database: Database, keeper: LeaseKeeper, clock: Clock) -> None:
        self._database = database
        self._keeper = keeper
        self._clock = clock

    async def step(self) -> int:
        """Expand one claimed manifest until it is done or the step's time is over; how many intents were
        made.
        """
        manifest = await self._database.run(expanding.claim_enumerating_manifest, self._keeper.owner)
        if manifest is None:
            return 0
        lease = self._keeper.hold("manifests", (manifest.id,), manifest.fence, SHARD_LEASE_SECONDS)
        until = self._clock.monotonic() + STEP_SECONDS
        made = 0
        try:
            while not lease.lost and self._clock.monotonic() < until:
                far = await self._database.run(
                    expanding.expand_next_pairs, manifest.id, manifest.fence, EXPAND_PER_TRANSACTION
                )
                made = far.expanded
                if far.expanded >= far.total:
                    return made
            await self._database.run(expanding.rest_enumeration, manifest.id, manifest.fence)
        finally:
            self._keeper.drop(lease)
        return made
