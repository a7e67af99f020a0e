"""Everything that one process needs, put together once: database, ledger, steps, and what the doors call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dragoman.content.sources.folder import Found, find
from dragoman.families.completion import PLATFORM, Completion
from dragoman.families.publication.dry_run import DryRun
from dragoman.families.publication.files import Files
from dragoman.families.publication.http_target import HttpTarget
from dragoman.families.publication_step import PublicationStep
from dragoman.families.submission import Submission
from dragoman.families.webhook import HttpTransport, LocalTransport, Webhook
from dragoman.families.withdrawal import Withdrawal
from dragoman.flow.engine.acceptance import Acceptance
from dragoman.flow.engine.controls import Controls
from dragoman.flow.engine.jobs import Jobs
from dragoman.flow.site.admission import Admission, Caller
from dragoman.flow.site.callbacks import Callbacks
from dragoman.flow.site.convergence import Convergence
from dragoman.flow.site.estimate import Estimating
from dragoman.flow.site.locking import Locking
from dragoman.flow.site.losses import Losses
from dragoman.flow.site.promotion import Promotion
from dragoman.flow.site.steering import Steering
from dragoman.flow.site.uploading import Uploading
from dragoman.flow.site.views import Views
from dragoman.kernel import journal, processes
from dragoman.kernel.clock import Clock, SystemClock
from dragoman.kernel.identity import Chance, SystemChance
from dragoman.kernel.offload import InlineOffload, Offload, ThreadOffload
from dragoman.ledger.acting import Ledger
from dragoman.model.contracts import EngineClient, Executor, Family, Queue, WebhookTransport
from dragoman.model.effects import Answer
from dragoman.model.jobs import named
from dragoman.model.memories import Manner
from dragoman.model.scopes import Workspace
from dragoman.store import migrate
from dragoman.store.acts import readiness, remembering
from dragoman.store.database import Database
from dragoman.store.keeping import Keeper
from dragoman.wiring import catalogue, converging, linking
from dragoman.wiring.measuring import Meter
from dragoman.wiring.queueing import Waking, waking
from dragoman.wiring.settings import Settings
from dragoman.wiring.signing_in import options_of
from dragoman.wiring.sourcing import frozen_source, source_of, token_of, tree_of
from dragoman.workers import Workers


@dataclass(slots=True)
class Services:
    """One process's parts. Doors call these; `workers` runs the loops of the roles asked for."""

    settings: Settings
    database: Database
    clock: Clock
    chance: Chance
    offload: Offload
    keeper: Keeper
    completion: Completion
    queue: Queue
    waking: Waking
    ledger: Ledger
    engine: EngineClient
    admission: Admission
    promotion: Promotion
    steering: Steering
    losses: Losses
    views: Views
    estimating: Estimating
    convergence: Convergence
    locking: Locking
    uploading: Uploading
    callbacks: Callbacks
    acceptance: Acceptance
    controls: Controls
    jobs: Jobs
    workers: Workers
    meter: Meter
    holds: Sequence[str] = ()
    """What this process has of what jobs need: keys by reference, the provider at a given address."""
    closers: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the process is to stop: whoever answers for long ends its answer."""

    def caller(self, actor: str) -> Caller:
        """Somebody of this process's own workspace."""
        return Caller(self.settings.workspace, actor)

    async def close(self) -> None:
        """Stop the loops, then let go of connections and threads."""
        self.stopping.set()
        await self.workers.stop()
        for close in self.closers:
            await close()
        await self.database.close()


async def open_services(settings: Settings, base_url: str = "") -> Services:
    """Put one process together. Raises `StoreError` or `SettingsError`; starts nothing."""
    processes.collect_less_often()
    clock, chance = SystemClock(), SystemChance()
    journal.setup(clock, style=settings.log_style, level=settings.log_level)
    if settings.embedded:
        settings.state_folder.mkdir(parents=True, exist_ok=True)
    options = options_of(settings)
    await asyncio.to_thread(migrate.prepare, settings.database, options)
    database = await Database.open(settings.database, clock=clock, chance=chance, options=options)
    await _tell_manners(settings, database)
    return assemble(settings, database, clock, chance, ThreadOffload(), base_url)


async def _tell_manners(settings: Settings, database: Database) -> None:
    """Store with each named project what its translations are asked to keep to."""
    scope = Workspace(settings.workspace)
    for name, project in settings.projects.items():
        asked = Manner(project.memory.threshold, project.style)
        if await database.read(remembering.manner, scope, name) != asked:
            await database.run(remembering.set_manner, scope, name, asked)


def assemble(
    settings: Settings,
    database: Database,
    clock: Clock,
    chance: Chance,
    offload: Offload,
    base_url: str = "",
    owner: str = "",
    completion: Completion | None = None,
    woken: Waking | None = None,
) -> Services:
    """Everything above an open database; the simulation hands in its own powers."""
    keeper = Keeper(database, clock, owner or processes.owner())
    completion = completion or _completion(settings, base_url)
    woken = woken or waking(settings, database, clock, chance)
    queue, sealer = woken.queue, linking.sealer_of_environment()
    bounds = linking.capacity_of(settings), sealer, linking.local_capacity(settings)
    acceptance = Acceptance(database, queue, completion.resolve, completion.need, offload, chance, *bounds)
    controls, jobs = Controls(database), Jobs(database)
    engine = linking.engine_of(settings, acceptance, controls, jobs)
    callbacks = Callbacks(database, engine, lambda: linking.callback_secrets(settings), settings.workspace)
    http = HttpTransport(allow_private=settings.private_callbacks)
    webhook = Webhook(_transports(callbacks, http), linking.secret_reader(settings, sealer), database.now)
    target, withdrawal = HttpTarget(token_of), Withdrawal(completion.resolve)
    ledger = _ledger(database, offload, target, completion, withdrawal, Submission(engine), webhook)
    workers, frozen = Workers(keeper), frozen_settings(settings)
    check = _provider_check(settings, database, base_url)
    admission = Admission(database, frozen, source_of, workers.hint, settings.pairs_max, offload, check)
    estimating = Estimating(database, source_of, catalogue.formats(), completion.resolve, offload)
    asks = converging.of(settings, offload, find_sources, estimating, admission)
    return Services(
        settings=settings,
        database=database,
        clock=clock,
        chance=chance,
        offload=offload,
        keeper=keeper,
        completion=completion,
        queue=queue,
        waking=woken,
        ledger=ledger,
        engine=engine,
        admission=admission,
        promotion=Promotion(database, workers.hint),
        steering=Steering(database, ledger, keeper.owner, source_of, workers.hint, offload),
        losses=Losses(database, engine, lambda: linking.sender(settings).engine, workers.hint),
        views=Views(database, source_of, offload),
        estimating=estimating,
        convergence=Convergence(database, keeper, asks, workers.hint),
        locking=Locking(database, source_of, catalogue.formats(), offload),
        uploading=Uploading(partial(tree_of, settings), put_file, offload),
        callbacks=callbacks,
        acceptance=acceptance,
        controls=controls,
        jobs=jobs,
        workers=workers,
        holds=catalogue.held(settings, base_url),
        meter=Meter(database, clock),
        closers=[queue.close, completion.close, http.close, engine.close, target.close],
    )


def _transports(callbacks: Callbacks, http: HttpTransport) -> Mapping[str, WebhookTransport]:
    return {"local": LocalTransport(callbacks.receive), "http": http, "https": http}


def _completion(settings: Settings, base_url: str) -> Completion:
    return Completion(
        catalogue.factories(settings, base_url),
        catalogue.platform(settings),
        catalogue.batchers(settings, base_url),
        catalogue.needs(settings),
    )


def _provider_check(
    settings: Settings, database: Database, base_url: str
) -> Callable[[str], Awaitable[None]]:
    """What refuses a provider that neither these settings name nor a living worker's; a far engine refuses by
    itself.
    """

    async def check(name: str) -> None:
        if settings.engine.url or name in PLATFORM:
            return
        if named(name) not in await database.read(readiness.held_by_engines):
            catalogue.provider_named(settings, name, base_url, "provider")

    return check


def _ledger(database: Database, offload: Offload, target: HttpTarget, *families: Family) -> Ledger:
    """The ledger over these families and the one that publishes."""
    executors: Sequence[Executor] = (DryRun(), Files(Path, offload), target)
    publication = PublicationStep({executor.name: executor for executor in executors})
    return Ledger(database, {family.name: family for family in (*families, publication)})


def put_file(root: Path, path: str, data: bytes | None, expected: str) -> Answer:
    """Write or remove a file that stands as expected (SHA-256, empty for nothing), as publishing does."""
    return Files(Path, InlineOffload()).put(root, path, data, expected)


def find_sources(
    settings: Settings, paths: Sequence[Path], pattern: str, source_locale: str, target_locales: Sequence[str]
) -> Found:
    """The sources under these paths, and where their translations go."""
    return find(
        settings.root,
        paths,
        formats=catalogue.formats(),
        pattern=pattern,
        source_locale=source_locale,
        target_locales=target_locales,
    )


def frozen_settings(settings: Settings) -> Callable[[str, str], Mapping[str, Any]]:
    """What a manifest freezes that is admitted over HTTP: its project's settings, by workspace and name."""

    def of_project(workspace: str, project: str) -> Mapping[str, Any]:
        return {
            "project": project,
            "mode": "missing",
            "provider": settings.provider,
            "root": str(settings.root.absolute()),
            "out": "",
            "partial": "auto",
            "publish": "auto",
            **frozen_source(settings, project, workspace=workspace),
        }

    return of_project
