"""The numbers that Prometheus scrapes: of the whole installation, so a workspace's admin is no reader."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import Response

from dragoman.kernel.metrics import CONTENT_TYPE
from dragoman.model.identities import Identity
from dragoman.surfaces.http import examples
from dragoman.surfaces.http.contract import refuses
from dragoman.surfaces.web.bearer import Allowed, TheServices

router = APIRouter(tags=["health"])

Watcher = Annotated[Identity, Depends(Allowed("metrics:read"))]


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {
            "description": "Prometheus' text format.",
            "content": {"text/plain": {"schema": {"type": "string"}, "example": examples.METRICS}},
        },
        **refuses(),
    },
)
async def get_metrics(_watcher: Watcher, services: TheServices) -> Response:
    """This process's numbers, and the database's for all processes; nothing in them names a workspace."""
    return Response(await services.meter.exposition(), media_type=CONTENT_TYPE)
