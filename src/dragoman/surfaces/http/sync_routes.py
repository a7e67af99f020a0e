"""Translation within a project, as the earliest clients ask for it: by the project's name alone.

An open door that spends money stays shut: without a token it answers only where a setting says so, only to
this very machine, and under the quota of the process's own workspace. Also served under `/api/v1`.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse

from dragoman.kernel import canonical
from dragoman.kernel.errors import CallerError
from dragoman.model.identities import Identity
from dragoman.surfaces.http import examples
from dragoman.surfaces.http.contract import gives, refuses, takes
from dragoman.surfaces.http.job_routes import accepted_body, job_url, submission_of
from dragoman.surfaces.http.shapes import JobAccepted, TranslateRequest
from dragoman.surfaces.web.bearer import TheServices, identify_if_any, require
from dragoman.surfaces.web.bodies import only, read_object
from dragoman.wiring.services import Services

router = APIRouter(prefix="/projects/{project}", tags=["jobs"])

ANONYMOUS = "anonymous"
_PROJECT_CHARS_MAX = 128
_FROM_ELSEWHERE = frozenset({"forwarded", "x-forwarded-for", "origin"})


@router.post(
    "/sync/translate",
    status_code=202,
    openapi_extra=takes(TranslateRequest, examples.TRANSLATE_REQUEST),
    responses={
        **gives(202, JobAccepted, "The job is queued.", examples.JOB_ACCEPTED),
        **refuses(*examples.SUBMISSION_REFUSALS, body=True),
    },
)
async def sync_translate(
    request: Request,
    project: str,
    services: TheServices,
    bearer: Annotated[Identity | None, Depends(identify_if_any)],
) -> JSONResponse:
    """Translate one item of a project into one locale. Without a token only where the settings allow it."""
    workspace, actor = _caller(request, services, bearer)
    if len(project) > _PROJECT_CHARS_MAX or not project.isprintable():
        raise CallerError("a project's name is 1 to 128 printable characters", place="path.project")
    said = await read_object(request, services.acceptance.capacity.body_bytes_max, services.offload)
    only(said, "sourceLang", "targetLang", "fields", "item", "submissionId", "tone", "options")
    _refuse_patience(said.get("options"))
    submission = canonical.encode(submission_of(said, services.chance.new_id()))
    accepted = await services.acceptance.accept(actor, workspace, project, submission)
    return JSONResponse(accepted_body(accepted), 202, {"Location": job_url(accepted.job_id)})


def _refuse_patience(options: object) -> None:
    """Who asks here wants an answer soon: a batch may take a day."""
    if isinstance(options, dict) and options.get("speed") not in (None, "standard"):
        raise CallerError("sync/translate has the speed `standard` only", place="$.options.speed")


def _caller(request: Request, services: Services, bearer: Identity | None) -> tuple[str, str]:
    """Workspace and actor. Raises `CallerError` unauthorized for somebody unknown who may not ask."""
    if bearer is not None:
        require(bearer, "jobs:write")
        return bearer.workspace, bearer.actor
    if not services.settings.allow_anonymous_sync or not _is_of_here(request):
        raise CallerError("a bearer token is missing", "unauthorized", place="header.Authorization")
    return services.settings.workspace, ANONYMOUS


def _is_of_here(request: Request) -> bool:
    """Whether the request comes from this machine: through no proxy that says otherwise, and from no page in
    a browser, which names its `Origin` and may be anybody's.
    """
    try:
        address = ipaddress.ip_address(request.client.host if request.client else "")
    except ValueError:
        return False
    return address.is_loopback and not _FROM_ELSEWHERE & set(request.headers)
