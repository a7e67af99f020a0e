"""The HTTP door, whole: every route, over one set of services."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI

from dragoman.kernel.identity import SystemChance
from dragoman.surfaces.http import (
    callback_routes,
    engine_routes,
    file_routes,
    health_routes,
    job_routes,
    manifest_routes,
    metrics_routes,
    outbox_routes,
    publication_routes,
    quarantine_routes,
    run_routes,
    stream_routes,
    sync_routes,
)
from dragoman.surfaces.http.contract import Described
from dragoman.surfaces.web import problems
from dragoman.surfaces.web.tracing import Traced
from dragoman.wiring.services import Services

V1 = "/v1"
SEED_V1 = "/api/v1"
"""Where older clients look for the job routes; not part of the contract."""


def build_app(services: Services, probes_only: bool = False) -> FastAPI:
    """The app over open services, which the caller opens before and closes after serving it.

    `probes_only`: health and metrics alone, for processes that only work.
    """
    app = _app(services.chance.new_id, probes_only)
    app.state.services = services
    app.state.streams = set()
    return app


def open_api() -> dict[str, Any]:
    """The contract as it is served at /openapi.json; needs no services."""
    return _app(SystemChance().new_id).openapi()


def _app(new_id: Callable[[], str], probes_only: bool = False) -> FastAPI:
    app = Described(
        title="Dragoman",
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    if not probes_only:
        _include_contract(app)
    app.include_router(health_routes.router)
    app.include_router(metrics_routes.router)
    problems.install(app)
    app.add_middleware(Traced, new_id=new_id)
    return app


def _include_contract(app: FastAPI) -> None:
    app.include_router(manifest_routes.router)
    app.include_router(stream_routes.router)
    app.include_router(publication_routes.router)
    app.include_router(run_routes.router)
    app.include_router(file_routes.router)
    app.include_router(job_routes.router, prefix=V1)
    app.include_router(job_routes.router, prefix=SEED_V1, include_in_schema=False)
    app.include_router(sync_routes.router, prefix=V1)
    app.include_router(sync_routes.router, prefix=SEED_V1, include_in_schema=False)
    app.include_router(engine_routes.router)
    app.include_router(callback_routes.router)
    app.include_router(outbox_routes.router)
    app.include_router(quarantine_routes.router)
