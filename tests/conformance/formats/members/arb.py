"""The member `arb`."""

from __future__ import annotations

import json

from dragoman.content.formats.arb import ArbCatalogue
from tests.conformance.formats.member import Member


def _read(data: bytes) -> list[str]:
    return [value for name, value in json.loads(data).items() if not name.startswith("@")]


MEMBERS = (
    Member(
        ArbCatalogue(),
        "lib/l10n/app_{locale}.arb",
        """\
{
  "@@locale": "en",
  "title": "Hello {name}",
  "@title": {
    "description": "Greeting",
    "placeholders": {"name": {"type": "String", "example": "Ann"}}
  },
  "wait": "Wait {count, plural, =1{a day} other{{count} days}}",
  "@wait": {"description": "How long"},
  "plain": "No attributes …"
}
""",
        oracle=_read,
        malformed=(('{"a": }', 1), ('{\n"a": "b"\n', 3), ("{\n'a': 1}", 2), ('{"a": "x"} // y', 1)),
    ),
)
