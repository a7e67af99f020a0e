"""The member `apple_strings`."""

from __future__ import annotations

from dragoman.content.formats.apple_strings import AppleStrings
from tests.conformance.formats.member import Member

MEMBERS = (
    Member(
        AppleStrings(),
        "{locale}.lproj/Localizable.strings",
        """\
/* Localizable.strings
   It's the header. */

/* Greets; don't shout */
"hello" = "Hello %@, “%1$lld”"; // trailing, isn't it

"key \\"quoted\\"/path" = "two\\nlines";
"other" = 'Two "marks"'; /* of other's */

// Section

/* No comment provided by engineer. */
CFBundleName = Name;
"only key";
"escape" = "\\U00e9t\\U00E9 \\101";
""",
        malformed=(
            ('"a" = "b"\n"c" = "d";', 2),
            ('"a" = "b";\n"c" = "d;\n', 2),
            ('"a" = "b";\n/* c', 2),
            ('"a" = {\n"b" = "c"; };', 1),
            ('"a" = "b";\n"a" = "c";', 2),
            ('\n"a" = "\\UD83D";', 2),
            ('<?xml version="1.0"?>', 1),
            ('"a" = "b";\n"c" =', 2),
        ),
    ),
)
