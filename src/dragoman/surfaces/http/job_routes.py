"""The engine's jobs, as people and their scripts see them in a workspace. Also served under `/api/v1`."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, Response

from dragoman.kernel import canonical
from dragoman.kernel.errors import CallerError
from dragoman.kernel.limits import PUSH_ID_CHARS_MAX
from dragoman.machines.tables import JOB
from dragoman.model.identities import Identity
from dragoman.model.jobs import Accepted
from dragoman.model.scopes import Workspace
from dragoman.surfaces.http import examples
from dragoman.surfaces.http.contract import gives, refuses, takes, unchanged
from dragoman.surfaces.http.shapes import Job, JobAccepted, JobPage, TranslateRequest, Usage
from dragoman.surfaces.web import paging
from dragoman.surfaces.web.bearer import Allowed, TheServices, known_id
from dragoman.surfaces.web.bodies import only, read_object
from dragoman.surfaces.web.tagging import tagged

router = APIRouter(prefix="/workspaces/{workspace}", tags=["jobs"])

Reader = Annotated[Identity, Depends(Allowed("jobs:read"))]
Writer = Annotated[Identity, Depends(Allowed("jobs:write"))]

_JOBS = "jobs"


@router.post(
    "/jobs/translate",
    status_code=202,
    openapi_extra=takes(TranslateRequest, examples.TRANSLATE_REQUEST),
    responses={
        **gives(202, JobAccepted, "The job is queued.", examples.JOB_ACCEPTED),
        **refuses(*examples.SUBMISSION_REFUSALS, body=True),
    },
)
async def translate(
    request: Request, workspace: str, identity: Writer, services: TheServices
) -> JSONResponse:
    """Translate one item into one locale; under one `submissionId`, by one job."""
    said = await read_object(request, services.acceptance.capacity.body_bytes_max, services.offload)
    only(said, "sourceLang", "targetLang", "fields", "item", "submissionId", "project", "tone", "options")
    submission = canonical.encode(submission_of(said, services.chance.new_id()))
    accepted = await services.acceptance.accept(identity.actor, workspace, "", submission)
    return JSONResponse(accepted_body(accepted), 202, {"Location": job_url(accepted.job_id)})


@router.get("/jobs", responses={**gives(200, JobPage, "A page of jobs.", examples.JOB_PAGE), **refuses()})
async def list_jobs(
    workspace: str,
    identity: Reader,
    services: TheServices,
    cursor: Annotated[str | None, Query(description="`next_cursor` of the page before.")] = None,
    push_id: Annotated[
        str, Query(max_length=PUSH_ID_CHARS_MAX, description="Only the jobs of this push.")
    ] = "",
) -> JSONResponse:
    """The newest fifty jobs; older ones by cursor."""
    if not push_id.isprintable():
        raise CallerError("push_id must be printable text", place="query.push_id")
    scope = Workspace(workspace)
    page = await services.jobs.recent(scope, paging.position(_JOBS, cursor), push_id=push_id)
    return JSONResponse({**page, "next_cursor": paging.seal(_JOBS, page["next_cursor"]) or ""})


@router.get(
    "/jobs/{job_id}",
    responses={**gives(200, Job, "As it stands.", examples.JOB), **unchanged(), **refuses()},
)
async def get_job_of_workspace(
    request: Request, workspace: str, job_id: str, identity: Reader, services: TheServices
) -> Response:
    """Status and progress; of an ended job exactly what its event says."""
    return tagged(request, await services.jobs.get(Workspace(workspace), known_id(job_id)))


@router.delete(
    "/jobs/{job_id}",
    status_code=202,
    responses={
        **gives(202, Job, "It is canceled, or ends without any further call.", examples.JOB),
        **refuses("already_ended"),
    },
)
async def cancel_job(workspace: str, job_id: str, identity: Writer, services: TheServices) -> JSONResponse:
    """Cancel a job: a queued one ends at once, one at work starts no further call."""
    scope = Workspace(workspace)
    job = await services.jobs.get(scope, known_id(job_id))
    if job["status"] in JOB.terminal:
        raise CallerError(f"job {job_id} is {job['status']}", "already_ended")
    return JSONResponse(await services.controls.cancel(scope, job_id, identity.actor), 202)


@router.get("/ai/usage", responses={**gives(200, Usage, "This month.", examples.USAGE), **refuses()})
async def get_usage(workspace: str, identity: Reader, services: TheServices) -> JSONResponse:
    """Tokens and money of the workspace in this calendar month, and what is left."""
    return JSONResponse(await services.jobs.usage(Workspace(workspace)))


def accepted_body(accepted: Accepted) -> dict[str, Any]:
    """The answer to a submission."""
    return {
        "job_id": accepted.job_id,
        "submissionId": accepted.submission_id,
        "status": accepted.status,
        "created": accepted.created,
        "status_url": job_url(accepted.job_id),
    }


def job_url(job_id: str) -> str:
    """Where a job is looked at."""
    return f"/v1/jobs/{job_id}"


def submission_of(said: dict[str, Any], fresh_id: str) -> dict[str, Any]:
    """One item as the submission that it is; what is missing is refused by whoever reads that."""
    item = said.get("item", "item")
    return {
        "submissionId": said.get("submissionId", fresh_id),
        "clientJobId": item,
        "sourceLang": said.get("sourceLang"),
        **{name: said[name] for name in ("project", "tone", "options") if name in said},
        "items": [{"ref": item, "targetLang": said.get("targetLang"), "fields": said.get("fields")}],
    }
