"""Whether the process lives, and whether new work should be sent to it. Both are asked without a token."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from dragoman.kernel.errors import StoreError
from dragoman.store.acts import readiness
from dragoman.surfaces.http.contract import gives
from dragoman.surfaces.http.shapes import Alive, Readiness
from dragoman.surfaces.web.bearer import TheServices

router = APIRouter(tags=["health"])

_READY = {"ready": True, "problems": [], "warnings": []}
_UNREADY = {
    "ready": False,
    "problems": [{"name": "worker_unavailable", "detail": "no worker was seen in the last 150 seconds"}],
    "warnings": [],
}


@router.get("/healthz", responses=gives(200, Alive, "It lives.", {"status": "alive"}))
async def healthz() -> JSONResponse:
    """Whether the process answers; asks nobody else."""
    return JSONResponse({"status": "alive"})


@router.get(
    "/readyz",
    responses={
        **gives(200, Readiness, "New work can be taken.", _READY),
        **gives(503, Readiness, "New work should go elsewhere; why is listed.", _UNREADY),
    },
)
async def readyz(services: TheServices) -> JSONResponse:
    """Whether database and queue answer, a worker lives, and nothing due waits too long."""
    warnings: Mapping[str, str] = {}
    try:
        problems = dict(await services.database.read(readiness.problems))
        if "schema_unavailable" not in problems:
            warnings = await services.waking.warnings()
    except StoreError as error:
        problems = {error.code: error.remedy}
    trouble = await services.waking.trouble()
    if trouble is not None:
        problems[trouble.code] = trouble.message
    told = {"ready": not problems, "problems": _listed(problems), "warnings": _listed(warnings)}
    return JSONResponse(told, 503 if problems else 200)


def _listed(named: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "detail": detail} for name, detail in named.items()]
