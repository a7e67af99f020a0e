"""Files of a project whose tree lies here: sent before a run, fetched after it, changed under conditions."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import JSONResponse, Response

from dragoman.kernel.errors import CallerError
from dragoman.kernel.identity import sha256
from dragoman.kernel.limits import DOCUMENT_BYTES_MAX, DOCUMENT_REF_CHARS_MAX, FILES_PAGE
from dragoman.model.identities import Identity
from dragoman.surfaces.http import examples
from dragoman.surfaces.http.contract import gives, refuses
from dragoman.surfaces.http.shapes import FilePage
from dragoman.surfaces.web.bearer import Allowed, TheServices
from dragoman.surfaces.web.bodies import read_bytes
from dragoman.wiring.sourcing import frozen_source

router = APIRouter(prefix="/v1/workspaces/{workspace}/projects/{project}", tags=["files"])

Writer = Annotated[Identity, Depends(Allowed("manifests:write"))]
FilePath = Annotated[
    str, Query(min_length=1, max_length=DOCUMENT_REF_CHARS_MAX, description="From the project's root.")
]
IfMatch = Annotated[str | None, Header(description="The ETag of what stands there.")]
IfNoneMatch = Annotated[str | None, Header(description="`*`: nothing stands there.")]

_HASH_CHARS = 64
_BYTES: dict[str, Any] = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


@router.get(
    "/files",
    responses={**gives(200, FilePage, "A page of files, by path.", examples.FILE_PAGE), **refuses()},
)
async def list_files(
    workspace: str,
    project: str,
    identity: Writer,
    services: TheServices,
    after: Annotated[
        str, Query(max_length=DOCUMENT_REF_CHARS_MAX, description="`next` of the page before.")
    ] = "",
    limit: Annotated[int, Query(ge=1, le=FILES_PAGE)] = FILES_PAGE,
) -> JSONResponse:
    """What lies here of the project: sources, translations, and the SHA-256 of each."""
    items, behind = await services.uploading.listing(workspace, project, after, limit)
    source_locale = frozen_source(services.settings, project)["source_locale"]
    return JSONResponse({"source_locale": source_locale, "items": items, "next": behind})


@router.get(
    "/file",
    response_class=Response,
    responses={
        200: {"description": "Its bytes; the `ETag` is their SHA-256.", "content": _BYTES},
        **refuses(),
    },
)
async def get_file(
    workspace: str, project: str, path: FilePath, identity: Writer, services: TheServices
) -> Response:
    """One file."""
    data = await services.uploading.read(workspace, project, path)
    return Response(data, 200, {"ETag": f'"{sha256(data)}"'}, "application/octet-stream")


@router.put(
    "/file",
    status_code=204,
    openapi_extra={"requestBody": {"required": True, "content": _BYTES}},
    responses={
        204: {"description": "It stands there."},
        **refuses("target_raced", "target_refused", "request_too_large"),
    },
)
async def put_file(
    request: Request,
    workspace: str,
    project: str,
    path: FilePath,
    identity: Writer,
    services: TheServices,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Put a file in place, where the condition holds: exactly one of `If-Match` and `If-None-Match: *`."""
    expected = _condition(if_match, if_none_match)
    data = await read_bytes(request, DOCUMENT_BYTES_MAX)
    await services.uploading.change(workspace, project, path, data, expected)
    return Response(status_code=204, headers={"ETag": f'"{sha256(data)}"'})


@router.delete(
    "/file",
    status_code=204,
    responses={204: {"description": "It is gone."}, **refuses("target_raced", "target_refused")},
)
async def delete_file(
    workspace: str,
    project: str,
    path: FilePath,
    identity: Writer,
    services: TheServices,
    if_match: IfMatch = None,
) -> Response:
    """Remove a file that stands as `If-Match` says."""
    expected = _condition(if_match, None)
    await services.uploading.change(workspace, project, path, None, expected)
    return Response(status_code=204)


def _condition(match: str | None, none_match: str | None) -> str:
    """The SHA-256 that must stand, empty for nothing."""
    if (match is None) == (none_match is None):
        raise CallerError("say If-Match, or If-None-Match: * where nothing stands", place="header.If-Match")
    if match is None:
        if none_match != "*":
            raise CallerError("the only value known here is *", place="header.If-None-Match")
        return ""
    expected = match.strip('"')
    if len(expected) != _HASH_CHARS or not expected.isalnum() or not expected.isascii():
        raise CallerError("this is no ETag of ours", place="header.If-Match")
    return expected
