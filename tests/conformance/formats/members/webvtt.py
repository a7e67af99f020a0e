"""The member `webvtt`."""

from __future__ import annotations

import io

import webvtt

from dragoman.content.formats.webvtt import WebVtt
from tests.conformance.formats.member import Member


def _read(data: bytes) -> list[str]:
    text = data.decode("utf-16" if data[:1] in b"\xff\xfe" else "utf-8-sig")
    return [cue.raw_text for cue in webvtt.from_buffer(io.StringIO(text.replace("\r\n", "\n"))).captions]


MEMBERS = (
    Member(
        WebVtt(),
        "media/film.{locale}.vtt",
        """\
WEBVTT - a film

STYLE
::cue(v) { color: red }

REGION
id:left
width:40%

NOTE Roger is old

intro
00:01.000 --> 00:03.000 line:91% align:center
<v Roger O'Neil>Who <00:02.000>said <i>that</i>?

00:00:03.000 --> 00:00:04.500
Two &amp; a half
lines

NOTE
the end
comes

4
100:00:03.000 --> 100:00:04.000
<c.yellow>Bye</c>
""",
        oracle=_read,
        malformed=(("WEB\n", 1), ("WEBVTT\n\n00:01.000 --> 3\nHi\n", 3), ("", 1)),
    ),
)
