"""Errors as `application/problem+json` (RFC 9457): the code of our one tree, where, and what to do now.

What the caller did wrong is told in the error's own words. Of what is wrong with us only the code and its
remedy are told: a message of ours may name hosts and paths, so it goes to the log under the request's id.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from dragoman.kernel.errors import CODES, CallerError, DragomanError
from dragoman.kernel.journal import logger
from dragoman.kernel.limits import RETRY_FIRST_SECONDS

_log = logger(__name__)

_OF_STATUS = {404: "not_found", 405: "method_not_allowed"}
_SPELLED = {"submission_id_conflict": "SUBMISSION_ID_CONFLICT"}
"""Codes that clients of the bulk-content contract know in another spelling."""


class Problem(JSONResponse):
    """One problem, rendered."""

    media_type = "application/problem+json"


def render(error: DragomanError, request_id: str) -> Problem:
    """The answer to a request that ended in `error`."""
    code = CODES[error.code]
    ours = code.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    detail, place = (code.remedy, "") if ours else (error.message, error.place)
    return Problem(
        described(code.name, detail, place, request_id), code.status, _headers(code.status, code.retryable)
    )


def described(name: str, detail: str, place: str, request_id: str) -> dict[str, Any]:
    """The members of a problem with this code."""
    code = CODES[name]
    return {
        "type": f"urn:dragoman:problem:{name}",
        "title": name.replace("_", " ").capitalize(),
        "status": code.status,
        "code": _SPELLED.get(name, name),
        "detail": detail,
        "place": place,
        "remedy": code.remedy,
        "retryable": code.retryable,
        "request_id": request_id,
    }


def request_id_of(request: Request) -> str:
    """The id under which this request is logged and answered."""
    return str(getattr(request.state, "request_id", ""))


def install(app: FastAPI) -> None:
    """Let every error that leaves a route of `app` be rendered here."""
    app.add_exception_handler(DragomanError, _ours)
    app.add_exception_handler(RequestValidationError, _parameters)
    app.add_exception_handler(HTTPException, _routing)


async def _ours(request: Request, error: Exception) -> Problem:
    assert isinstance(error, DragomanError)  # noqa: S101 - what the registration above promises
    if CODES[error.code].status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.warning("request failed", code=error.code, reason=error.message, request=request_id_of(request))
    return render(error, request_id_of(request))


async def _parameters(request: Request, error: Exception) -> Problem:
    """A path, query or header parameter that is not what the contract says."""
    assert isinstance(error, RequestValidationError)  # noqa: S101
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return render(CallerError(f"{place}: {first['msg']}", place=place), request_id_of(request))


async def _routing(request: Request, error: Exception) -> Problem:
    """No such path, or not by this method."""
    assert isinstance(error, HTTPException)  # noqa: S101
    code = _OF_STATUS.get(error.status_code, "invalid_request")
    answer = render(CallerError(f"{request.method} is not answered here", code), request_id_of(request))
    answer.headers.update(error.headers or {})
    return answer


def _headers(status: int, retryable: bool) -> Mapping[str, str]:
    if status == HTTPStatus.UNAUTHORIZED:
        return {"WWW-Authenticate": "Bearer"}
    if retryable and status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        return {"Retry-After": str(RETRY_FIRST_SECONDS)}
    return {}
