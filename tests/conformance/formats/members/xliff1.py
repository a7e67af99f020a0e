"""The member `xliff1`."""

from __future__ import annotations

from xml.etree import ElementTree

from dragoman.content.formats.xliff1 import Xliff1
from tests.conformance.formats.member import Member

_NAMES = "{urn:oasis:names:tc:xliff:document:1.2}"


def _read(data: bytes) -> list[str]:
    """Plain texts of targets and their segments; raw ones are put together again."""
    root = ElementTree.fromstring(data)  # noqa: S314 - our own sample
    for element in root.iter():
        element.tag = element.tag.removeprefix(_NAMES)
    found: list[str] = []
    for target in root.iter("target"):
        for holder in (target, *target.iter("mrk")):
            raw = ElementTree.tostring(holder, encoding="unicode")
            inner = raw.partition(">")[2].rpartition("</")[0] if "</" in raw else ""
            found += ("".join(holder.itertext()), inner.replace(" />", "/>"))
    return found


MEMBERS = (
    Member(
        Xliff1(),
        "l10n/messages.{locale}.xlf",
        """\
<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file original="a/b.txt" source-language="en" target-language='de' datatype="plaintext">
    <body>
      <trans-unit id="plain" resname="title" maxwidth="40" size-unit="char" approved="yes">
        <source xml:lang="en">Fish &amp; “chips” {0}</source>
        <target xml:lang="de" state="final" state-qualifier="exact-match">Fisch</target>
        <note>For a menu</note>
        <alt-trans><target>Fische</target></alt-trans>
      </trans-unit>
      <group id="g">
        <trans-unit id="inline">
          <source>A <g id="1">bold</g> move<x id="2"/></source><target/>
        </trans-unit>
        <trans-unit id="fixed" translate="no"><source>Brand</source></trans-unit>
      </group>
      <trans-unit id="cut">
        <source>One. Two.</source>
        <seg-source><mrk mtype="seg" mid="0">One.</mrk> <mrk mtype="seg" mid="1">Two.</mrk></seg-source>
        <note>Segments</note>
      </trans-unit>
      <trans-unit id="section"><source><![CDATA[a < b]]></source></trans-unit>
      <trans-unit id="lines">
        <source>first
second</source>
      </trans-unit>
    </body>
  </file>
</xliff>
""",
        oracle=_read,
        malformed=(
            ("<xliff version='1.2'><file></xliff>", 1),
            ("\n<resources/>", 2),
            ("<xliff version='1.2'>\n<file>&undeclared;</file></xliff>", 2),
        ),
    ),
)
