"""The member `portable_text`."""

from __future__ import annotations

from dragoman.content.formats.portable_text import PortableText
from tests.conformance.formats.member import Member

MEMBERS = (
    Member(
        PortableText(),
        "posts/{locale}/hello.json",
        """\
[
  {"_type": "block", "_key": "a", "style": "h1", "markDefs": [], "children": [
    {"_type": "span", "_key": "a0", "marks": ["strong"], "text": "All bold"}
  ]},
  {"_type": "block", "_key": "b/1", "style": "normal",
   "markDefs": [{"_type": "link", "_key": "l", "href": "https://a.example"}],
   "children": [
    {"_type": "span", "_key": "b0", "marks": [], "text": ""},
    {"_type": "image", "_key": "b1", "asset": {"_ref": "image-x"}},
    {"_type": "span", "_key": "b2", "marks": [], "text": "See "},
    {"_type": "span", "_key": "b3", "marks": ["l", "em"], "text": "this"},
    {"_type": "span", "_key": "b4", "marks": ["code"], "text": "npm i"},
    {"_type": "span", "_key": "b5", "text": " & more"}
   ]},
  {"_type": "image", "_key": "c", "alt": "A cat", "asset": {"_ref": "image-y"}}
]
""",
        malformed=(('[{"_type": "block",}]', 1),),
    ),
)
