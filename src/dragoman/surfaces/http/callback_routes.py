"""Where the engine's events come in: signed instead of bearing a token, and answered after the commit."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request
from fastapi.responses import JSONResponse

from dragoman.kernel.errors import CallerError
from dragoman.kernel.limits import CALLBACK_BYTES_MAX
from dragoman.kernel.signing import EVENT
from dragoman.model.events import EVENTS
from dragoman.surfaces.http import examples
from dragoman.surfaces.http.contract import gives, refuses, takes
from dragoman.surfaces.http.shapes import Event, Received
from dragoman.surfaces.web.bearer import TheServices, current_schema
from dragoman.surfaces.web.bodies import read_json

router = APIRouter(tags=["callbacks"])


@router.post(
    "/v1/callbacks/submission",
    dependencies=[Depends(current_schema)],
    openapi_extra=takes(Event, examples.EVENT),
    responses={
        **gives(200, Received, "Applied, now or before; or too old to matter.", {"receipt": "applied"}),
        **gives(202, Received, "Kept; it is applied by a worker.", {"receipt": "kept"}),
        **refuses(
            "unauthorized", "forbidden", "callback_contradiction", "invalid_request", body=True, bearer=False
        ),
    },
)
async def receive_submission_event(
    request: Request,
    services: TheServices,
    event: Annotated[str | None, Header(alias=EVENT, description="One of the events of the body.")] = None,
) -> JSONResponse:
    """Take in the end of a job: verified, kept once, then applied."""
    _refuse_strangers(request, services.settings.callback_networks)
    body = await read_json(request, CALLBACK_BYTES_MAX)
    if event is not None and event not in EVENTS:
        raise CallerError(f"{EVENT}: an event that is not known here", place=f"header.{EVENT}")
    status = await services.callbacks.receive(body, request.headers)
    return JSONResponse({"receipt": "applied" if status == 200 else "kept"}, status)


def _refuse_strangers(request: Request, networks: Sequence[str]) -> None:
    """Raise `CallerError` forbidden for an address outside of the networks that events may come from."""
    if not networks:
        return
    try:
        address = ipaddress.ip_address(request.client.host if request.client else "")
    except ValueError:
        address = None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    if address is None or not any(address in ipaddress.ip_network(network) for network in networks):
        raise CallerError("events are not taken from this address", "forbidden", place="address")
