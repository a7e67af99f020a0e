"""Events on their way out: which wait, which are dead, and a way to send a dead one again."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse

from dragoman.kernel.limits import FAILURES_PAGE, FAILURES_PAGE_MAX
from dragoman.model.identities import Identity
from dragoman.model.scopes import Workspace
from dragoman.store.acts import delivering
from dragoman.surfaces.http import examples
from dragoman.surfaces.http.contract import gives, refuses
from dragoman.surfaces.http.shapes import DeliveryPage, Redriven
from dragoman.surfaces.web import paging
from dragoman.surfaces.web.bearer import Allowed, TheServices, known_id

router = APIRouter(prefix="/v1/admin/webhook-outbox", tags=["admin"])

Admin = Annotated[Identity, Depends(Allowed("admin"))]
State = Literal["pending", "delivering", "delivered", "dead"]

_OUTBOX = "outbox"


@router.get("", responses={**gives(200, DeliveryPage, "A page.", examples.DELIVERY_PAGE), **refuses()})
async def list_deliveries(
    identity: Admin,
    services: TheServices,
    state: Annotated[State | None, Query(description="Only those in this state.")] = None,
    cursor: Annotated[str | None, Query(description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=FAILURES_PAGE_MAX)] = FAILURES_PAGE,
) -> JSONResponse:
    """The events of the token's workspace, newest first, without texts and secrets."""
    before = paging.position(_OUTBOX, cursor)
    found = await services.database.read(
        delivering.outbox_page, Workspace(identity.workspace), state or "", before, limit
    )
    last = str(found[-1]["id"]) if len(found) == limit else None
    return JSONResponse({"items": found, "next": paging.seal(_OUTBOX, last)})


@router.post(
    "/{delivery_id}/redrive",
    status_code=202,
    responses={
        **gives(202, Redriven, "It is due.", examples.REDRIVEN),
        **refuses("EFFECT_IN_FLIGHT", "EFFECT_ALREADY_COMPLETE", "nothing_to_retry"),
    },
)
async def redrive(delivery_id: str, identity: Admin, services: TheServices) -> JSONResponse:
    """Send a dead event again: the same id, the same bytes. Who did it is written down."""
    await services.database.run(
        delivering.redrive_delivery, Workspace(identity.workspace), known_id(delivery_id), identity.actor
    )
    return JSONResponse({"id": delivery_id, "state": "pending"}, 202)
