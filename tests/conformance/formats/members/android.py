"""The member `android`."""

from __future__ import annotations

from moz.l10n.formats.android.parse import android_parse
from moz.l10n.model import Entry, Expression, Message, PatternMessage, SelectMessage

from dragoman.content.formats.android import AndroidStrings
from tests.conformance.formats.member import Member


def _read(data: bytes) -> list[str]:
    text = data.decode("utf-16" if data[:1] in b"\xff\xfe" else "utf-8-sig")
    found: list[str] = []
    for section in android_parse(text.encode().removeprefix(b"\xef\xbb\xbf")).sections:
        for entry in section.entries:
            if isinstance(entry, Entry):
                found += _texts(entry.value)
    return found


def _texts(message: Message) -> list[str]:
    patterns = list(message.variants.values()) if isinstance(message, SelectMessage) else []
    patterns += [message.pattern] if isinstance(message, PatternMessage) else []
    return ["".join(map(_text, pattern)) for pattern in patterns]


def _text(part: object) -> str:
    """What looks like a tag or a reference is an expression there."""
    return str(part.arg) if isinstance(part, Expression) else str(part)


MEMBERS = (
    Member(
        AndroidStrings(),
        "app/src/main/res/values-{locale}/strings.xml",
        """\
<?xml version="1.0"?>
<!-- Licence -->
<resources xmlns:tools="http://schemas.android.com/tools">
    <!-- About this file -->

    <!-- Greets -->
    <string name="hello">It\\'s “me”\\n &lt;b>now&lt;/b> …</string> <!-- behind -->
    <string name="never" translatable="false">id_%1$s</string>

    <string-array name="days">
        <item>"  Monday "</item>
        <item>@string/hello</item>
        <item>Tuesday</item>
    </string-array>
    <plurals name="files">
        <!-- One -->
        <item quantity="one">A file</item>
        <item quantity="other">Some   files\\u0021</item>
    </plurals>
    <string name="last"><![CDATA[<p class="x">One & two</p>]]></string>
</resources>
""",
        oracle=_read,
        malformed=(
            ('<resources>\n<string name="a">\n</resources>', 3),
            ("<resources>\n<string>x</string></resources>", 2),
            ('<resources><string name="a">x</string>\n<string name="a">y</string></resources>', 2),
            ("\n<res/>", 2),
        ),
        kept=lambda key: "/" in key,
        files=("lf", "crlf", "bom", "utf16"),
    ),
)
