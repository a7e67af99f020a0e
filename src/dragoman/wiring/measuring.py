"""What this process tells Prometheus: its own numbers, and the database's for all processes together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman import __version__
from dragoman.kernel import metrics
from dragoman.kernel.clock import Clock
from dragoman.kernel.errors import StoreError
from dragoman.kernel.journal import logger
from dragoman.kernel.limits import METRICS_SEEN_SECONDS
from dragoman.kernel.metrics import Reading
from dragoman.model.scopes import System
from dragoman.store.acts import measuring, readiness
from dragoman.store.database import Database

_log = logger(__name__)


class Meter:
    """Answers every scrape, also while the database is away; asks it every few seconds at most."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._asked_at: float | None = None
        self._said: measuring.Measures | None = None
        self._told: Mapping[str, int] = {}

    async def exposition(self) -> bytes:
        """Everything, in Prometheus' text."""
        said = await self._ask()
        return metrics.exposition([*self._own(said is not None), *(_readings(said) if said else ())])

    async def look(self) -> dict[str, Any]:
        """What the database says of all processes together, for people; empty while it is away."""
        said = await self._ask()
        return {} if said is None else said.told()

    async def note_outbox(self) -> None:
        """Write the outbox's counts to the log, where they are others than last time."""
        counts = await self._database.read(measuring.outbox_by_state, System())
        if counts != self._told:
            _log.info("outbox.counted", **counts)
            self._told = counts

    async def _ask(self) -> measuring.Measures | None:
        now = self._clock.monotonic()
        if self._asked_at is None or now - self._asked_at >= METRICS_SEEN_SECONDS:
            self._asked_at = now
            try:
                known = await self._database.read(readiness.schema_is_current)
                self._said = await self._database.read(measuring.measure, System()) if known else None
            except StoreError:
                self._said = None
        return self._said

    def _own(self, database_answers: bool) -> list[Reading]:
        tally = self._database.tally
        acts = {"acts": tally.acts, "undone": tally.undone}
        commits = {"changes": tally.commits, "renewals": tally.urgent_commits, "empty": tally.empty}
        return [
            _by("dragoman_build_info", "The release that runs here", "release", {__version__: 1}),
            _one("dragoman_database_up", "Whether the database answered", int(database_answers)),
            _by("dragoman_acts", "Acts of this process", "kind", acts)._replace(kind="counter"),
            _by("dragoman_commits", "Physical commits of this process", "kind", commits)._replace(
                kind="counter"
            ),
        ]


def _readings(said: measuring.Measures) -> list[Reading]:
    return [
        _by("dragoman_outbox", "Events of ended jobs on their way out", "state", said.outbox),
        _by("dragoman_manifests", "Manifests that have not ended", "phase", said.manifests),
        _by("dragoman_intents", "Intents of manifests that have not ended", "state", said.intents),
        Reading("dragoman_jobs", "Jobs that have not ended", ("state", "parked_for"), said.jobs),
        _one("dragoman_queue_depth", "Jobs that are due and wait for a worker", said.queue_depth),
        _by("dragoman_lanes", "Workspaces with and without work that is due", "state", said.lanes),
        _by(
            "dragoman_oldest_due_seconds",
            "How long the oldest work has been due that nobody has taken",
            "kind",
            said.oldest_due_seconds,
        ),
        _by("dragoman_month_microusd", "Money of this calendar month", "kind", said.money),
        _by("dragoman_month_tokens", "Tokens of this calendar month", "kind", said.tokens),
        Reading(
            "dragoman_provider_pause_seconds",
            "How much longer a provider is not called",
            ("provider", "code"),
            said.pauses_seconds,
        ),
        _by("dragoman_workers", "Processes seen lately", "role", said.workers),
    ]


def _one(name: str, about: str, value: float) -> Reading:
    return Reading(name, about, (), {(): value})


def _by(name: str, about: str, label: str, numbers: Mapping[str, float]) -> Reading:
    return Reading(name, about, (label,), {(value,): number for value, number in numbers.items()})
