"""Answers with an ETag: who already has what there is, is told so and sent nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from dragoman.kernel.identity import sha256


def tagged(request: Request, body: Mapping[str, Any]) -> Response:
    """`body` as JSON under the ETag of its bytes, or 304 where the request names that ETag."""
    answer = JSONResponse(body)
    tag = f'"{sha256(bytes(answer.body))[:32]}"'
    if tag in [
        known.strip().removeprefix("W/") for known in request.headers.get("if-none-match", "").split(",")
    ]:
        return Response(status_code=304, headers={"ETag": tag})
    answer.headers["ETag"] = tag
    return answer
