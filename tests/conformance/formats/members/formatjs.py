"""The member `formatjs`."""

from __future__ import annotations

import json

from dragoman.content.formats.formatjs import FormatJs
from tests.conformance.formats.member import Member

_PLURAL = "{count, plural, one {{count} file} other {{count} files}}"


def _extracted(data: bytes) -> list[str]:
    return [entry["defaultMessage"] for entry in json.loads(data).values()]


MEMBERS = (
    Member(
        FormatJs(),
        "lang/{locale}.json",
        f"""\
{{
  "a1b2c3": {{
    "defaultMessage": "Hello <b>{{name}}</b>",
    "description": "Greeting"
  }},
  "files.count": {{
    "defaultMessage": "{_PLURAL}"
  }}
}}
""",
        oracle=_extracted,
        malformed=(('{"a": {"defaultMessage": "x"}', 1), ('{\n"a": "b",\n}', 3)),
    ),
)
