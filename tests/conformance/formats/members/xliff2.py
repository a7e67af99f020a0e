"""The member `xliff2`."""

from __future__ import annotations

from xml.etree import ElementTree

from dragoman.content.formats.xliff2 import Xliff2
from tests.conformance.formats.member import Member

_NAMES = "{urn:oasis:names:tc:xliff:document:2.0}"


def _read(data: bytes) -> list[str]:
    """Targets as plain texts, and as they are written."""
    root = ElementTree.fromstring(data)  # noqa: S314 - our own sample
    for element in root.iter():
        element.tag = element.tag.removeprefix(_NAMES)
    found: list[str] = []
    for target in root.iter("target"):
        raw = ElementTree.tostring(target, encoding="unicode").strip()
        inner = raw.partition(">")[2].rpartition("</")[0] if "</" in raw else ""
        found += ("".join(target.itertext()), inner.replace(" />", "/>"))
    return found


MEMBERS = (
    Member(
        Xliff2(),
        "l10n/messages.{locale}.xliff",
        """\
<?xml version="1.0"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">
  <file id="f">
    <unit id="plain" name="title">
      <notes>
        <note>For a menu</note>
      </notes>
      <segment state="initial" subState="x:new">
        <source>Fish &amp; “chips” {0}</source>
      </segment>
    </unit>
    <group id="g">
      <unit id="many">
        <originalData><data id="d">&lt;br/></data></originalData>
        <segment id="s1">
          <source xml:space="preserve">A <pc id="1">bold</pc> move<ph id="2" dataRef="d"/></source>
        </segment>
        <ignorable>
          <source> </source>
        </ignorable>
        <segment state="final"><source>Two.</source><target>Zwei.</target></segment>
      </unit>
      <unit id="fixed" translate="no"><segment><source>Brand</source></segment></unit>
    </group>
    <unit id="section"><segment><source><![CDATA[a < b]]></source><target/></segment></unit>
  </file>
</xliff>
""",
        oracle=_read,
        malformed=(
            ('<xliff version="2.0"><file></xliff>', 1),
            ('<xliff version="1.2"/>', 1),
            ('<xliff version="2.0">\n<file>&undeclared;</file></xliff>', 2),
        ),
    ),
)
