"""The member `resx`."""

from __future__ import annotations

from xml.etree import ElementTree

from dragoman.content.formats.resx import ResxCatalogue
from tests.conformance.formats.member import Member


def _read(data: bytes) -> list[str]:
    text = data.decode("utf-16" if data[:1] in b"\xff\xfe" else "utf-8-sig")
    return [value.text or "" for value in ElementTree.fromstring(text).iterfind("data/value")]  # noqa: S314


MEMBERS = (
    Member(
        ResxCatalogue(),
        "Properties/Resources.{locale}.resx",
        """\
<?xml version="1.0"?>
<root>
  <!-- About this file -->

  <resheader name="version">
    <value>2.0</value>
  </resheader>
  <data name="Greeting" xml:space="preserve">
    <value>Hello {0,-5:N2}, “friend” &lt;b&gt;</value>
    <comment>Greets</comment>
  </data>
  <data name="Html" formId="M.1"><value><![CDATA[<p>A & B</p>]]></value></data>
  <!-- Not this -->
  <data name="Icon" type="System.Drawing.Icon" mimetype="application/x-microsoft.net.object.bytearray.base64">
    <value>AAEC</value>
  </data>
  <data name="&gt;&gt;Label.Name"><value>label</value></data>

  <!-- This one -->
  <data name="Lines/a" type="System.String, mscorlib" xml:space="preserve"><value> One
two </value></data>
</root>
""",
        oracle=_read,
        malformed=(
            ("<root>\n<data>", 2),
            ("<root>\n\n<data><value>x</value></data></root>", 3),
            ("<rss></rss>", 1),
        ),
    ),
)
