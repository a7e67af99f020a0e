"""The contract: complete, with examples that fit their shapes. (tests/tidy holds docs/openapi.json to it.)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
import pytest

from dragoman.kernel.errors import CODES
from dragoman.surfaces.http.app import open_api

CONTRACT = open_api()
OPERATIONS = [
    pytest.param(path, method, operation, id=f"{method} {path}")
    for path, methods in CONTRACT["paths"].items()
    for method, operation in methods.items()
]


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS)
def test_every_operation_says_what_it_does_takes_gives_and_refuses(
    path: str, method: str, operation: dict[str, Any]
) -> None:
    assert operation["description"]
    if path == "/healthz":
        return
    refusals = {status for status in operation["responses"] if status >= "400"}
    open_to_all = path in ("/readyz", "/v1/callbacks/submission")
    assert refusals >= ({"503"} if open_to_all else {"401", "403", "404", "422", "500", "503"})
    assert open_to_all or operation["security"] == [{"token": []}]


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS)
def test_every_body_has_an_example_that_fits_its_shape(
    path: str, method: str, operation: dict[str, Any]
) -> None:
    shown = list(_examples(operation))
    assert shown
    for schema, example in shown:
        validator = jsonschema_rs.Draft202012Validator({**schema, "components": CONTRACT["components"]})
        assert [str(error) for error in validator.iter_errors(example)] == []


def test_every_code_that_the_contract_names_is_one_of_ours() -> None:
    named = set()
    for operation in (one for methods in CONTRACT["paths"].values() for one in methods.values()):
        for status, response in operation["responses"].items():
            for media, content in response.get("content", {}).items():
                if media == "application/problem+json":
                    named |= {(code, int(status)) for code in content["examples"]}
    assert named
    assert named <= {(code.name, code.status) for code in CODES.values()}


def _examples(operation: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], object]]:
    """(schema, example) of everything that an operation takes and gives."""
    bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
    for body in bodies:
        for content in body.get("content", {}).values():
            given = [
                CONTRACT["components"]["examples"][code]["value"] for code in content.get("examples", {})
            ]
            for example in [*given, *([content["example"]] if "example" in content else [])]:
                yield content["schema"], example
