"""Whether the process lives, and whether new work should be sent to it. Both are asked without a token."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from dragoman.kernel.errors import StoreError
from dragoman.store.acts import readiness
from dragoman.surfaces.http.contract import gives
from dragoman.surfaces.http.shapes import Alive, Readiness
from dragoman.surfaces.web.bearer import TheServices

router = APIRouter(tags=["health"])

_READY = {"ready": True, "problems": []}
_UNREADY = {
    "ready": False,
    "problems": [{"name": "worker_unavailable", "detail": "no worker was seen in the last 150 seconds"}],
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
    """Whether the database answers with this schema, a worker lives, and nothing due waits too long."""
    try:
        problems = await services.database.read(readiness.problems)
    except StoreError as error:
        problems = {error.code: error.remedy}
    listed = [{"name": name, "detail": detail} for name, detail in problems.items()]
    return JSONResponse({"ready": not problems, "problems": listed}, 503 if problems else 200)
