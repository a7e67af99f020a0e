"""The member `contentful`."""

from __future__ import annotations

from dragoman.content.formats.contentful import ContentfulRichText
from tests.conformance.formats.member import Member

MEMBERS = (
    Member(
        ContentfulRichText(),
        "entries/{locale}/hello.json",
        """\
{
  "fields": {
    "title": "Hello",
    "body": {"nodeType": "document", "data": {}, "content": [
      {"nodeType": "paragraph", "data": {}, "content": [
        {"nodeType": "text", "value": "See ", "marks": [], "data": {}},
        {"nodeType": "hyperlink", "data": {"uri": "https://a.example"}, "content": [
          {"nodeType": "text", "value": "this ", "marks": [], "data": {}},
          {"nodeType": "text", "value": "page", "marks": [{"type": "bold"}, {"type": "italic"}], "data": {}}
        ]},
        {"nodeType": "text", "value": "", "marks": [], "data": {}},
        {"nodeType": "embedded-entry-inline", "data": {"target": {"sys": {"id": "x"}}}, "content": []},
        {"nodeType": "text", "value": "x = 1", "marks": [{"type": "code"}], "data": {}}
      ]},
      {"nodeType": "unordered-list", "data": {}, "content": [
        {"nodeType": "list-item", "data": {}, "content": [
          {"nodeType": "paragraph", "data": {}, "content": [
            {"nodeType": "text", "value": "One", "marks": [{"type": "bold"}], "data": {}}
          ]}
        ]}
      ]},
      {"nodeType": "embedded-asset-block", "data": {"target": {"sys": {"id": "y"}}}, "content": []}
    ]}
  }
}
""",
        malformed=(('{"nodeType": "document"', 1),),
    ),
)
