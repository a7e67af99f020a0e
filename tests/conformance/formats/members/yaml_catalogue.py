"""The member `yaml_catalogue`."""

from __future__ import annotations

from dragoman.content.formats.yaml_catalogue import YamlCatalogue
from tests.conformance.formats.member import Member
from tests.conformance.formats.members.rails_yaml import read

MEMBERS = (
    Member(
        YamlCatalogue(),
        "i18n/{locale}.yaml",
        """\
---
# Labels
greeting: Hello {name}
nested:
  deep: "“Quoted” text"   # seen on top

  number: 12
  list: [one, "two"]
  none: ~
flow: { a: x, b: 'it''s', c: true }
reading:
  one: One minute
  other: "{count} minutes"
constant:
  other: Only this
last: >
  One line,
  folded
""",
        oracle=read,
        malformed=(("a: b\nc: d: e\n", 2), ("a: [b\nc: d", 2), ("a: 1\n---\nb: 2\n", 2), ("just text", 1)),
        kept=lambda key: "list/" in key,
    ),
    Member(
        YamlCatalogue(),
        "i18n/{locale}.yml",
        """\
- id: greeting
  translation: Hello
# How many
- id: items
  translation:
    one: One item
    other: "{{ .Count }} items"

- id: bye
  translation: >-
    Bye
""",
        oracle=read,
        malformed=(("- id: a\n  translation: x\n- id: a\n  translation: y\n", 3),),
    ),
)
