"""Request bodies: bounded before they are read, of the right type, and strictly one JSON object."""

from __future__ import annotations

from typing import Any

from fastapi import Request

from dragoman.kernel import canonical
from dragoman.kernel.errors import CallerError
from dragoman.kernel.offload import Offload

_OFFLOADED_BYTES = 64 * 1024


async def read_bytes(request: Request, bytes_max: int) -> bytes:
    """The body, refused as soon as it is known to be longer than `bytes_max`: `request_too_large`."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > bytes_max:
        raise _too_large(bytes_max)
    pieces, length = [], 0
    async for piece in request.stream():
        length += len(piece)
        if length > bytes_max:
            raise _too_large(bytes_max)
        pieces.append(piece)
    return b"".join(pieces)


async def read_json(request: Request, bytes_max: int) -> bytes:
    """The bytes of a body that says that it is JSON; else `unsupported_media_type`."""
    require_json(request)
    return await read_bytes(request, bytes_max)


async def read_object(request: Request, bytes_max: int, offload: Offload) -> dict[str, Any]:
    """The one JSON object in a body: UTF-8, unique keys, bounded depth. A large one is parsed aside."""
    body = await read_json(request, bytes_max)
    if len(body) > _OFFLOADED_BYTES:
        return await offload.call(canonical.parse, body)
    return canonical.parse(body)


async def read_object_or_none(request: Request, bytes_max: int) -> dict[str, Any]:
    """As `read_object` for small ones; a request without a body says `{}`."""
    body = await read_bytes(request, bytes_max)
    if not body:
        return {}
    require_json(request)
    return canonical.parse(body)


def require_json(request: Request) -> None:
    """Raise `CallerError` unsupported_media_type unless the body is announced as JSON in UTF-8."""
    kind, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower()
    if kind.strip().lower() != "application/json" or charset not in ("", "charset=utf-8", 'charset="utf-8"'):
        raise CallerError("the body must be application/json in UTF-8", "unsupported_media_type")


def only(said: dict[str, Any], *known: str) -> None:
    """Raise `CallerError` naming the first member of `said` that is not known."""
    for name in said:
        if name not in known:
            raise CallerError(
                f"{name[:64]!r} is not known here; known are {', '.join(known)}", place=name[:64]
            )


def _too_large(bytes_max: int) -> CallerError:
    return CallerError(f"the body is longer than {bytes_max} bytes", "request_too_large", place="body")
