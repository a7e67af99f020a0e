"""The pieces of which every route's contract is made: what it takes, what it gives, how it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from dragoman import __version__
from dragoman.kernel.errors import CODES
from dragoman.surfaces.http.shapes import EXAMPLE_ID, REQUESTS, Problem
from dragoman.surfaces.web.problems import described

Responses = dict[int | str, dict[str, Any]]

_REF = "#/components/schemas/"
_EXAMPLES = "#/components/examples/"
_ANYWHERE = ("internal_error", "database_unavailable", "schema_unavailable")
_BEARER = ("unauthorized", "forbidden", "not_found", "invalid_request", *_ANYWHERE)
_BODY = ("invalid_json", "request_too_large", "unsupported_media_type")
_ABOUT = """\
Translates whole catalogues in bulk: any number of documents into any number of locales, asked for in one
request.

Every path but health and callbacks wants a bearer token of the workspace. Refusals are
`application/problem+json` with a stable `code`, the `place` that is wrong and a `remedy`. Lists go on by
`cursor`."""


def takes(shape: type[BaseModel], example: Mapping[str, Any], required: bool = True) -> dict[str, Any]:
    """The request body of a route that reads it by itself (`openapi_extra`)."""
    content = {"application/json": {"schema": {"$ref": _REF + shape.__name__}, "example": example}}
    return {"requestBody": {"required": required, "content": content}}


def gives(status: int, shape: type[BaseModel], description: str, example: Mapping[str, Any]) -> Responses:
    """The answer of one status."""
    content = {"application/json": {"example": example}}
    return {status: {"model": shape, "description": description, "content": content}}


def refuses(*codes: str, body: bool = False, bearer: bool = True) -> Responses:
    """The refusals of a route: its own, and those that come with a token, a body, or any request."""
    common = (*(_BEARER if bearer else _ANYWHERE), *(_BODY if body else ()))
    by_status: dict[int, list[str]] = {}
    for code in dict.fromkeys((*codes, *common)):
        by_status.setdefault(CODES[code].status, []).append(code)
    return {status: _problem(named) for status, named in sorted(by_status.items())}


def unchanged() -> Responses:
    """304: what the client has is what there is."""
    return {304: {"description": "Unchanged since the answer with the ETag in `If-None-Match`."}}


class Described(FastAPI):
    """An app whose contract also has the shapes that its routes read from bodies by themselves."""

    def openapi(self) -> dict[str, Any]:
        """The whole contract, made once."""
        if self.openapi_schema is None:
            self.openapi_schema = _whole(self)
        return self.openapi_schema


def _whole(app: FastAPI) -> dict[str, Any]:
    schema = get_openapi(
        title="Dragoman", version=__version__, description=_ABOUT, routes=app.routes, license_info=_LICENSE
    )
    shapes: list[tuple[type[BaseModel], Literal["validation"]]]
    shapes = [(shape, "validation") for shape in REQUESTS] + [(Problem, "validation")]
    _, taken = models_json_schema(shapes, ref_template=_REF + "{model}")
    schemas = schema["components"].setdefault("schemas", {})
    schemas.update(taken["$defs"])
    schema["components"]["schemas"] = dict(sorted(schemas.items()))
    schema["components"]["examples"] = {code: _example(code) for code in sorted(_named(schema))}
    return schema


_LICENSE = {"name": "Apache-2.0", "identifier": "Apache-2.0"}


def _problem(codes: list[str]) -> dict[str, Any]:
    examples = {code: {"$ref": _EXAMPLES + code} for code in codes}
    schema = {"$ref": _REF + Problem.__name__}
    return {
        "description": "; ".join(f"`{code}`" for code in codes),
        "content": {"application/problem+json": {"schema": schema, "examples": examples}},
    }


def _named(schema: Mapping[str, Any]) -> set[str]:
    """The codes of all refusals in the contract."""
    return {
        code
        for methods in schema["paths"].values()
        for operation in methods.values()
        for response in operation["responses"].values()
        for code in response.get("content", {}).get("application/problem+json", {}).get("examples", {})
    }


def _example(code: str) -> dict[str, Any]:
    return {"summary": CODES[code].remedy, "value": described(code, CODES[code].remedy, "", EXAMPLE_ID)}
