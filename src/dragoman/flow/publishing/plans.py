"""First step of publishing: what is settled becomes a plan, frozen with what it expects to find.

Sources and targets are read outside any transaction; identities are resolved here, so that creating an
execution calls nobody. What cannot be read now is asked for again later and keeps nothing else waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.content import documents, placing
from dragoman.content.selection import rule_of
from dragoman.kernel.errors import CallerError, SourceError
from dragoman.kernel.journal import logger
from dragoman.kernel.limits import PUBLISH_LEASE_SECONDS
from dragoman.kernel.offload import Offload
from dragoman.model.contracts import Format, Source
from dragoman.model.documents import Document
from dragoman.model.publications import PlannedStep, PlanningWork, Postponed, Publishable
from dragoman.model.scopes import System
from dragoman.store.acts import compensating, planning
from dragoman.store.database import Database
from dragoman.store.keeping import Keeper

_log = logger(__name__)


class Planning:
    """Plans the due requests of one manifest a step."""

    def __init__(
        self,
        database: Database,
        keeper: Keeper,
        offload: Offload,
        source_of: Callable[[Mapping[str, Any]], Source],
        formats: Sequence[Format],
        lease_seconds: float = PUBLISH_LEASE_SECONDS,
    ) -> None:
        self._database = database
        self._keeper = keeper
        self._offload = offload
        self._source_of = source_of
        self._formats = formats
        self._lease_seconds = lease_seconds

    async def step(self) -> int:
        """Claim, look at every target, write the plan; how many intents were looked at."""
        work = await self._keeper.claim(planning.claim_requests, self._keeper.owner, self._lease_seconds)
        if work is None:
            return 0
        leases = [
            self._keeper.hold("publication_requests", (name,), fence, self._lease_seconds)
            for name, fence in work.requests
        ]
        try:
            intents = await self._database.read(planning.publishable, work)
            steps, postponed = await self._offload.call(self._plan_all, work, intents)
            await self._database.run(planning.write_plan, work, steps, postponed)
        finally:
            for lease in leases:
                self._keeper.drop(lease)
        return len(work.intent_ids)

    async def revert_step(self) -> int:
        """Take back one more page of plans of a manifest that is being reverted; 0 where none is."""
        return await self._database.run(compensating.go_on_reverting, System(), self._keeper.owner)

    def _plan_all(
        self, work: PlanningWork, intents: Sequence[Publishable]
    ) -> tuple[list[PlannedStep], list[Postponed]]:
        source = self._source_of(work.settings)
        exists = source.exists(sorted({intent.document for intent in intents}))
        steps: list[PlannedStep] = []
        postponed: list[Postponed] = []
        for intent in intents:
            try:
                step = self._plan(work, source, intent, exists.get(intent.document, False))
            except (SourceError, CallerError) as error:
                for_good = isinstance(error, CallerError)
                postponed.append(Postponed(intent.intent_id, error.code, error.message, for_good))
                continue
            except Exception as error:  # noqa: BLE001 - a defect of ours that one document shows stops no other
                _log.exception("document failed", intent=intent.intent_id)
                said = f"{type(error).__name__} while it was planned"
                postponed.append(Postponed(intent.intent_id, "internal_error", said, True))
                continue
            if step is not None:
                steps.append(step)
        return steps, postponed

    def _plan(
        self, work: PlanningWork, source: Source, intent: Publishable, exists: bool
    ) -> PlannedStep | None:
        """One step, None where nothing of the intent may be written or all of it is in place.

        A document that is gone or cannot be understood is planned all the same: its step says what is wrong.
        """
        if intent.state == "failed" and work.settings.get("partial") == "never":
            return None
        whole, target = self._look(source, intent) if exists else (False, None)
        units = placing.units_of(whole, intent.results, target, intent.records, work.manifest_id)
        if not units:
            return None
        return PlannedStep(
            intent_id=intent.intent_id,
            generation=intent.generation,
            document=intent.document,
            locale=intent.locale,
            target=source.target_path(intent.document, intent.locale),
            expected_fingerprint=placing.expected_fingerprint(whole, target, units),
            write_fingerprint=placing.write_fingerprint(units),
            units=units,
        )

    def _look(self, source: Source, intent: Publishable) -> tuple[bool, Document | None]:
        """Whether the document is written whole, and what stands at its target.

        Raises `CallerError` source_moved where its fields are selected otherwise than when it was prepared.
        """
        try:
            form = documents.choose_format(self._formats, intent.document, source.read(intent.document))
        except CallerError:
            return False, None
        if intent.selection not in ("", rule_of(form, source.collection_of(intent.document))):
            said = f"the fields of {intent.document} are selected otherwise than when it was prepared"
            raise CallerError(said, "source_moved")
        try:
            stands = source.read_target(intent.document, intent.locale)
            if stands is None or not stands.strip():
                return form.whole, None
            path = source.target_path(intent.document, intent.locale)
            return form.whole, documents.open_document(form, path, stands, "target", intent.locale)
        except CallerError:
            return form.whole, None
