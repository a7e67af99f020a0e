"""The member `gettext`."""

from __future__ import annotations

import polib

from dragoman.content.formats.gettext import GettextCatalogue
from tests.conformance.formats.member import Member


def _read(data: bytes) -> list[str]:
    text = data.decode("utf-16" if data[:1] in b"\xff\xfe" else "utf-8-sig")
    entries = [entry for entry in polib.pofile(text) if not entry.obsolete]
    return [form for entry in entries for form in (entry.msgstr, *entry.msgstr_plural.values()) if form]


MEMBERS = (
    Member(
        GettextCatalogue(),
        "locale/{locale}/LC_MESSAGES/app.po",
        """\
msgid ""
msgstr ""
"Language: en\\n"
"Content-Type: text/plain; charset=UTF-8\\n"

#. A note
#: here.c:1
#, fuzzy, c-format
#| msgid "Once %s"
msgctxt "menu"
msgid "Hello %s"
msgstr "Hi %s"

msgid "One fish"
msgid_plural "Many fish"
msgstr[0] ""
msgstr[1] ""

msgid ""
"Two "
"lines\\n"
"of “text”"
msgstr ""

#~ msgid "gone"
#~ msgstr "away"
""",
        oracle=_read,
    ),
)
