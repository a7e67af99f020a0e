"""The site side put together for tests: real store, real steps, a source in memory, an engine that
captures.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from dragoman.content.formats.arb import ArbCatalogue
from dragoman.content.formats.json_catalogue import JsonCatalogue
from dragoman.families.submission import Submission
from dragoman.flow.site.admission import Admission, Caller
from dragoman.flow.site.callbacks import Callbacks
from dragoman.flow.site.enumeration import Enumeration
from dragoman.flow.site.preparation import Preparing
from dragoman.flow.site.promotion import Promotion
from dragoman.flow.site.reconciliation import Reconciliation
from dragoman.flow.site.steering import Steering
from dragoman.flow.site.submission import Submitting, Way
from dragoman.flow.site.views import Views
from dragoman.kernel import signing
from dragoman.kernel.clock import SystemClock
from dragoman.kernel.identity import SystemChance
from dragoman.kernel.offload import InlineOffload
from dragoman.ledger.acting import Ledger
from dragoman.model.intents import Admitted, Sender
from dragoman.model.jobs import Capacity
from dragoman.store.database import Database
from dragoman.store.keeping import Keeper
from tests.doubles.engines import CaptureEngine
from tests.doubles.sources import MemorySource

SECRET = "a secret of the test suite"
CALLER = Caller("default", "mia")


class Stage:
    """One site. `step_all` runs every step until none finds anything."""

    def __init__(self, database: Database, source: MemorySource, **limits: Any) -> None:
        self.database = database
        self.source = source
        self.engine = CaptureEngine()
        self.defaults = {"source_locale": "en", "publish": "auto", "provider": "pseudo"}
        self.wakes = 0
        self.clock, chance = limits.get("clock") or SystemClock(), SystemChance()
        self.keeper = Keeper(database, self.clock, "host/boot/1/1")
        ledger = Ledger(database, {"submission": Submission(self.engine)})
        self.admission = Admission(database, self.settings_of, lambda _: source, self._wake)
        self.enumeration = Enumeration(
            database, self.keeper, self.clock, chance, InlineOffload(), lambda _: source,
            page_size=limits.get("page_size", 100),
        )  # fmt: skip
        self.preparing = Preparing(
            database, self.keeper, self.clock, chance, InlineOffload(), lambda _: source,
            [JsonCatalogue(), ArbCatalogue()], per_step=limits.get("prepare_per_step", 100),
            capacity=self._takes,
        )  # fmt: skip
        self.sender = Sender()
        self.capacity: Capacity = limits.get("capacity", Capacity())
        self.submitting = Submitting(
            database, ledger, self.keeper, chance, InlineOffload(), lambda _: source,
            Way("local:callbacks", lambda: self.sender, self._takes, far=limits.get("far", False)),
            per_step=limits.get("submit_per_step", 4),
        )  # fmt: skip
        self.callbacks = Callbacks(database, self.engine, lambda: [SECRET], "default")
        self.reconciliation = Reconciliation(database, self.engine, self.clock)
        self.steering = Steering(database, ledger, self.keeper.owner, lambda _: source, self._wake)
        self.promotion = Promotion(database, self._wake)
        self.views = Views(database, lambda _: source)

    async def _takes(self) -> Capacity:
        return self.capacity

    async def _wake(self) -> None:
        self.wakes += 1

    def settings_of(self, workspace: str, project: str) -> Mapping[str, Any]:
        return self.defaults

    async def admit(self, pairs: list[tuple[str, str]], request_id: str = "r-1", **more: Any) -> Admitted:
        asked = [{"document": document, "locale": locale} for document, locale in pairs]
        return await self.admission.admit(
            CALLER, {"request_id": request_id, "project": "docs", "pairs": asked, **more}
        )

    async def step_all(self) -> None:
        steps = (
            self.enumeration.step, self.preparing.step, self.submitting.step, self.submitting.resend_step,
            self.steering.telling_step, self.steering.free_pairs_step, self.steering.retrying_step,
        )  # fmt: skip
        while any([await step() for step in steps]):
            pass

    async def deliver(self, payload: Mapping[str, Any], delivery_id: str = "d-1") -> int:
        body = json.dumps(payload).encode()
        headers = signing.sign(SECRET, delivery_id, self.database.now() // 1_000_000, body)
        return await self.callbacks.receive(body, headers)

    async def counts(self, manifest_id: str) -> dict[str, int]:
        status = await self.views.status("default", manifest_id)
        counts: dict[str, int] = status["counts"]
        assert sum(counts.values()) == 2 * counts["total"], "the seven counters sum to the total"
        return {name: number for name, number in counts.items() if number and name != "total"}


@asynccontextmanager
async def stage(
    url: str, documents: Mapping[str, bytes] | None = None, **limits: Any
) -> AsyncIterator[Stage]:
    """A site over a fresh database."""
    database = await Database.open(url, clock=SystemClock(), chance=SystemChance())
    try:
        yield Stage(database, MemorySource(documents or {}), **limits)
    finally:
        await database.close()


def catalogue(**texts: str) -> bytes:
    """A JSON catalogue."""
    return json.dumps(texts, ensure_ascii=False, indent=2).encode()
