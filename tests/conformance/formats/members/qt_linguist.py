"""The member `qt_linguist`."""

from __future__ import annotations

from xml.etree import ElementTree

from dragoman.content.formats.qt_linguist import QtLinguist
from tests.conformance.formats.member import Member


def _read(data: bytes) -> list[str]:
    """Every translation, and every form of one."""
    found: list[str] = []
    for target in ElementTree.fromstring(data).iter("translation"):  # noqa: S314 - our own sample
        for form in (target, *target.iter("numerusform"), *target.iter("lengthvariant")):
            raw = ElementTree.tostring(form, encoding="unicode").strip()
            found += (form.text or "", raw.partition(">")[2].rpartition("</")[0].replace(" />", "/>"))
    return found


MEMBERS = (
    Member(
        QtLinguist(),
        "translations/app_{locale}.ts",
        """\
<?xml version="1.0"?>
<!DOCTYPE TS>
<TS version="2.1" language="de_DE" sourcelanguage="en">
<context>
    <name>Window::Main</name>
    <message>
        <location filename="a.cpp" line="1"/>
        <source>Open &lt;b&gt;%1&lt;/b&gt; “now”</source>
        <comment>menu</comment>
        <extracomment>A note</extracomment>
        <translation>Öffnen</translation>
    </message>
    <message numerus="yes">
        <source>%n file(s)</source>
        <translation>
            <numerusform>%n Datei</numerusform>
            <numerusform>%n Dateien</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n line(s)</source>
        <translation type="unfinished"></translation>
    </message>
    <message>
        <source>gone</source>
        <translation type="vanished">weg</translation>
    </message>
</context>
<context>
    <name>Dialog</name>
    <message id="ring">
        <source>Ring<byte value="x7"/></source>
        <translation type="unfinished"/>
    </message>
    <message>
        <source>Wide</source>
        <translation variants="yes"><lengthvariant>Sehr weit</lengthvariant>
        <lengthvariant>Weit</lengthvariant></translation>
    </message>
    <message>
        <source>first
second</source>
    </message>
</context>
</TS>
""",
        oracle=_read,
        malformed=(
            ("<TS>\n<context></TS>", 2),
            ("\n<resources>\n</resources>", 2),
            ('<!DOCTYPE TS [\n<!ENTITY a SYSTEM "a">]>\n<TS>&a;</TS>', 2),
        ),
    ),
)
