"""The member `properties`."""

from __future__ import annotations

from moz.l10n.formats.properties.parse import properties_parse
from moz.l10n.model import Entry, PatternMessage

from dragoman.content.formats.properties import PropertiesCatalogue
from tests.conformance.formats.member import Member


def _read(data: bytes) -> list[str]:
    found: list[str] = []
    for section in properties_parse(data.decode("utf-8-sig")).sections:
        for entry in section.entries:
            if isinstance(entry, Entry) and isinstance(entry.value, PatternMessage):
                found.append("".join(map(str, entry.value.pattern)))
    return found


MEMBERS = (
    Member(
        PropertiesCatalogue(),
        "bundles/messages_{locale}.properties",
        """\
# About this file

# Greets
app.greeting = Hello {0}, “friend”
app.long : One line that goes on \\
           over two lines

! A blank alone separates
blank\\ key value\\tand tab
path=C\\:\\\\temp
last=The end
""",
        oracle=_read,
        malformed=(("a=b\nc=\\u12\n", 2), ("a=\\uXYZW", 1)),
        files=("lf", "crlf", "bom"),
    ),
)
