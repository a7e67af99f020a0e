"""Everything that one process needs, put together once: database, ledger, steps, and what the doors call."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.content.sources.folder import Found, find
from dragoman.content.submissions import Bounds
from dragoman.families.completion import Completion
from dragoman.families.publication.dry_run import DryRun
from dragoman.families.publication.files import Files
from dragoman.families.publication_step import PublicationStep
from dragoman.families.submission import LocalEngine, Submission
from dragoman.families.webhook import HttpTransport, LocalTransport, Webhook
from dragoman.flow.engine.acceptance import LOCAL_SECRET, Acceptance
from dragoman.flow.engine.controls import Controls
from dragoman.flow.engine.jobs import Jobs
from dragoman.flow.site.admission import Admission, Caller
from dragoman.flow.site.callbacks import Callbacks
from dragoman.flow.site.promotion import Promotion
from dragoman.flow.site.steering import Steering
from dragoman.flow.site.views import Views
from dragoman.kernel import canonical, journal, processes
from dragoman.kernel.clock import Clock, SystemClock
from dragoman.kernel.errors import SettingsError
from dragoman.kernel.identity import Chance, SystemChance, secret
from dragoman.kernel.limits import FIELDS_PER_ITEM_SETTING_MAX
from dragoman.kernel.offload import Offload, ThreadOffload
from dragoman.kernel.sealing import Sealer
from dragoman.ledger.acting import Ledger
from dragoman.model.contracts import Queue
from dragoman.model.scopes import Workspace
from dragoman.store import migrate
from dragoman.store.database import Database
from dragoman.store.servers import Options
from dragoman.wiring import catalogue
from dragoman.wiring.queueing import Waking, waking
from dragoman.wiring.settings import Settings
from dragoman.wiring.sourcing import frozen_source, source_of
from dragoman.workers import Keeper, Workers

_SECRET_FILE = "callback.key"  # noqa: S105 - the name of a file


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
    engine: LocalEngine
    admission: Admission
    promotion: Promotion
    steering: Steering
    views: Views
    callbacks: Callbacks
    acceptance: Acceptance
    controls: Controls
    jobs: Jobs
    workers: Workers
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
    clock, chance = SystemClock(), SystemChance()
    journal.setup(clock, style=settings.log_style, level=settings.log_level)
    if settings.embedded:
        settings.state_folder.mkdir(parents=True, exist_ok=True)
    await asyncio.to_thread(migrate.prepare, settings.database)
    options = Options(
        group_commit=settings.group_commit, synchronous="FULL" if settings.durable else "NORMAL"
    )
    database = await Database.open(settings.database, clock=clock, chance=chance, options=options)
    return assemble(settings, database, clock, chance, ThreadOffload(), base_url)


def assemble(
    settings: Settings,
    database: Database,
    clock: Clock,
    chance: Chance,
    offload: Offload,
    base_url: str = "",
    owner: str = "",
    completion: Completion | None = None,
) -> Services:
    """Everything above an open database; the simulation hands in its own powers."""
    keeper = Keeper(database, clock, owner or processes.owner())
    completion = completion or Completion(
        catalogue.factories(settings, base_url), catalogue.platform(settings)
    )
    woken = waking(settings, database, clock, chance)
    queue = woken.queue
    bounds = Bounds(fields_per_item_max=FIELDS_PER_ITEM_SETTING_MAX)
    sealer = sealer_of_environment()
    acceptance = Acceptance(database, queue, completion, offload, chance, bounds, sealer)
    controls, jobs = Controls(database), Jobs(database)
    engine = local_engine(acceptance, controls, jobs)
    callbacks = Callbacks(database, engine, lambda: [callback_secret(settings)], settings.workspace)
    http = HttpTransport()
    webhook = Webhook(
        {"local": LocalTransport(callbacks.receive), "http": http, "https": http},
        secret_reader(settings, sealer),
        database.now,
    )
    publication = PublicationStep({"dry-run:v1": DryRun(), "files:v1": Files(Path, offload)})
    families = {family.name: family for family in (completion, Submission(engine), webhook, publication)}
    ledger = Ledger(database, families)
    workers = Workers(keeper)
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
        admission=Admission(
            database, frozen_settings(settings), source_of, workers.hint, settings.pairs_max, offload
        ),
        promotion=Promotion(database, workers.hint),
        steering=Steering(database, ledger, keeper.owner, source_of, workers.hint, offload),
        views=Views(database, source_of, offload),
        callbacks=callbacks,
        acceptance=acceptance,
        controls=controls,
        jobs=jobs,
        workers=workers,
        closers=[queue.close, completion.close, http.close],
    )


def local_engine(acceptance: Acceptance, controls: Controls, jobs: Jobs) -> LocalEngine:
    """The engine in this process, behind the face that a remote one has."""

    async def accept(workspace: str, body: bytes) -> Mapping[str, Any]:
        accepted = await acceptance.accept("site", workspace, "", body, local=True)
        return {
            "job_id": accepted.job_id,
            "status": accepted.status,
            "submissionId": accepted.submission_id,
            "created": accepted.created,
        }

    async def control(workspace: str, client_job_id: str, body: bytes) -> Mapping[str, Any]:
        return await controls.put(Workspace(workspace), client_job_id, canonical.parse(body))

    async def job(workspace: str, job_id: str) -> Mapping[str, object] | None:
        return await jobs.get(Workspace(workspace), job_id)

    async def items(workspace: str, job_id: str, cursor: str) -> Mapping[str, object]:
        return await jobs.items(Workspace(workspace), job_id, cursor)

    return LocalEngine(accept=accept, control=control, job=job, items=items)


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
            "executor": settings.executor,
            "partial": "auto",
            "publish": "auto",
            **frozen_source(settings, project),
        }

    return of_project


def sealer_of_environment() -> Sealer | None:
    """What seals the callback secrets of remote sites; None where DRAGOMAN_SEALING_KEY is not set."""
    key = os.environ.get("DRAGOMAN_SEALING_KEY", "")
    return Sealer(key) if key else None


def secret_reader(settings: Settings, sealer: Sealer | None) -> Callable[[str, str], str]:
    """Gives the secret behind what a job keeps of it: a reference, or a sealed text."""

    def secret_of(kept: str, job_id: str) -> str:
        if kept == LOCAL_SECRET:
            return callback_secret(settings)
        if sealer is None:
            raise SettingsError(
                f"the callback secret of job {job_id} is sealed, and DRAGOMAN_SEALING_KEY is not set",
                "sealing_key_missing",
            )
        return sealer.open(kept, job_id)

    return secret_of


def callback_secret(settings: Settings) -> str:
    """The secret of a site and an engine on one database: a file of the state folder, made once (0600)."""
    path = settings.state_folder / _SECRET_FILE
    if not path.is_file():
        _make_secret(path)
    return path.read_text("ascii").strip()


def _make_secret(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secret())
    with contextlib.suppress(FileExistsError):  # another process was first: its secret is the one
        os.link(fresh, path)
    fresh.unlink()
