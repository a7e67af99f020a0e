"""The member `i18next`."""

from __future__ import annotations

from dragoman.content.formats.i18next import I18next
from tests.conformance.formats.member import Member
from tests.conformance.formats.members.json_catalogue import read_strings

MEMBERS = (
    Member(
        I18next(),
        "public/locales/{locale}/translation.json",
        """\
{
  "title": "Hello {{name}}",
  "nested": {
    "tags_zero": "No tags",
    "tags_one": "{{count}} tag",
    "tags_other": "{{count}} tags",
    "friend_male": "A boyfriend",
    "max_one": "Max One"
  },
  "place_ordinal_one": "{{count}}st place",
  "place_ordinal_two": "{{count}}nd place",
  "place_ordinal_few": "{{count}}rd place",
  "place_ordinal_other": "{{count}}th place",
  "list": ["one", "two"],
  "number": 12
}
""",
        oracle=read_strings,
        malformed=(('{"a": }', 1), ('{\n"a": "{{b}}"\n', 3), ("{\n'a': 1}", 2)),
        kept=lambda key: "list/" in key,
    ),
)
