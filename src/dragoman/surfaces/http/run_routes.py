"""Runs of convergence: a project is brought up to date, pass after pass, until nothing is wanted."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response

from dragoman.content import locales
from dragoman.kernel.errors import CallerError
from dragoman.kernel.limits import PUSH_ID_CHARS_MAX, SMALL_BODY_BYTES_MAX
from dragoman.model.identities import Identity
from dragoman.model.runs import TRIGGERS, RunDraft
from dragoman.surfaces.http import examples
from dragoman.surfaces.http.contract import gives, refuses, takes
from dragoman.surfaces.http.manifest_routes import refuse_unworked
from dragoman.surfaces.http.shapes import RunRequest, RunStarted, RunStatus
from dragoman.surfaces.web.bearer import Allowed, TheServices, known_id
from dragoman.surfaces.web.bodies import only, read_object_or_none

router = APIRouter(prefix="/v1/workspaces/{workspace}/projects/{project}/runs", tags=["runs"])

Reader = Annotated[Identity, Depends(Allowed())]
Writer = Annotated[Identity, Depends(Allowed("manifests:write"))]

_NAME_CHARS_MAX = 128
_LOCALES_MAX = 1_000


@router.post(
    "",
    status_code=202,
    openapi_extra=takes(RunRequest, examples.RUN_REQUEST, required=False),
    responses={
        **gives(202, RunStarted, "A run has begun.", examples.RUN_STARTED),
        **gives(200, RunStarted, "The run at work, or of the same push, is joined.", examples.RUN_STARTED),
        204: {"description": "Nothing is wanted, or the project does not run on push.", "model": None},
        **refuses(
            "empty_request", "unsupported_locale", "source_unavailable", "provider_unknown",
            "provider_credentials_missing", "path_not_found", "output_conflict",
            "worker_unavailable", "admission_closed", "request_id_conflict", body=True,
        ),
    },
)  # fmt: skip
async def start_run(
    request: Request, workspace: str, project: str, identity: Writer, services: TheServices
) -> Response:
    """Bring a project up to date. One run at a time: a second start joins the first."""
    asked = await read_object_or_none(request, SMALL_BODY_BYTES_MAX)
    draft = _draft(workspace, project, identity.actor, asked)
    await refuse_unworked(services)
    chosen = services.settings.projects.get(project)
    if draft.trigger == "push" and not (chosen is not None and chosen.on_push):
        return Response(status_code=204)
    started = await services.convergence.start(draft)
    if started is None:
        return Response(status_code=204)
    place = f"/v1/workspaces/{quote(workspace, safe='')}/projects/{quote(project, safe='')}/runs"
    url = f"{place}/{started.run_id}"
    body = {"run_id": started.run_id, "joined": started.joined, "status_url": url}
    return JSONResponse(body, 200 if started.joined else 202, {"Location": url})


def _draft(workspace: str, project: str, actor: str, asked: dict[str, Any]) -> RunDraft:
    only(asked, "trigger", "push_id", "locales")
    trigger, push_id = asked.get("trigger", "manual"), asked.get("push_id")
    if not project.isprintable() or len(project) > _NAME_CHARS_MAX:
        raise CallerError("no such project", "not_found", place="path.project")
    if trigger not in TRIGGERS:
        raise CallerError(f"trigger must be one of {', '.join(TRIGGERS)}", place="trigger")
    if push_id is not None and not (
        isinstance(push_id, str) and 0 < len(push_id) <= PUSH_ID_CHARS_MAX and push_id.isprintable()
    ):
        raise CallerError(f"push_id must be text of 1 to {PUSH_ID_CHARS_MAX} characters", place="push_id")
    return RunDraft(workspace, project, actor, trigger, push_id or "", _locales(asked.get("locales")))


def _locales(asked: object) -> dict[str, list[str]]:
    """The locales that a run is for; those of the server's settings where none is named."""
    if asked is None:
        return {}
    if not isinstance(asked, list) or not 0 < len(asked) <= _LOCALES_MAX:
        raise CallerError(f"locales must be a list of 1 to {_LOCALES_MAX}", place="locales")
    for index, locale in enumerate(asked):
        if not isinstance(locale, str):
            raise CallerError("this must be text", place=f"locales[{index}]")
    return {"locales": sorted({locales.canonical(locale) for locale in asked})}


@router.get(
    "/{run_id}",
    responses={**gives(200, RunStatus, "As it stands.", examples.RUN_STATUS), **refuses()},
)
async def get_run(
    workspace: str, project: str, run_id: str, identity: Reader, services: TheServices
) -> JSONResponse:
    """State, passes, the true split of memory and AI, and money."""
    report = await services.convergence.report(workspace, known_id(run_id))
    if report["project"] != project:
        raise CallerError(f"no run {run_id}", "not_found")
    return JSONResponse(report)
