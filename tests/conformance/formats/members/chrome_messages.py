"""The member `chrome_messages`."""

from __future__ import annotations

import json

from dragoman.content.formats.chrome_messages import ChromeMessages
from tests.conformance.formats.member import Member


def _read(data: bytes) -> list[str]:
    return [entry["message"] for entry in json.loads(data).values()]


MEMBERS = (
    Member(
        ChromeMessages(),
        "_locales/{locale}/messages.json",
        """\
{
  "name": {
    "message": "Tidy tabs",
    "description": "The extension's name"
  },
  "greeting": {
    "message": "Hello, $USER$!",
    "description": "On the start page",
    "placeholders": {
      "user": {
        "content": "$1",
        "example": "Cira"
      }
    }
  },
  "bare": { "message": "“Quoted” text" }
}
""",
        oracle=_read,
        malformed=(('{"a": }', 1), ('{\n"a": {"message": "b"}\n', 3), ("[\n1,]", 2)),
    ),
)
