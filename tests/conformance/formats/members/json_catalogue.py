"""The member `json_catalogue`."""

from __future__ import annotations

import json
from collections.abc import Iterator

from dragoman.content.formats.json_catalogue import JsonCatalogue
from tests.conformance.formats.member import Member


def read_strings(data: bytes) -> list[str]:
    return list(_strings(json.loads(data)))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _strings(member)


MEMBERS = (
    Member(
        JsonCatalogue(),
        "locales/{locale}.json",
        """\
{
  "flat.key": "Hello {name}",
  "nested": {
    "deep": "“Quoted” text",
    "number": 12,
    "list": ["one", "two"],
    "none": null
  },
  "last": "line\\nbreak"
}
""",
        oracle=read_strings,
        malformed=(('{"a": }', 1), ('{\n"a": "b"\n', 3), ("{\n'a': 1}", 2)),
        kept=lambda key: "list/" in key,
    ),
)
