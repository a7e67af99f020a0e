"""Putting translations in place and taking them back: asked for here, done by workers, undoable."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse

from dragoman.kernel.errors import CallerError
from dragoman.kernel.limits import FAILURES_PAGE, FAILURES_PAGE_MAX
from dragoman.model.identities import Identity
from dragoman.model.scopes import Workspace
from dragoman.store.acts import compensating, publications, steering
from dragoman.surfaces.http import examples
from dragoman.surfaces.http.contract import gives, refuses, takes
from dragoman.surfaces.http.manifest_routes import read_chosen, steered
from dragoman.surfaces.http.shapes import Chosen, ExecutionPage, Reverted, Steered
from dragoman.surfaces.web import paging
from dragoman.surfaces.web.bearer import Allowed, TheServices, see_manifest

router = APIRouter(prefix="/v1/workspaces/{workspace}/manifests/{manifest_id}", tags=["publishing"])

Reader = Annotated[Identity, Depends(Allowed())]
Publisher = Annotated[Identity, Depends(Allowed("publications:write"))]

_EXECUTIONS = "executions"


@router.post(
    "/publish",
    status_code=202,
    openapi_extra=takes(Chosen, examples.CHOSEN, required=False),
    responses={
        **gives(202, Steered, "These are going to be published.", examples.STEERED),
        **refuses("nothing_to_retry", body=True),
    },
)
async def publish(
    request: Request, workspace: str, manifest_id: str, identity: Publisher, services: TheServices
) -> JSONResponse:
    """Publish what is translated: the intents named, or all."""
    await see_manifest(services, identity, manifest_id)
    chosen = await read_chosen(request)
    count = await services.database.run(
        steering.request_publication, Workspace(workspace), manifest_id, chosen
    )
    if not count:
        raise CallerError("nothing of these is translated and not yet asked for", "nothing_to_retry")
    return JSONResponse(steered(workspace, manifest_id, intents=count), 202)


@router.post(
    "/revert",
    status_code=202,
    responses={
        **gives(202, Reverted, "What was published is going to be undone.", examples.REVERTED),
        **refuses("already_ended", "lease_held", "plan_mismatch"),
    },
)
async def revert(
    workspace: str, manifest_id: str, identity: Publisher, services: TheServices
) -> JSONResponse:
    """Put back what stood there before, except where somebody has changed it since."""
    await see_manifest(services, identity, manifest_id)
    made = await services.database.run(compensating.revert, Workspace(workspace), manifest_id, identity.actor)
    return JSONResponse({"manifest_id": manifest_id, "executions": made}, 202)


@router.get(
    "/executions",
    responses={**gives(200, ExecutionPage, "A page of executions.", examples.EXECUTION_PAGE), **refuses()},
)
async def list_executions(
    workspace: str,
    manifest_id: str,
    identity: Reader,
    services: TheServices,
    cursor: Annotated[str | None, Query(description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=FAILURES_PAGE_MAX)] = FAILURES_PAGE,
) -> JSONResponse:
    """What was put in place, what is under way, what failed; newest first."""
    await see_manifest(services, identity, manifest_id)
    before = paging.position(_EXECUTIONS, cursor)
    found = await services.database.read(
        publications.executions_of, Workspace(workspace), manifest_id, before, limit
    )
    last = found[-1]["id"] if len(found) == limit else None
    return JSONResponse({"items": found, "next": paging.seal(_EXECUTIONS, last)})
