"""The member `lexical`."""

from __future__ import annotations

from dragoman.content.formats.lexical import LexicalDocument
from tests.conformance.formats.member import Member

MEMBERS = (
    Member(
        LexicalDocument(),
        "posts/{locale}/hello.json",
        """\
{
  "title": "Hello “you”",
  "slug": "hello",
  "content": {
    "root": {
      "type": "root",
      "format": "",
      "children": [
        {
          "type": "heading", "tag": "h2", "format": "",
          "children": [{"type": "text", "text": "All ", "format": 0, "style": ""},
                       {"type": "text", "text": "bold\\u2026", "format": 1, "style": ""}]
        },
        {
          "type": "paragraph",
          "children": [
            {"type": "text", "text": "See ", "format": 0},
            {"type": "link", "fields": {"url": "https://a.example"},
             "children": [{"type": "text", "text": "this \\"one\\"", "format": 0}]},
            {"type": "linebreak"},
            {"type": "text", "text": "npm i", "format": 16},
            {"type": "text", "text": " & <b>more</b>", "format": 3}
          ]
        },
        {"type": "upload", "value": 7, "fields": {"alt": "A cat", "url": "/cat.png"}},
        {"type": "code", "children": [{"type": "code-highlight", "text": "x = 1"}]},
        {"type": "paragraph", "children": []}
      ]
    }
  }
}
""",
        malformed=(('{"root": {"children": [}}', 1), ('{\n"root":\n}\n', 3)),
    ),
)
