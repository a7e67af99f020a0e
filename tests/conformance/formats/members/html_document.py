"""The member `html`."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser

from dragoman.content.formats.html_document import HtmlDocument
from tests.conformance.formats.member import Member


class _Texts(HTMLParser):
    """The standard library's reading: raw content of some elements, and attributes."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.found: list[str] = []
        self._parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name in ("alt", "content", "title") and value]
        if tag in ("p", "li", "h1", "title"):
            self._parts.clear()
        elif tag != "img":
            self._parts.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("p", "li", "h1", "title"):
            self.found.append("".join(self._parts).strip())
        else:
            self._parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self._parts.append(" ".join(f"|{data}|".split())[1:-1])

    def handle_entityref(self, name: str) -> None:
        self._parts.append(f"&{name};")


def _read(data: bytes) -> Sequence[str]:
    reading = _Texts()
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    reading.feed(data.decode(encoding))
    return reading.found


MEMBERS = (
    Member(
        HtmlDocument(),
        "pages/{locale}/index.html",
        """\
<!doctype html>
<html lang="en" dir="ltr">
<head>
  <meta charset="utf-8">
  <meta name="description" content="What a page &quot;says&quot;">
  <title>A title</title>
  <style>p > a { color: red }</style>
</head>
<body>
<h1 id="top">Heading</h1>
<!-- a comment -->
<p title="Said &amp; shown">
  A sentence with <b>bold</b> words
  over two lines &lt;b&gt; {{ name }}.
</p>
<ul>
  <li>one
  </li>
  <li><img src="x.png" alt="A picture"> two</li>
</ul>
<script>if (a < b) { document.write("<p>no</p>"); }</script>
<p translate="no">Dragoman</p>
</body>
</html>
""",
        oracle=_read,
    ),
)
