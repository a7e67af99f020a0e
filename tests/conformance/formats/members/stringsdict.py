"""The member `stringsdict`."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from dragoman.content.formats.stringsdict import StringsDict
from tests.conformance.formats.member import Member


def _read(data: bytes) -> list[str]:
    return list(_strings(etree.fromstring(data)))


def _strings(root: etree._Element) -> Iterator[str]:
    for element in root.iter("string"):
        yield "".join(element.itertext())


MEMBERS = (
    Member(
        StringsDict(),
        "{locale}.lproj/Localizable.stringsdict",
        """\
<?xml version="1.0"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>points/all</key>
	<dict>
		<key>NSStringLocalizedFormatKey</key>
		<string>%#@score@</string>
		<key>score</key>
		<dict>
			<key>NSStringFormatSpecTypeKey</key>
			<string>NSStringPluralRuleType</string>
			<key>NSStringFormatValueTypeKey</key>
			<string>lu</string>
			<!-- said at nought -->
			<key>zero</key>
			<string>No “points”</string>
			<key>one</key>
			<string>%lu point &amp; more</string>
			<key>other</key>
			<string><![CDATA[%lu <points>]]></string>
		</dict>
	</dict>
	<key>two</key>
	<dict>
		<key>NSStringLocalizedFormatKey</key>
		<string>%1$#@files@ in %2$@</string>
		<key>files</key>
		<dict>
			<key>NSStringFormatSpecTypeKey</key>
			<string>NSStringPluralRuleType</string>
			<key>NSStringFormatValueTypeKey</key>
			<string>d</string>
			<key>other</key>
			<string>%d files</string>
		</dict>
	</dict>
	<key>wide</key>
	<dict>
		<key>NSStringVariableWidthRuleType</key>
		<dict>
			<key>1</key>
			<string>Hi</string>
			<key>20</key>
			<string>Hello</string>
		</dict>
	</dict>
</dict>
</plist>
""",
        oracle=_read,
        malformed=(
            ("<plist>\n<array/></plist>", 1),
            ("<plist><dict>\n<key>a</key></dict></plist>", 2),
            ("<plist><dict>\n<string>a</string><key>b</key></dict></plist>", 2),
            ("<plist><dict>\n<key>a</key><string/>\n<key>a</key><string/></dict></plist>", 3),
            ("<plist>\n<dict>", 2),
        ),
        kept=lambda key: not key.startswith("points"),
    ),
)
