"""Step 6: people steer. What they ask for is durable before they are answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from dragoman.kernel import canonical
from dragoman.kernel.errors import CallerError
from dragoman.kernel.limits import ACTIVATE_PER_TRANSACTION, SWEEP_PAGE
from dragoman.kernel.offload import InlineOffload, Offload
from dragoman.ledger.acting import Ledger
from dragoman.model.contracts import Source
from dragoman.model.scopes import System, Workspace
from dragoman.store.acts import retrying, steering
from dragoman.store.database import Database

_DOCUMENTS_ASKED = 1_000
"""How many documents a source is asked about at once."""


class Steered(NamedTuple):
    """Whether a decision changed anything, and whether the engine is known to have heard of it."""

    changed: bool
    told: bool


class Steering:
    """Retry, pause, go on, cancel, and pairs that become free."""

    def __init__(
        self,
        database: Database,
        ledger: Ledger,
        owner: str,
        source_of: Callable[[Mapping[str, Any]], Source],
        wake: Callable[[], Awaitable[None]],
        offload: Offload | None = None,
    ) -> None:
        self._database = database
        self._ledger = ledger
        self._owner = owner
        self._source_of = source_of
        self._wake = wake
        self._offload = offload or InlineOffload()

    async def retry(
        self, workspace: str, manifest_id: str, actor: str, intent_ids: Sequence[str] | None = None
    ) -> int:
        """Open a new generation of retryable failures; how many it concerns. Raises `CallerError`
        (`nothing_to_retry` …).

        Where all are meant, a first page of them is open when this returns; the others follow by the sweep.

        Whether the actor may edit the documents is asked anew. One that may not be edited refuses a request
        that names it; where all failures are meant it is left out.
        """
        scope = Workspace(workspace)
        if intent_ids is None:
            count = await self._retry_all(scope, manifest_id, actor)
        else:
            found = await self._database.read(retrying.named, scope, manifest_id, actor, intent_ids)
            if foreign := await self._foreign(found):
                raise CallerError(f"{actor} may not edit {foreign[0]}", "forbidden", place="intent_ids")
            count = await self._database.run(retrying.retry_named, scope, manifest_id, actor, intent_ids)
        await self._wake()
        return count

    async def _retry_all(self, scope: Workspace, manifest_id: str, actor: str) -> int:
        """Begin with the first page of which something may be edited; the sweep goes on with the others."""
        after = -1
        while True:
            found = await self._database.read(retrying.page, scope, manifest_id, actor, after)
            foreign = await self._foreign(found)
            if not found.more or len(foreign) < len(found.documents):
                return await self._database.run(
                    retrying.begin_retry, scope, manifest_id, actor, found, foreign
                )
            after = found.through

    async def retrying_step(self) -> int:
        """One more page of every retry that is under way; how many intents it opened."""
        opened = 0
        for mark in await self._database.read(retrying.marked, System(), SWEEP_PAGE):
            found = await self._database.read(retrying.marked_page, System(), mark)
            if found is not None:
                foreign = await self._foreign(found)
                act = retrying.go_on_retrying
                opened += await self._database.run(act, System(), mark, found, foreign)
        return opened

    async def _foreign(self, found: retrying.Retryable) -> list[str]:
        """The documents that whoever asked may not edit now."""
        source = self._source_of(found.settings)
        documents = list(found.documents)
        foreign: list[str] = []
        for start in range(0, len(documents), _DOCUMENTS_ASKED):
            page = documents[start : start + _DOCUMENTS_ASKED]
            rights = await self._offload.call(source.can_edit, found.actor, page)
            foreign += [document for document in page if not rights.get(document, False)]
        return foreign

    async def pause(self, workspace: str, manifest_id: str, actor: str) -> Steered:
        """Let a manifest rest: no attempt of it starts after this returns, here or, once `told`, there.

        What has begun comes to its end and is kept; what waits for its turn waits on.
        """
        return await self._decide(steering.pause_manifest, workspace, manifest_id, actor)

    async def resume(self, workspace: str, manifest_id: str, actor: str) -> Steered:
        """Let a manifest go on where it stood."""
        return await self._decide(steering.resume_manifest, workspace, manifest_id, actor)

    async def cancel(self, workspace: str, manifest_id: str, actor: str) -> Steered:
        """Cancel what is open: nothing of it starts after this returns, here or, once `told`, there.

        What the engine holds ends by the engine's own event; what it finished is kept in memory.
        """
        return await self._decide(steering.cancel_manifest, workspace, manifest_id, actor)

    async def telling_step(self) -> int:
        """Carry out decisions that a vanished process left half done; how many."""
        due = await self._database.run(steering.due_decisions, SWEEP_PAGE)
        for decision in due:
            await self._carry_out(decision)
        return len(due)

    async def free_pairs_step(self) -> int:
        """Give pairs whose holder has ended to those that wait for them; how many became due."""
        return await self._database.run(steering.free_pairs, ACTIVATE_PER_TRANSACTION)

    async def _decide(
        self, decide: Callable[..., steering.Decision | None], workspace: str, manifest_id: str, actor: str
    ) -> Steered:
        decision = await self._database.run(decide, Workspace(workspace), manifest_id, actor)
        if decision is None:
            return Steered(changed=False, told=True)
        told = await self._carry_out(decision)
        await self._wake()
        return Steered(changed=True, told=told)

    async def _carry_out(self, decision: steering.Decision) -> bool:
        """Empty the shards of a canceled manifest, and tell the engine; whether it has heard."""
        if decision.canceled:
            for shard in await self._database.read(steering.shards_of, decision.manifest_id):
                while await self._database.run(steering.cancel_shard, decision.manifest_id, shard):
                    pass
        word: dict[str, object] = {
            "revision": decision.revision,
            "paused": decision.paused and not decision.canceled,
            "canceled": decision.canceled,
        }
        body = canonical.encode(word | ({"budget": None} if decision.canceled else {}))
        return await self._ledger.act(
            "submission",
            steering.begin_control,
            (decision.workspace, decision.manifest_id, decision.revision, body, self._owner),
            steering.record_control,
            (decision.manifest_id, decision.revision),
        )
