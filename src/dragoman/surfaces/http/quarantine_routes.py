"""Jobs in quarantine, and a way out of it: an administrator lets one be tried again."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse

from dragoman.model.identities import Identity
from dragoman.model.scopes import Workspace
from dragoman.store.acts import redriving
from dragoman.surfaces.http import examples
from dragoman.surfaces.http.contract import gives, refuses
from dragoman.surfaces.http.shapes import JobRedriven
from dragoman.surfaces.web.bearer import Allowed, TheServices, known_id

router = APIRouter(prefix="/v1/admin/jobs", tags=["admin"])

Admin = Annotated[Identity, Depends(Allowed("admin"))]


@router.post(
    "/{job_id}/redrive",
    status_code=202,
    responses={
        **gives(202, JobRedriven, "It is queued again.", examples.JOB_REDRIVEN),
        **refuses("nothing_to_retry"),
    },
)
async def redrive_job(job_id: str, identity: Admin, services: TheServices) -> JSONResponse:
    """Try a quarantined job (`failed`, `gave_up`) again: the same id, new starts. Who did it is written down.

    Its new end makes an event with the next `event_sequence`.
    """
    await services.database.run(
        redriving.redrive_job, Workspace(identity.workspace), known_id(job_id), identity.actor
    )
    await services.queue.enqueue(job_id)
    return JSONResponse({"id": job_id, "status": "queued"}, 202)
