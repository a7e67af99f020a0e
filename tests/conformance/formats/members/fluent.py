"""The member `fluent`."""

from __future__ import annotations

from moz.l10n.formats import Format
from moz.l10n.model import Entry, Expression, PatternMessage, SelectMessage, VariableRef
from moz.l10n.resource import parse_resource

from dragoman.content.formats.fluent import FluentResource
from dragoman.model.documents import Block, Text
from tests.conformance.formats.member import Member, marked


def read(data: bytes) -> list[str]:
    """What moz.l10n reads, which takes a plural for whole sentences, too."""
    resource = parse_resource(Format.fluent, data.decode("utf-8-sig"))
    entries = [entry for section in resource.sections for entry in section.entries]
    messages = [
        message
        for entry in entries
        if isinstance(entry, Entry)
        for message in (entry.value, *entry.properties.values())
    ]
    return ["".join(map(_shown, pattern)) for message in messages for pattern in _patterns(message)]


def _patterns(message: object) -> list[list[object]]:
    if isinstance(message, SelectMessage):
        return [list(pattern) for pattern in message.variants.values()]
    return [list(message.pattern)] if isinstance(message, PatternMessage) else []


def _shown(part: object) -> str:
    if isinstance(part, Expression):
        if isinstance(part.arg, VariableRef):
            return f"{{ ${part.arg.name} }}"
        return f"{{ {part.arg} }}" if part.function else str(part.arg)
    return str(part)


def _translated(block: Block, mark: str) -> Text:
    """Pure text and plurals as everywhere; an exact number stays what it is."""
    made = marked(block, mark)
    exact = {name: f"{text}{mark}" for name, text in (block.plural or {}).items() if name.startswith("=")}
    return made if isinstance(made, str) else {**exact, **made}


MEMBERS = (
    Member(
        FluentResource(),
        "locales/{locale}/main.ftl",
        """\
### The application

-brand = Firefox
    .gender = neuter

## Loading

# Shown at the start
load = [Loading data]
box =
    text
    { "[" }bold] and "{ $quoted }"
    .title = Open { -brand }
    .label =
        Two
          lines

items = You have { $count ->
    [0] nothing
    [one] one item
   *[other] { $count } items
} left
spaced = { "" }  wide { "" }
who = { $gender ->
    [male] His
   *[other] Their
}
""",
        oracle=read,
        malformed=(("a = b\n=\n", 2), ("a = { $x\n", 2), ("a = b\na = c\n", 2)),
        files=("lf", "crlf", "bom"),
        kept=lambda key: key.startswith("-") or "/" in key,
        translate=_translated,
    ),
)
