"""The member `rails_yaml`."""

from __future__ import annotations

from collections.abc import Iterator

from ruamel.yaml import YAML

from dragoman.content.formats.rails_yaml import RailsYaml
from tests.conformance.formats.member import Member


def strings(value: object) -> Iterator[str]:
    """Every string below a value, without the line ends that close a block scalar."""
    if isinstance(value, str):
        yield value.rstrip("\n")
    elif isinstance(value, (dict, list)):
        for member in value.values() if isinstance(value, dict) else value:
            yield from strings(member)


def read(data: bytes) -> list[str]:
    """What ruamel.yaml reads, which shares no code with PyYAML's C parser."""
    text = data.decode("utf-16" if data[:1] in (b"\xff", b"\xfe") else "utf-8-sig")
    return list(strings(YAML(typ="safe", pure=True).load(text)))


MEMBERS = (
    Member(
        RailsYaml(),
        "config/locales/{locale}.yml",
        """\
# Texts of the application
en:
  # Shown in the bar
  greeting: "Hello %{name}"   # first name
  answers:
    yes: 'Yes, please'
    no: Not now
    time: 12:30
  items:
    zero: No items
    one: One item
    other: '%{count} items'
  inline: { one: "a day", other: "days" }
  days:
    -
    - Monday
    - "Tuesday"
  help: |
    Two
    # lines

  folded: >-
    One line,
    folded
  precision: 2
""",
        oracle=read,
        malformed=(
            ("en:\n  a: b\n c: d\n", 3),
            ("en:\n  a: b\nde:\n  a: b\n", 3),
            ("en:\n  a: 1\n  a: 2\n", 3),
            ("a\n", 1),
        ),
        kept=lambda key: "days/" in key,
    ),
)
