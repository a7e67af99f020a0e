"""The contract between a site and the engine: submissions, controls, and jobs read back by the site."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import JSONResponse, Response

from dragoman.kernel.errors import CallerError
from dragoman.kernel.limits import (
    CALLBACK_SECRET_BYTES_MAX,
    CALLBACK_SECRET_BYTES_MIN,
    SMALL_BODY_BYTES_MAX,
    SUBMISSION_BYTES_SETTING,
)
from dragoman.model.identities import Identity
from dragoman.model.scopes import Workspace
from dragoman.surfaces.http import examples
from dragoman.surfaces.http.contract import gives, refuses, takes, unchanged
from dragoman.surfaces.http.job_routes import accepted_body, job_url
from dragoman.surfaces.http.shapes import (
    BulkRequest,
    Control,
    ControlRequest,
    EngineCapacity,
    ItemPage,
    Job,
    JobAccepted,
)
from dragoman.surfaces.web import paging
from dragoman.surfaces.web.bearer import Allowed, TheServices, known_id
from dragoman.surfaces.web.bodies import read_json, read_object
from dragoman.surfaces.web.tagging import tagged

router = APIRouter(prefix="/v1", tags=["engine"])

Reader = Annotated[Identity, Depends(Allowed("jobs:read"))]
Writer = Annotated[Identity, Depends(Allowed("jobs:write"))]

CALLBACK_SECRET = "X-Dragoman-Callback-Secret"  # noqa: S105 - the header's name

_ITEMS = "items"
_CLIENT_JOB_CHARS_MAX = 191


@router.post(
    "/jobs/bulk-content",
    status_code=201,
    openapi_extra=takes(BulkRequest, examples.BULK_REQUEST),
    responses={
        **gives(201, JobAccepted, "The job was created.", examples.JOB_ACCEPTED),
        **gives(200, JobAccepted, "The job of this submission was there.", examples.JOB_FOUND),
        **refuses("sealing_key_missing", *examples.SUBMISSION_REFUSALS, body=True),
    },
)
async def submit(
    request: Request,
    identity: Writer,
    services: TheServices,
    callback_secret: Annotated[
        str | None,
        Header(alias=CALLBACK_SECRET, description="16 to 256 bytes; signs the job's events. Kept sealed."),
    ] = None,
) -> JSONResponse:
    """Create the job of a submission, or get the one that stands."""
    secret = _checked(callback_secret)
    body = await read_json(request, SUBMISSION_BYTES_SETTING[1])  # what stands may be more than is taken now
    accepted = await services.acceptance.accept(identity.actor, identity.workspace, "", body, secret)
    status = 201 if accepted.created else 200
    return JSONResponse(accepted_body(accepted), status, {"Location": job_url(accepted.job_id)})


@router.get(
    "/engine/capacity",
    responses={**gives(200, EngineCapacity, "What is taken now.", examples.CAPACITY), **refuses()},
)
async def get_capacity(identity: Writer, services: TheServices) -> JSONResponse:
    """What one submission may hold: a site groups its work by that."""
    known_as = {"account": identity.actor, "workspace": identity.workspace}
    return JSONResponse({**known_as, **asdict(services.acceptance.capacity)})


@router.get(
    "/jobs/{job_id}",
    responses={**gives(200, Job, "As it stands.", examples.JOB), **unchanged(), **refuses()},
)
async def get_job(request: Request, job_id: str, identity: Reader, services: TheServices) -> Response:
    """Status and progress; of an ended job exactly what its event says."""
    return tagged(request, await services.jobs.get(Workspace(identity.workspace), known_id(job_id)))


@router.get(
    "/jobs/{job_id}/items",
    responses={**gives(200, ItemPage, "A page of results.", examples.ITEM_PAGE), **refuses()},
)
async def list_items(
    job_id: str,
    identity: Reader,
    services: TheServices,
    cursor: Annotated[str | None, Query(description="`next_cursor` of the page before.")] = None,
) -> JSONResponse:
    """The texts of a job whose event carries a link instead of them."""
    scope = Workspace(identity.workspace)
    page = await services.jobs.items(scope, known_id(job_id), paging.position(_ITEMS, cursor))
    return JSONResponse({**page, "next_cursor": paging.seal(_ITEMS, page["next_cursor"]) or ""})


@router.put(
    "/engine/controls/{client_job_id}",
    openapi_extra=takes(ControlRequest, examples.CONTROL_REQUEST),
    responses={**gives(200, Control, "What is in force.", examples.CONTROL), **refuses(body=True)},
)
async def put_control(
    request: Request, client_job_id: str, identity: Writer, services: TheServices
) -> JSONResponse:
    """Pause, cancel or fund all present and future jobs of a client job; a lower revision changes nothing."""
    if len(client_job_id) > _CLIENT_JOB_CHARS_MAX or not client_job_id.isprintable():
        raise CallerError("a client job's id is 1 to 191 printable characters", place="path.client_job_id")
    said = await read_object(request, SMALL_BODY_BYTES_MAX, services.offload)
    return JSONResponse(await services.controls.put(Workspace(identity.workspace), client_job_id, said))


def _checked(secret: str | None) -> str | None:
    """The callback secret, if one was sent and it can sign. It is never repeated in an answer."""
    if secret is None:
        return None
    fits = CALLBACK_SECRET_BYTES_MIN <= len(secret.encode("latin-1")) <= CALLBACK_SECRET_BYTES_MAX
    if not fits or not secret.isascii() or not secret.isprintable():
        raise CallerError(
            f"{CALLBACK_SECRET} must be {CALLBACK_SECRET_BYTES_MIN} to {CALLBACK_SECRET_BYTES_MAX} "
            "visible ASCII characters",
            place=f"header.{CALLBACK_SECRET}",
        )
    return secret
