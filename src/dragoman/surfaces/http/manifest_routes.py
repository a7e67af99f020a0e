"""Manifests: asked for, looked at, steered. A manifest belongs to who asked for it."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import JSONResponse, Response

from dragoman.flow.site.admission import Caller
from dragoman.kernel import metrics
from dragoman.kernel.errors import CallerError, OutsideError
from dragoman.kernel.limits import (
    CHOSEN_INTENTS_MAX,
    FAILURES_PAGE,
    FAILURES_PAGE_MAX,
    ITEMS_PAGE,
    SMALL_BODY_BYTES_MAX,
)
from dragoman.model.identities import Identity
from dragoman.model.intents import Admitted
from dragoman.store.acts import readiness
from dragoman.surfaces.http import examples
from dragoman.surfaces.http.contract import gives, refuses, takes, unchanged
from dragoman.surfaces.http.shapes import (
    Chosen,
    Decided,
    Estimate,
    FailurePage,
    ManifestAccepted,
    ManifestRequest,
    ManifestStatus,
    ResultPage,
    Steered,
)
from dragoman.surfaces.web import paging
from dragoman.surfaces.web.bearer import Allowed, TheServices, require, see_manifest
from dragoman.surfaces.web.bodies import only, read_object, read_object_or_none
from dragoman.surfaces.web.tagging import tagged
from dragoman.wiring.services import Services

router = APIRouter(prefix="/v1/workspaces/{workspace}/manifests", tags=["manifests"])

Reader = Annotated[Identity, Depends(Allowed())]
Writer = Annotated[Identity, Depends(Allowed("manifests:write"))]
Cursor = Annotated[str | None, Query(description="`next` of the page before.")]

_FAILURES, _RESULTS = "failures", "results"


@router.post(
    "",
    status_code=202,
    openapi_extra=takes(ManifestRequest, examples.MANIFEST_REQUEST),
    responses={
        **gives(202, ManifestAccepted, "Durable; the same for the same request.", examples.MANIFEST_ACCEPTED),
        **refuses(
            "request_id_conflict", "duplicate_pair", "empty_request", "source_is_target",
            "unsupported_locale", "unsupported_collection", "source_unavailable", "provider_unknown",
            "worker_unavailable", "admission_closed", body=True,
        ),
    },
)  # fmt: skip
async def create_manifest(
    request: Request,
    workspace: str,
    identity: Writer,
    services: TheServices,
    idempotency_key: Annotated[str | None, Header(description="Another spelling of `request_id`.")] = None,
) -> JSONResponse:
    """Ask for translations. Nothing is prepared and nobody is called before the answer."""
    with metrics.admitting("decode"):
        asked = await read_object(request, services.settings.request_bytes_max, services.offload)
    _name(asked, idempotency_key)
    if asked.get("mode") == "force":
        require(identity, "manifests:force")
    await refuse_unworked(services)
    admitted = await services.admission.admit(Caller(workspace, identity.actor), asked)
    return _admitted(workspace, admitted)


def _admitted(workspace: str, admitted: Admitted) -> JSONResponse:
    status_url = _status_url(workspace, admitted.manifest_id)
    body = {
        "manifest_id": admitted.manifest_id,
        "status": "preparing",
        "total": admitted.total,
        "total_known": admitted.total_known,
        "status_url": status_url,
    }
    return JSONResponse(body, 202, {"Location": status_url})


@router.get(
    "/{manifest_id}",
    responses={
        **gives(200, ManifestStatus, "As it stands.", examples.MANIFEST_STATUS),
        **unchanged(),
        **refuses(),
    },
)
async def get_manifest(
    request: Request, workspace: str, manifest_id: str, identity: Reader, services: TheServices
) -> Response:
    """Status, counters that sum to the total, money, publication, and the first failures."""
    await see_manifest(services, identity, manifest_id)
    status = await services.views.status(workspace, manifest_id, identity.actor)
    failures = await services.views.failures(
        workspace, manifest_id, limit=FAILURES_PAGE, reader=identity.actor
    )
    return tagged(request, {**status, "failures": _paged(_FAILURES, failures)})


@router.get(
    "/{manifest_id}/failures",
    responses={**gives(200, FailurePage, "A page of failures.", examples.FAILURE_PAGE), **refuses()},
)
async def list_failures(
    workspace: str,
    manifest_id: str,
    identity: Reader,
    services: TheServices,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=FAILURES_PAGE_MAX)] = FAILURES_PAGE,
) -> JSONResponse:
    """What failed, why, and whether it may be retried: of the documents that the reader may edit."""
    await see_manifest(services, identity, manifest_id)
    after = paging.ordinal(_FAILURES, cursor)
    page = await services.views.failures(workspace, manifest_id, after, limit, identity.actor)
    return JSONResponse(_paged(_FAILURES, page))


@router.get(
    "/{manifest_id}/results",
    responses={**gives(200, ResultPage, "A page of texts.", examples.RESULT_PAGE), **refuses()},
)
async def list_results(
    workspace: str,
    manifest_id: str,
    identity: Reader,
    services: TheServices,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=ITEMS_PAGE)] = FAILURES_PAGE_MAX,
) -> JSONResponse:
    """The translated texts that are here, document by document."""
    await see_manifest(services, identity, manifest_id)
    after = paging.ordinal(_RESULTS, cursor)
    return JSONResponse(_paged(_RESULTS, await services.views.results(workspace, manifest_id, after, limit)))


@router.post(
    "/{manifest_id}/retry",
    status_code=202,
    openapi_extra=takes(Chosen, examples.CHOSEN, required=False),
    responses={
        **gives(202, Steered, "A new generation of these is due.", examples.STEERED),
        **refuses("nothing_to_retry", "not_owner", body=True),
    },
)
async def retry_manifest(
    request: Request, workspace: str, manifest_id: str, identity: Writer, services: TheServices
) -> JSONResponse:
    """Try failures again: those named, or all that may be retried. Only who asked for the manifest may."""
    await see_manifest(services, identity, manifest_id)
    chosen = await read_chosen(request)
    count = await services.steering.retry(workspace, manifest_id, identity.actor, chosen)
    return JSONResponse(steered(workspace, manifest_id, intents=count), 202)


@router.post(
    "/{manifest_id}/cancel",
    status_code=202,
    responses={
        **gives(202, Decided, "Nothing of it starts any more.", examples.DECIDED),
        **refuses("not_owner"),
    },
)
async def cancel_manifest(
    workspace: str, manifest_id: str, identity: Writer, services: TheServices
) -> JSONResponse:
    """Cancel what is open. What was paid for is kept in memory. Only who asked for the manifest may."""
    await see_manifest(services, identity, manifest_id)
    outcome = await services.steering.cancel(workspace, manifest_id, identity.actor)
    return JSONResponse(_decided(workspace, manifest_id, *outcome), 202)


@router.post(
    "/{manifest_id}/give-up",
    status_code=202,
    responses={
        **gives(202, Steered, "What waited for lost jobs has ended.", examples.STEERED),
        **refuses("nothing_lost", "not_owner", "backend_unavailable"),
    },
)
async def give_up_manifest(
    workspace: str, manifest_id: str, identity: Writer, services: TheServices
) -> JSONResponse:
    """Give up jobs that the engine took and does not know any more, once it has been asked about each again.

    What waits for them fails as `job_lost`, which may be retried; in a canceled manifest it is skipped. What
    they cost stays unknown until an event of theirs tells. An engine also answers 404 where the token is
    another account's: see to that first. Only who asked for the manifest may, and administrators.
    """
    await see_manifest(services, identity, manifest_id)
    is_admin = identity.may("admin")
    given = await services.losses.give_up(workspace, manifest_id, identity.actor, is_admin=is_admin)
    return JSONResponse(steered(workspace, manifest_id, intents=given.intents), 202)


@router.post(
    "/{manifest_id}/pause",
    status_code=202,
    responses={
        **gives(202, Decided, "No attempt of it starts any more.", examples.DECIDED),
        **refuses("not_owner"),
    },
)
async def pause_manifest(
    workspace: str, manifest_id: str, identity: Writer, services: TheServices
) -> JSONResponse:
    """Let it rest: walking, preparing, sending, translating, publishing. What has begun comes to its end."""
    await see_manifest(services, identity, manifest_id)
    outcome = await services.steering.pause(workspace, manifest_id, identity.actor)
    return JSONResponse(_decided(workspace, manifest_id, *outcome), 202)


@router.post(
    "/{manifest_id}/resume",
    status_code=202,
    responses={**gives(202, Decided, "It goes on where it stood.", examples.DECIDED), **refuses("not_owner")},
)
async def resume_manifest(
    workspace: str, manifest_id: str, identity: Writer, services: TheServices
) -> JSONResponse:
    """Let a paused manifest go on. Only who asked for the manifest may."""
    await see_manifest(services, identity, manifest_id)
    outcome = await services.steering.resume(workspace, manifest_id, identity.actor)
    return JSONResponse(_decided(workspace, manifest_id, *outcome), 202)


@router.post(
    "/{manifest_id}/promote",
    status_code=202,
    responses={
        **gives(202, ManifestAccepted, "The manifest that goes on.", examples.MANIFEST_ACCEPTED),
        **refuses(
            "nothing_to_promote", "not_owner", "worker_unavailable", "admission_closed", "request_id_conflict"
        ),
    },
)
async def promote_manifest(
    workspace: str, manifest_id: str, identity: Writer, services: TheServices
) -> JSONResponse:
    """Go on with the pairs that a canary left out, in a second manifest; the same one however often asked."""
    await see_manifest(services, identity, manifest_id)
    await refuse_unworked(services)
    may_force = "manifests:force" in identity.capabilities
    return _admitted(
        workspace, await services.promotion.promote(workspace, manifest_id, identity.actor, may_force)
    )


async def read_chosen(request: Request) -> list[str] | None:
    """The intents that a body names; None where it names none."""
    said = await read_object_or_none(request, SMALL_BODY_BYTES_MAX)
    only(said, "intent_ids")
    chosen = said.get("intent_ids")
    if chosen is None:
        return None
    if not isinstance(chosen, list) or not 0 < len(chosen) <= CHOSEN_INTENTS_MAX:
        raise CallerError(f"intent_ids must be a list of 1 to {CHOSEN_INTENTS_MAX} ids", place="intent_ids")
    for index, intent_id in enumerate(chosen):
        if not isinstance(intent_id, str) or len(intent_id) != 36 or not intent_id.isascii():
            raise CallerError("this is no intent's id", place=f"intent_ids[{index}]")
    return chosen


@router.post(
    "/estimate",
    openapi_extra=takes(ManifestRequest, examples.MANIFEST_REQUEST),
    responses={
        **gives(200, Estimate, "The price by locale.", examples.ESTIMATE),
        **refuses(
            "duplicate_pair", "empty_request", "source_is_target", "unsupported_locale",
            "unsupported_collection", "source_unavailable", "provider_unknown",
            "provider_credentials_missing", "request_too_large", body=True,
        ),
    },
)  # fmt: skip
async def estimate_manifest(
    request: Request, workspace: str, identity: Writer, services: TheServices
) -> JSONResponse:
    """What a request would cost, memory included. Calls no provider and writes nothing.

    A scope is priced as its source lists it now, without what the caller may not edit.
    """
    asked = await read_object(request, services.settings.request_bytes_max, services.offload)
    caller = Caller(workspace, identity.actor)
    project, pairs, settings = await services.admission.read_pairs(caller, asked)
    return JSONResponse(await services.estimating.estimate(workspace, project, pairs, settings))


def _name(asked: dict[str, Any], idempotency_key: str | None) -> None:
    """Let the header stand for `request_id` where the body has none; two that differ are refused."""
    if idempotency_key is None:
        return
    if asked.setdefault("request_id", idempotency_key) != idempotency_key:
        raise CallerError(
            "request_id and the header Idempotency-Key differ: send one of them", place="request_id"
        )


async def refuse_unworked(services: Services) -> None:
    """Raise `OutsideError` where nothing new is taken: by a setting, or since nobody would work it."""
    if services.settings.admission == "closed":
        raise OutsideError("admission is closed by a setting", "admission_closed")
    if not await services.database.read(readiness.worker_seen):
        raise OutsideError("no worker was seen lately", "worker_unavailable")


def _paged(list_name: str, page: dict[str, Any]) -> dict[str, Any]:
    return {**page, "next": paging.seal(list_name, page["next"])}


def steered(workspace: str, manifest_id: str, **outcome: object) -> dict[str, Any]:
    """The answer to an act on a manifest: what came of it, and where to look."""
    return {"manifest_id": manifest_id, **outcome, "status_url": _status_url(workspace, manifest_id)}


def _decided(workspace: str, manifest_id: str, changed: bool, told: bool) -> dict[str, Any]:
    """The answer to a decision: whether it changed anything, and whether the engine is known to know it."""
    return steered(workspace, manifest_id, changed=changed, control="told" if told else "pending")


def _status_url(workspace: str, manifest_id: str) -> str:
    return f"/v1/workspaces/{quote(workspace, safe='')}/manifests/{manifest_id}"
