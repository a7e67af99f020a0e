"""The member `subrip`."""

from __future__ import annotations

import srt  # type: ignore[import-untyped]

from dragoman.content.formats.subrip import SubRip
from tests.conformance.formats.member import Member


def _read(data: bytes) -> list[str]:
    text = data.decode("utf-16" if data[:1] in b"\xff\xfe" else "utf-8-sig")
    return [cue.content for cue in srt.parse(text.replace("\r\n", "\n")) if cue.content.strip()]


MEMBERS = (
    Member(
        SubRip(),
        "media/film.{locale}.srt",
        """\
1
00:00:01,000 --> 00:00:02,500
<i>Hi</i> {\\an8}there,
“friend”

2
00:00:03,000 --> 00:00:04,000


7
00:00:05,000 --> 00:00:06,000 X1:40 X2:600
[music]

00:00:07.500 --> 00:00:08.000
Bye &amp; good night
""",
        oracle=_read,
        malformed=(
            ("Hello\n", 1),
            ("1\n00:00:01 -> 00:00:02\nHello\n", 1),
            ("1\n00:00:01,000 --> 00:00:02,000\nHi\n\n2\n00:00:03,000 --> soon\nBye\n", 5),
        ),
    ),
)
