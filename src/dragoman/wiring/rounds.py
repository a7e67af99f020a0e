"""Which loops a role runs. Every process that works also sweeps and shows that it lives."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from dragoman import __version__
from dragoman.flow.engine.delivery import Delivery
from dragoman.flow.engine.dispatch import Dispatch
from dragoman.flow.engine.translation.gate import Gate
from dragoman.flow.engine.translation.pipeline import End, Translation
from dragoman.flow.publishing.compensation import Restoring
from dragoman.flow.publishing.execution import Executing, Placing
from dragoman.flow.publishing.plans import Planning
from dragoman.flow.site.enumeration import Enumeration
from dragoman.flow.site.preparation import Preparing
from dragoman.flow.site.reconciliation import Reconciliation
from dragoman.flow.site.submission import Submitting
from dragoman.flow.upkeep.retention import Retention
from dragoman.kernel import limits
from dragoman.model.scopes import System
from dragoman.store.acts import claiming, leasing
from dragoman.wiring import catalogue, linking
from dragoman.wiring.services import Services, open_services
from dragoman.wiring.settings import Settings
from dragoman.wiring.sourcing import source_of
from dragoman.workers import Loop, free_vanished

ROLES = ("site", "engine", "publishing")
_SEEN_SECONDS = 30.0


@asynccontextmanager
async def opened(
    settings: Settings, roles: Sequence[str] = ROLES, base_url: str = ""
) -> AsyncIterator[Services]:
    """The parts of this process; the loops of these roles run inside the block."""
    services = await open_services(settings, base_url)
    try:
        if roles:
            await start(services, roles)
        yield services
    finally:
        await services.close()


async def start(services: Services, roles: Sequence[str] = ROLES) -> None:
    """Start the loops of these roles, once what vanished processes of this host held is free."""
    await free_vanished(services.database)
    if "site" in roles:
        await linking.refuse_lost_secret(services.settings, services.database)
    weights = services.settings.workspace_weights
    if "engine" in roles and weights:
        await services.database.run(claiming.weigh_workspaces, System(), weights)
    services.workers.start(loops(services, roles))


def loops(services: Services, roles: Sequence[str]) -> list[Loop]:
    """The loops of these roles; every process with any role also sweeps."""
    made: list[Loop] = []
    if services.settings.engine.url:  # whoever hands its work to a far engine is none
        roles = [role for role in roles if role != "engine"]
    if "site" in roles:
        made += _site_loops(services)
    if "engine" in roles:
        made += _engine_loops(services)
    if "publishing" in roles:
        made += _publishing_loops(services)
    return made + (_upkeep_loops(services, roles) if made else [])


def _site_loops(services: Services) -> list[Loop]:
    database, keeper, clock, chance = services.database, services.keeper, services.clock, services.chance
    settings, offload = services.settings, services.offload
    enumeration = Enumeration(database, keeper, clock, chance, offload, source_of)
    way = linking.way_to(settings, services.engine, clock)
    preparing = Preparing(
        database,
        keeper,
        clock,
        chance,
        offload,
        source_of,
        catalogue.formats(),
        settings.prepare_per_step,
        way.capacity,
    )
    submitting = Submitting(
        database, services.ledger, keeper, chance, offload, source_of, way, settings.submit_per_step
    )
    asked_only = not way.callback_url
    age_seconds = limits.RECONCILE_FAR_SECONDS if asked_only else limits.RECONCILE_AGE_SECONDS
    account = way.sender().engine
    reconciliation = Reconciliation(database, services.engine, clock, age_seconds, account)
    return [
        Loop("enumerate", enumeration.step),
        Loop("restore", enumeration.restore_step, limits.RESTORE_SECONDS, woken=False),
        Loop("prepare", preparing.step),
        Loop("submit", submitting.step),
        Loop("resubmit", submitting.resend_step),
        Loop("apply_receipts", services.callbacks.step),
        Loop(
            "reconcile",
            reconciliation.step,
            min(limits.RECONCILE_POLL_SECONDS, age_seconds),
            woken=False,
        ),
        Loop("converge", services.convergence.step),
        Loop("steer", services.steering.telling_step),
        Loop("free_pairs", services.steering.free_pairs_step),
        Loop("retry", services.steering.retrying_step),
    ]


def _engine_loops(services: Services) -> list[Loop]:
    database, keeper, settings = services.database, services.keeper, services.settings
    completion = services.completion
    gate = Gate(
        settings.calls_per_process,
        clock=services.clock,
        calls_per_workspace=settings.calls_per_workspace,
        calls_per_endpoint=settings.calls_per_endpoint,
        rates=catalogue.rates(settings),
    )
    held_max, holds = settings.jobs_per_process, services.holds
    system, lease_seconds = System(), settings.job_lease_seconds
    dispatch = Dispatch(database, services.queue, keeper, system, lease_seconds, held_max, holds)
    translation = Translation(
        database,
        services.ledger,
        completion.resolve,
        completion.need,
        keeper,
        services.chance,
        gate,
        System(),
        lease_seconds=settings.job_lease_seconds,
        call_timeout_seconds=settings.call_timeout_seconds,
        bounds=catalogue.bounds(settings),
        fallbacks=catalogue.fallbacks(settings),
        without_examples=catalogue.without_examples(settings),
        offload=services.offload,
    )
    delivery = Delivery(services.ledger, services.clock, keeper)

    async def translate() -> int:
        claimed = await dispatch.take()
        if claimed is None:
            return 0
        end: End = "lost"
        try:
            end = await translation.work(claimed)
        finally:
            await dispatch.settle(claimed.job_id, done=end != "lost")
        return 1

    async def hint() -> int:
        if await dispatch.listen():
            services.workers.wake()
        return 1

    async def deliver() -> int:
        return await delivery.step(limits.OUTBOX_BATCH)

    return [
        Loop("listen", hint, wakes=False, listens=True),
        Loop("translate", translate, copies=settings.jobs_per_process, drain=gate.close),
        Loop("deliver", deliver),
        Loop("sweep_jobs", dispatch.sweep, limits.SWEEP_SECONDS, woken=False),
    ]


def _publishing_loops(services: Services) -> list[Loop]:
    database, keeper = services.database, services.keeper
    formats = catalogue.formats()
    planning = Planning(database, keeper, services.offload, source_of, formats)
    executing = Executing(
        database,
        services.ledger,
        keeper,
        services.clock,
        services.offload,
        {"forward": Placing(source_of, formats), "backward": Restoring(source_of, formats)},
    )
    return [
        Loop("plan", planning.step),
        Loop("take_back", planning.revert_step, limits.PUBLISH_POLL_SECONDS, woken=False),
        Loop("publish", executing.step),
    ]


def _upkeep_loops(services: Services, roles: Sequence[str]) -> list[Loop]:
    retention = Retention(services.database, System(), services.clock, services.settings.retention_days)

    async def sweep() -> int:
        return await free_vanished(services.database) + await services.keeper.free_unheld()

    async def show_life() -> int:
        row = {
            "id": services.keeper.owner,
            "role": "+".join(roles),
            "host": socket.gethostname(),
            "release": __version__,
            "credentials": json.dumps(services.holds),
        }
        await services.database.run(leasing.see_worker, row)
        if "engine" in roles:
            await services.meter.note_outbox()
        return 0

    return [
        Loop("sweep", sweep, limits.SWEEP_SECONDS, woken=False, mends=True),
        Loop("show_life", show_life, _SEEN_SECONDS, woken=False),
        Loop("retain", retention.step, limits.RETENTION_POLL_SECONDS, wakes=False, woken=False),
    ]
